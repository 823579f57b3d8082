//! Applies each event exactly once to the shop's own database.
//!
//! The shop writes one function. Its effect and the inbox's cursor commit in one transaction of the shop's database, so a crash
//! at any moment leaves both or neither. The API's list of events is the source; a webhook only [wakes](Inbox::wake) the inbox.
//! A webhook that is lost, doubled, late or forged changes nothing.
//!
//! ```no_run
//! # use payments_client::{Client, Event, inbox::{BoxError, Inbox, Store}};
//! # async fn ship<T>(tx: &mut T, event: &Event) -> Result<(), BoxError> { Ok(()) }
//! # async fn start<S: Store>(store: S) -> Result<(), BoxError> {
//! let client = Client::from_env()?;
//! Inbox::new(client, store).name("orders").run(ship).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The crate `payments-inbox-sqlx` has the stores for SQLite and PostgreSQL.
//!
//! - **Several processes** may run the same inbox. The cursor is compared and set in each transaction, so one of them applies an
//!   event.
//! - **An error stops the inbox at its event.** It rolls back, and tries that event again with backoff: the next events may need
//!   it. [`Inbox::lag`] shows the error; [`Inbox::skip`] passes the event by.
//! - **It is exact for effects in the database.** An e-mail or a parcel is no row. Insert a row for it into an outbox in the same
//!   transaction, and let another task send what is in the outbox and delete it after that. If that task dies between the two, it
//!   sends again: give the recipient the event's id, so that the second one can be told from the first.
//!
//!   ```sql
//!   INSERT INTO outbox (event, recipient) VALUES ($1, $2)
//!   ```
//! - **It reads at most half of the key's rate limit**, per process.
//! - **Dropping its future** at any time is safe, for example in a `select!` with a signal.

mod cursor;
mod error;
mod handler;
mod pace;
mod source;
mod store;
mod wake;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::select;
use payments_core::{Event, EventId, Timestamp};
use webhook_verify::Verified;

pub use self::{
    cursor::Start,
    error::{BoxError, InboxError},
    handler::Handler,
    store::{InboxId, Row, Store},
};
use self::{handler::Closure, pace::Pace, wake::Wake};
use crate::{Client, ListedEvent};

/// The first and the longest wait after an error.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// The maximum length of an error in the shop's database.
const MAX_ERROR_CHARS: usize = 1000;

type Result<T> = std::result::Result<T, InboxError>;

/// Applies each event exactly once to the shop's own database; see the [module](self). Clones share wakes and the rate limit.
pub struct Inbox<S> {
    client: Client,
    store: Arc<S>,
    name: String,
    start: Start,
    poll: Duration,
    batch: usize,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    id: OnceLock<InboxId>,
    pace: Pace,
    wake: Wake,
}

/// How far an inbox is behind the list of events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// Events that are not applied yet, up to 100.
    pub events: usize,
    /// Whether there are more than that.
    pub is_more: bool,
    /// The next event, and when it happened.
    pub next: Option<(EventId, Timestamp)>,
    /// How many times in a row the next event has failed.
    pub failures: u32,
    /// Why it failed last, at most 1,000 characters.
    pub error: Option<String>,
}

impl<S: Store> Inbox<S> {
    /// Creates an inbox. The key needs the permissions `payments:read` and `account:read`.
    #[must_use]
    pub fn new(client: Client, store: S) -> Self {
        Self {
            client,
            store: Arc::new(store),
            name: "inbox".into(),
            start: Start::default(),
            poll: Duration::from_secs(10),
            batch: 1,
            shared: Arc::default(),
        }
    }

