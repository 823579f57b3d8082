//! Reconciles payments whose webhook may be lost: without retries, the server attempts each delivery once.

use std::time::Duration;

use futures_util::{StreamExt, future::ready, stream};
use payments_core::{EventId, Payment, PaymentId, Status, Timestamp};

use crate::{Error, Payments, Result, error::Kind, platform::BoxStream};

/// What a payment means for its order (API specification, "Rules", 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The customer paid. The payment's status tells whether it was refunded since.
    Completed,
    /// The payment failed, expired or was cancelled: release the order's stock. A late payment can still complete it,
    /// so reconcile once more before you close the books.
    Abandoned,
    /// The customer can still pay, or this version does not know the status: check again later.
    Open,
}

impl Standing {
    /// The standing of a payment.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        match payment.status {
            Status::Completed | Status::Refunded => Self::Completed,
            Status::Failed | Status::Cancelled | Status::Expired => Self::Abandoned,
            _ => Self::Open,
        }
    }
}

/// A payment and its standing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reconciled {
    /// The current payment.
    pub payment: Payment,
    /// The payment's meaning for its order.
    pub standing: Standing,
}

impl From<Payment> for Reconciled {
    fn from(payment: Payment) -> Self {
        Self { standing: Standing::of(&payment), payment }
    }
}

/// How many times to wait for the rate limit, per payment.
const MAX_RATE_LIMIT_WAITS: u32 = 10;

impl Payments<'_> {
    /// Retrieves these payments and their standing, with at most `at_once` requests in flight. Results come in the
    /// order of the responses. The stream waits for the rate limit; it returns other errors with the payment's id and
    /// continues.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    /// use payments_client::{Client, PaymentId, Standing};
    /// # async fn reconcile(client: Client, open: Vec<PaymentId>) {
    /// let mut outcomes = client.payments().reconcile(open, 8);
    /// while let Some((id, outcome)) = outcomes.next().await {
    ///     match outcome {
    ///         Ok(found) if found.standing == Standing::Completed => println!("ship {id}"),
    ///         Ok(found) => println!("{id} is {:?}", found.standing),
    ///         Err(error) => eprintln!("{id}: {error}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn reconcile(
        self,
        ids: impl IntoIterator<Item = PaymentId, IntoIter: Send + 'static>,
        at_once: usize,
    ) -> BoxStream<'static, (PaymentId, Result<Reconciled>)> {
        let client = self.client().clone();
        let asked = stream::iter(ids).map(move |id| {
            let client = client.clone();
            async move {
                let mut waits = 0;
                loop {
                    match client.payments().retrieve(&id).await {
                        Err(error) if error.is_rate_limited() && waits < MAX_RATE_LIMIT_WAITS => {
                            waits += 1;
                            client.inner.clock.sleep(error.retry_after().unwrap_or(Duration::from_secs(5))).await;
                        }
                        outcome => return (id, outcome.map(Reconciled::from)),
                    }
                }
            }
        });
        Box::pin(asked.buffer_unordered(at_once.max(1)))
    }

    /// Streams the events since `cursor`, oldest first; without a cursor, since the beginning. Each item is an event's id and
    /// its payment as of that event. Use it after a downtime: store the last id in the same transaction as the payment's
    /// effects, and continue after it the next time. A payment that fails or expires has no event. The stream ends after an
    /// error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # use payments_client::{Client, EventId, Standing};
    /// # async fn catch_up(client: Client, mut cursor: Option<EventId>) -> Result<(), payments_client::Error> {
    /// let mut missed = client.payments().reconcile_since(cursor.clone());
    /// while let Some((event, found)) = missed.try_next().await? {
    ///     if found.standing == Standing::Completed {
    ///         println!("ship {}", found.payment.id);
    ///     }
    ///     cursor = Some(event);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reconcile_since(self, cursor: Option<EventId>) -> BoxStream<'static, Result<(EventId, Reconciled)>> {
        let events = self.client().events().stream_since(cursor);
        Box::pin(events.map(|event| {
            let event = event?;
            let payment = event.payment().map_err(|error| Error::from(Kind::Request(error.to_string())))?;
            Ok((event.id().clone(), payment.into()))
        }))
    }

    /// Retrieves all payments created at `from` or later and before `until`, with their standing, newest first. Sends
    /// one request at a time. The stream ends after an error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # async fn day(client: payments_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let (from, until) = ("2026-03-01T00:00:00Z".parse()?, "2026-03-02T00:00:00Z".parse()?);
    /// let mut day = client.payments().reconcile_between(from, until);
    /// while let Some(found) = day.try_next().await? {
    ///     println!("{} {:?}", found.payment.id, found.standing);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reconcile_between(self, from: Timestamp, until: Timestamp) -> BoxStream<'static, Result<Reconciled>> {
        let is_late_enough = move |item: &Result<Payment>| {
            ready(item.as_ref().is_ok_and(|payment| payment.created_at >= from) || item.is_err())
        };
        let is_early_enough = move |item: &Result<Payment>| {
            ready(item.as_ref().is_ok_and(|payment| payment.created_at < until) || item.is_err())
        };
        let listed = self.list().created_after(from).created_before(until).stream();
        // A server before 0.3.0 does not know these filters.
        let listed = listed.take_while(is_late_enough).filter(is_early_enough);
        Box::pin(listed.map(|item| item.map(Reconciled::from)))
    }
}
