//! Connections for reading. Each passes the barrier before it answers anything.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_postgres::{Row, types::ToSql};
use tokio_util::task::TaskTracker;

use super::{
    connector::Connector,
    reads::Rows,
    session::{Purpose, Session},
    target::Target,
};
use crate::StoreError;

const READERS: usize = 4;
/// How long a read waits for a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries to connect.
const RECONNECT: Duration = Duration::from_millis(200);

/// The connections for reading. A read takes the next one in turn; a connection carries many reads at a time.
pub(super) struct Readers {
    sessions: Vec<watch::Receiver<Option<Arc<Session>>>>,
    next: std::sync::atomic::AtomicUsize,
    is_open: watch::Receiver<bool>,
}

impl Readers {
    /// Starts a task for each connection, which waits until the store is open. The tasks end when the readers are dropped.
    pub(super) fn start(target: &Target, is_open: &watch::Sender<bool>, tasks: &TaskTracker) -> Self {
        let sessions = (0..READERS).map(|_| {
            let (shown, session) = watch::channel(None);
            let connector = Connector::new(target.clone(), Purpose::Serving);
            let mut opened = is_open.subscribe();
            tasks.spawn(async move {
                if opened.wait_for(|is_open| *is_open).await.is_ok() {
                    keep_connected(connector, shown).await;
                }
            });
            session
        });
        Self { sessions: sessions.collect(), next: 0.into(), is_open: is_open.subscribe() }
    }

    /// The next connection that is not known to be broken.
    async fn session(&self) -> Result<Arc<Session>, StoreError> {
        let nth = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % self.sessions.len();
        let mut shown = self.sessions[nth].clone();
        let is_open = |session: &Option<Arc<Session>>| session.as_ref().is_some_and(|session| !session.is_closed());
        let away = || StoreError::unavailable("the database cannot be reached");
        if !*self.is_open.borrow() {
            return Err(away());
        }
        let session = timeout(PATIENCE, shown.wait_for(is_open)).await.map_err(|_| away())?;
        session.map_err(|_| StoreError::Stopped)?.clone().ok_or_else(away)
    }

    pub(super) async fn prove_privileges(&self) -> Result<(), StoreError> {
        let session = self.session().await?;
        let proven = session.in_time(session.prove_privileges()).await;
        proven.unwrap_or_else(|| Err(StoreError::unavailable("the database does not answer")))
    }
}

impl Rows for Readers {
    /// Runs a statement that reads. If the connection breaks meanwhile, runs it again on another one. All may break one after
    /// another, for example when the database restarts. After a connection that does not answer, there is one more try.
    async fn rows(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut broken = 0;
        loop {
            let session = self.session().await?;
            match session.in_time(session.read(sql, parameters)).await {
                Some(Ok(rows)) => return Ok(rows),
                None if broken == 0 => {}
                None => return Err(StoreError::unavailable("the database does not answer")),
                Some(Err(error)) => {
                    if broken == self.sessions.len() || !session.breaks_with(&error).await {
                        return Err(session.name_privileges(error.into()).await);
                    }
                }
            }
            broken += 1;
        }
    }
}

/// Connects, shows the connection, and connects again when it breaks.
async fn keep_connected(connector: Arc<Connector>, shown: watch::Sender<Option<Arc<Session>>>) {
    let mut said = None;
    loop {
        let connected = tokio::select! {
            connected = connector.connect() => connected,
            () = shown.closed() => return,
        };
        match connected {
            Ok(session) => {
                said = None;
                let session = Arc::new(session);
                shown.send_replace(Some(Arc::clone(&session)));
                tokio::select! {
                    () = session.closed() => {}
                    () = shown.closed() => return,
                }
                shown.send_replace(None);
            }
            Err(error) => {
                let error = error.to_string();
                // Log each reason once, not each try.
                if said.as_ref() != Some(&error) {
                    tracing::warn!(%error, "the database cannot be reached");
                    said = Some(error);
                }
                sleep(RECONNECT).await;
            }
        }
    }
}