    /// Sets the name. Inboxes of different names apply each event, each with a cursor of its own. Default: `inbox`.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), shared: Arc::default(), ..self }
    }

    /// Sets where the inbox starts if its database has no cursor yet. Default: [`Start::Now`].
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets how long the inbox waits at the end of the list before it asks again. A [`wake`](Self::wake) ends the wait.
    /// Default: 10 seconds.
    #[must_use]
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Sets how many events share a transaction at most. If one of them fails, they are applied one by one. Default: 1.
    #[must_use]
    pub fn batch(mut self, events: usize) -> Self {
        self.batch = events.max(1);
        self
    }

    /// Applies events until an error that needs a person; see [`InboxError::is_retryable`]. It tries again after others.
    ///
    /// In a spawned task, `apply` is an `async fn`. The compiler takes a closure there only if its error is not [`BoxError`].
    ///
    /// # Errors
    /// If the API refuses the key, a live inbox's cursor is lost, or a later version of this crate made the database's tables.
    pub async fn run<F, E>(&self, apply: F) -> Result<()>
    where
        F: AsyncFn(&mut S::Tx, &Event) -> std::result::Result<(), E>,
        E: Into<BoxError>,
    {
        self.run_with(&Closure(apply)).await
    }

    /// [`run`](Self::run) with a [`Handler`].
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub async fn run_with<H: Handler<S::Tx>>(&self, handler: &H) -> Result<()> {
        let (mut failures, mut failed) = (0, None);
        loop {
            match self.run_once_with(handler).await {
                Ok(_) => {
                    (failures, failed) = (0, None);
                    select(pin!(self.client.inner.clock.sleep(self.poll)), pin!(self.shared.wake.wait())).await;
                }
                Err(error) if error.is_retryable() => {
                    let event = if let InboxError::Event { event, .. } = &error { Some(event.clone()) } else { None };
                    failures = if event == failed { failures + 1 } else { 1 };
                    failed = event;
                    let least = if let InboxError::Api(error) = &error { error.retry_after() } else { None };
                    let wait = self.backoff(failures).max(least.unwrap_or_default());
                    tracing::warn!(inbox = %self.name, %error, failures, ?wait, "the inbox could not go on; trying again");
                    self.client.inner.clock.sleep(wait).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies events up to the present end of the list, and returns how many. Ends at the first error.
    ///
    /// # Errors
    /// [`InboxError`].
    pub async fn run_once<F, E>(&self, apply: F) -> Result<u64>
    where
        F: AsyncFn(&mut S::Tx, &Event) -> std::result::Result<(), E>,
        E: Into<BoxError>,
    {
        self.run_once_with(&Closure(apply)).await
    }

    /// [`run_once`](Self::run_once) with a [`Handler`].
    ///
    /// # Errors
    /// [`InboxError`].
    pub async fn run_once_with<H: Handler<S::Tx>>(&self, handler: &H) -> Result<u64> {
        let id = self.id().await?;
        let mut applied = 0;
        loop {
            let cursor = self.row(id).await?.cursor;
            let Some(page) = self.page(id, &cursor).await? else { continue };
            let is_last = match (&page.next, page.items.is_empty() && page.has_more) {
                // The API examined events, and none of them is for this inbox.
                (Some(next), true) => {
                    self.move_to(id, &cursor, next.as_str()).await?;
                    false
                }
                _ => self.apply(id, cursor, &page.items, handler, &mut applied).await? && !page.has_more,
            };
            if is_last {
                return Ok(applied);
            }
        }
    }

    /// Ends the wait for the next events. Call it with each verified webhook and answer 200: the inbox reads the event from the
    /// API.
    pub fn wake<B>(&self, _webhook: &Verified<B>) {
        self.shared.wake.set();
    }

    /// Passes an event by without applying it, if it is the next one; otherwise returns false.
    ///
    /// # Errors
    /// [`InboxError`].
    pub async fn skip(&self, event: &EventId) -> Result<bool> {
        let id = self.id().await?;
        let cursor = self.row(id).await?.cursor;
        let page = self.page(id, &cursor).await?;
        let is_next = page.is_some_and(|page| page.items.first().is_some_and(|next| next.id() == event));
        Ok(is_next && self.move_to(id, &cursor, event.as_str()).await?)
    }

    /// Goes on from another place, such as after [`InboxError::CursorLost`].
    ///
    /// # Errors
    /// [`InboxError`].
    pub async fn restart(&self, at: Start) -> Result<()> {
        let id = self.id().await?;
        let cursor = self.resolve(at).await?.text();
        while !self.move_to(id, &self.row(id).await?.cursor, &cursor).await? {}
        Ok(())
    }

    /// How far the inbox is behind the list, and the error at which it stands.
    ///
    /// # Errors
    /// [`InboxError`].
    pub async fn lag(&self) -> Result<Lag> {
        let id = self.id().await?;
        let Row { cursor, failures, error } = self.row(id).await?;
        let page = self.page(id, &cursor).await?;
        let (items, is_more) = page.map_or_else(Default::default, |page| (page.items, page.has_more));
        let next = items.first().map(|event| (event.id().clone(), event.created_at()));
        Ok(Lag { events: items.len(), is_more, next, failures, error })
    }

    /// Applies the events after the cursor, and counts them. Returns false if another process has moved the cursor.
    async fn apply<H: Handler<S::Tx>>(
        &self,
        id: &InboxId,
        mut cursor: String,
        mut events: &[ListedEvent],
        handler: &H,
        applied: &mut u64,
    ) -> Result<bool> {
        let mut at_most = self.batch;
        while !events.is_empty() {
            let (together, later) = events.split_at(at_most.min(events.len()));
            match self.apply_together(id, &cursor, together, handler).await {
                Ok(Some(last)) => {
                    (cursor, events) = (last.to_string(), later);
                    *applied += together.len() as u64;
                }
                Ok(None) => return Ok(false),
                // The one that fails is among them.
                Err(InboxError::Event { .. }) if together.len() > 1 => at_most = 1,
                Err(error) => {
                    if let InboxError::Event { source, .. } = &error {
                        let text: String = source.to_string().chars().take(MAX_ERROR_CHARS).collect();
                        self.store.fail(id, &cursor, &text).await.map_err(InboxError::Store)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Applies events in one transaction. Returns the last one, or `None` if another process has moved the cursor.
    async fn apply_together<'e, H: Handler<S::Tx>>(
        &self,
        id: &InboxId,
        cursor: &str,
        events: &'e [ListedEvent],
        handler: &H,
    ) -> Result<Option<&'e EventId>> {
        let Some(last) = events.last().map(|event| event.id()) else { return Ok(None) };
        let begun = self.store.begin(id, cursor, last.as_str()).await.map_err(InboxError::Store)?;
        let Some(mut tx) = begun else { return Ok(None) };
        for event in events {
            if let Err(source) = handler.handle(&mut tx, event).await {
                let failed = InboxError::Event { event: event.id().clone(), source: source.into() };
                self.store.roll_back(tx).await.map_err(InboxError::Store)?;
                return Err(failed);
            }
        }
        let failed = |source| InboxError::Event { event: last.clone(), source };
        self.store.commit(tx, id, last.as_str()).await.map_err(failed)?;
        Ok(Some(last))
    }

    /// Moves the cursor without an effect. Returns false if another process has moved it.
    async fn move_to(&self, id: &InboxId, from: &str, to: &str) -> Result<bool> {
        let Some(tx) = self.store.begin(id, from, to).await.map_err(InboxError::Store)? else { return Ok(false) };
        self.store.commit(tx, id, to).await.map_err(InboxError::Store)?;
        Ok(true)
    }

    /// The wait after so many failures in a row: half of the interval, and a random part of the other half.
    fn backoff(&self, failures: u32) -> Duration {
        let (first, longest) = BACKOFF;
        let interval = first.saturating_mul(1 << (failures - 1).min(16)).min(longest);
        interval.mul_f64(0.5 + 0.5 * self.client.inner.jitter.next())
    }
}

impl<S> Clone for Inbox<S> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            store: Arc::clone(&self.store),
            name: self.name.clone(),
            shared: Arc::clone(&self.shared),
            ..*self
        }
    }
}

impl<S> fmt::Debug for Inbox<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("name", &self.name).field("start", &self.start).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
