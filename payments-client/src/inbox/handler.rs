//! What a shop does with an event.

use payments_core::Event;

use super::BoxError;

/// Applies events within transactions `T`. Implement it where a closure's type is in the way, for example to spawn
/// [`Inbox::run_with`](super::Inbox::run_with) in generic code.
#[allow(async_fn_in_trait, reason = "whether the future is Send follows from the implementation")]
pub trait Handler<T> {
    /// Why an event could not be applied.
    type Error: Into<BoxError>;

    /// Writes the event's effect in the transaction. Return each error: the inbox then rolls back and tries the event again.
    /// Ignore kinds of events that you do not know.
    async fn handle(&self, tx: &mut T, event: &Event) -> Result<(), Self::Error>;
}

/// A closure as a handler.
#[derive(Debug)]
pub(super) struct Closure<F>(pub(super) F);

impl<T, F, E> Handler<T> for Closure<F>
where
    F: AsyncFn(&mut T, &Event) -> Result<(), E>,
    E: Into<BoxError>,
{
    type Error = E;

    async fn handle(&self, tx: &mut T, event: &Event) -> Result<(), E> {
        self.0(tx, event).await
    }
}
