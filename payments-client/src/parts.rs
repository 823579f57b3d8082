//! Streams of lists that are read part by part.

use std::collections::VecDeque;

use futures_util::stream;

use crate::{
    Result,
    platform::{BoxFuture, BoxStream},
};

/// A part of a list, and where the next part begins.
pub(crate) struct Part<T, C> {
    pub(crate) items: Vec<T>,
    pub(crate) has_more: bool,
    pub(crate) next: Option<C>,
}

type Asking<T, C> = BoxFuture<Result<Part<T, C>>>;

/// Streams a list from a cursor. Requests the next part when the present one is used up, and ends after an error.
pub(crate) fn stream_parts<T, C>(
    cursor: Option<C>,
    ask: impl Fn(Option<&C>) -> Asking<T, C> + Send + 'static,
) -> BoxStream<'static, Result<T>>
where
    T: Send + 'static,
    C: PartialEq + Send + 'static,
{
    let parts = Parts { ask, cursor, buffered: VecDeque::new(), is_last: false };
    Box::pin(stream::try_unfold(parts, |mut parts| async move { Ok(parts.next().await?.map(|item| (item, parts))) }))
}

struct Parts<T, C, A> {
    ask: A,
    cursor: Option<C>,
    buffered: VecDeque<T>,
    is_last: bool,
}

impl<T, C: PartialEq, A: Fn(Option<&C>) -> Asking<T, C>> Parts<T, C, A> {
    async fn next(&mut self) -> Result<Option<T>> {
        while self.buffered.is_empty() && !self.is_last {
            let Part { items, has_more, next } = (self.ask)(self.cursor.as_ref()).await?;
            self.buffered.extend(items);
            self.is_last = !has_more || next == self.cursor;
            self.cursor = next;
        }
        Ok(self.buffered.pop_front())
    }
}
