//! The event methods.

use std::{fmt, ops::Deref};

use payments_core::{Event, EventId, EventKind, EventPage, PaymentId, RawJson, Timestamp};
use reqwest::Method;
use serde::{Deserialize, Deserializer, de};

use crate::{
    Client, Result,
    call::Call,
    parts::{Part, stream_parts},
    platform::BoxStream,
    request::Request,
};

/// The event methods, for the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Events<'c> {
    client: &'c Client,
}

impl Client {
    /// The event methods: all events about payments, even those for which there was no webhook endpoint.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events { client: self }
    }
}

impl Events<'_> {
    /// Retrieves an event, such as one whose webhook was lost.
    ///
    /// ```no_run
    /// # use payments_client::{Client, EventId};
    /// # async fn retrieve(client: Client, id: EventId) -> Result<(), payments_client::Error> {
    /// let event = client.events().retrieve(&id).await?;
    /// println!("{} {}", event.kind(), event.created_at());
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve(self, id: &EventId) -> Request<ListedEvent> {
        Request::new(self.client, Call::new(Method::GET, "/events/{}", Some(id.as_str())))
    }

    /// Lists events, oldest first. The list has no test events.
    ///
    /// ```no_run
    /// # use payments_client::{Client, EventKind, PaymentId};
    /// # async fn list(client: Client, payment: PaymentId) -> Result<(), payments_client::Error> {
    /// let page = client.events().list().payment(&payment).await?;
    /// let was_paid = page.items.iter().any(|event| *event.kind() == EventKind::PaymentCompleted);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> Request<EventPage<ListedEvent>> {
        Request::new(self.client, Call::new(Method::GET, "/events", None))
    }

    /// The end of the list: where later events begin. `None` as long as there is no event.
    ///
    /// ```no_run
    /// # async fn follow(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let cursor = client.events().end().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub async fn end(self) -> Result<Option<EventId>> {
        Ok(self.list().query("after", "latest".into()).await?.next)
    }

    /// Streams all events after `cursor`, oldest first, up to the present last one; without a cursor, from the beginning.
    /// Store the id of the last event that you have handled, and continue after it the next time: no event is missed, and
    /// none comes twice. The stream sends requests only as events are polled, and ends after an error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # use payments_client::{Client, EventId};
    /// # async fn catch_up(client: Client, mut cursor: Option<EventId>) -> Result<(), payments_client::Error> {
    /// let mut events = client.events().stream_since(cursor.clone());
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{} {}", event.kind(), event.id());
    ///     cursor = Some(event.id().clone()); // in the same transaction as what the event leads to
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stream_since(self, cursor: Option<EventId>) -> BoxStream<'static, Result<ListedEvent>> {
        let client = self.client.clone();
        stream_parts(cursor, move |cursor| {
            let request = client.events().list().limit(100);
            let request = if let Some(cursor) = cursor { request.after(cursor) } else { request };
            Box::pin(async move {
                let EventPage { items, has_more, next, .. } = request.await?;
                Ok(Part { items, has_more, next })
            })
        })
    }
}

impl Request<EventPage<ListedEvent>> {
    /// Only events after this one. Pass the `next` of an earlier part.
    pub fn after(self, event: &EventId) -> Self {
        self.query("after", event.to_string())
    }

    /// Only events of these kinds.
    pub fn events<'k>(self, kinds: impl IntoIterator<Item = &'k EventKind>) -> Self {
        let kinds: Vec<_> = kinds.into_iter().map(EventKind::as_str).collect();
        self.query("events", kinds.join(","))
    }

    /// Only events of a payment.
    pub fn payment(self, payment: &PaymentId) -> Self {
        self.query("paymentId", payment.to_string())
    }

    /// Only events that happened at this time or later.
    pub fn created_after(self, time: Timestamp) -> Self {
        self.query("createdAfter", time.to_string())
    }

    /// Only events that happened before this time.
    pub fn created_before(self, time: Timestamp) -> Self {
        self.query("createdBefore", time.to_string())
    }

    /// At most `limit` events, 1 to 100. Default: 20.
    pub fn limit(self, limit: u8) -> Self {
        self.query("limit", limit.to_string())
    }
}

/// An event that the API returned. It needs no signature, because the client received it over its own connection.
#[derive(Clone, PartialEq, Eq)]
pub struct ListedEvent(Event);

impl ListedEvent {
    /// The event in the form in which a verified webhook gives it.
    #[must_use]
    pub fn into_event(self) -> Event {
        self.0
    }
}

impl Deref for ListedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}

impl fmt::Debug for ListedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ListedEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let listed = RawJson::deserialize(deserializer)?;
        Event::from_list(&listed).map(Self).map_err(de::Error::custom)
    }
}
