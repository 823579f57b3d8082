//! Where an inbox stands, and which events are next.

use payments_core::{Environment, ErrorCode, EventPage};

use super::{Inbox, InboxError, InboxId, Result, Row, Start, Store, cursor::Cursor};
use crate::ListedEvent;

/// How many events a request asks for.
const PAGE: u8 = 100;

impl<S: Store> Inbox<S> {
    /// The events after a cursor. `None` if the API does not know it, and the inbox of a sandbox begins anew.
    pub(super) async fn page(&self, id: &InboxId, cursor: &str) -> Result<Option<EventPage<ListedEvent>>> {
        let list = self.client.events().list().limit(PAGE);
        let list = match Cursor::parse(cursor).ok_or_else(|| InboxError::CursorInvalid(cursor.into()))? {
            Cursor::Beginning => list,
            Cursor::Since(time) => list.created_after(time),
            Cursor::After(event) => list.after(&event),
        };
        self.shared.pace.wait(&self.client.inner.clock).await;
        match list.send_for_response().await {
            Ok(response) => {
                self.shared.pace.update(&response, self.client.inner.clock.elapsed());
                Ok(Some(response.value))
            }
            Err(error) if error.code() != Some(&ErrorCode::CursorUnknown) && error.status() != Some(410) => {
                Err(error.into())
            }
            Err(source) if id.environment == Environment::Live => {
                Err(InboxError::CursorLost { cursor: cursor.into(), source })
            }
            Err(_) => {
                tracing::warn!(inbox = %self.name, cursor, "the sandbox was emptied, so the inbox begins anew");
                self.move_to(id, cursor, &Cursor::Beginning.text()).await?;
                Ok(None)
            }
        }
    }

    /// The inbox's row. Inserts it at the first start.
    pub(super) async fn row(&self, id: &InboxId) -> Result<Row> {
        loop {
            if let Some(row) = self.store.read(id).await.map_err(InboxError::Store)? {
                return Ok(row);
            }
            let cursor = self.resolve(self.start).await?.text();
            self.store.insert(id, &cursor).await.map_err(InboxError::Store)?;
        }
    }

    pub(super) async fn resolve(&self, start: Start) -> Result<Cursor> {
        Ok(match start {
            Start::Now => self.client.events().end().await?.into(),
            Start::Since(time) => Cursor::Since(time),
            Start::Beginning => Cursor::Beginning,
        })
    }

    /// The inbox's id. The first call prepares the store.
    pub(super) async fn id(&self) -> Result<&InboxId> {
        if let Some(id) = self.shared.id.get() {
            return Ok(id);
        }
        if !self.store.prepare().await.map_err(InboxError::Store)? {
            return Err(InboxError::TooNew);
        }
        let workspace = self.client.account().retrieve().await?.workspace.id;
        let id = InboxId { name: self.name.clone(), workspace, environment: self.client.environment() };
        Ok(self.shared.id.get_or_init(|| id))
    }
}
