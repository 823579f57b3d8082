//! A connection to the database that has passed the barrier.
//!
//! A primary that crashes and starts again shows commits that no standby has yet. If such a row answered a request and a
//! standby was promoted then, the answer would be of something that never happened. So each connection first commits
//! something itself, which returns only when everything before it is as durable as the database's settings promise.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::timeout};
use tokio_postgres::{
    AsyncMessage, Client, Config, Error, Row, Statement,
    error::Severity,
    types::{ToSql, Type},
};

use tokio_util::task::AbortOnDropHandle;

use super::target::Target;

/// What a connection needs of the database, whatever the role's defaults are. No timeout may hit a write: a write that is
/// cancelled while it waits for a standby is reported as done. But a server that stops in the middle of a batch may hold its
/// locks for a few seconds only. That timeout hits no commit: a transaction that commits is not idle.
const SETTINGS: &str = "SET statement_timeout = 0; SET lock_timeout = 0; \
                        SET idle_in_transaction_session_timeout = '5s'; \
                        SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
                        SET client_min_messages = 'warning'; SET payments.lists_events = 'on'; \
                        SET payments.counts_days = 'on'";
/// The statements of a server find their rows by key. A plan that is kept for all arrays does not know how few they are, and would
/// read whole tables to join them.
const BY_KEY: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                      SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET jit = off";
/// How long an answer of the database may take.
const ANSWER: Duration = Duration::from_secs(10);
const BARRIER: &str = "INSERT INTO connection (id, batch, opened, seen_at) VALUES ($1, 0, 1, now()) ON CONFLICT (id) DO \
                       UPDATE SET opened = connection.opened + 1, seen_at = now() RETURNING batch";

/// A connection. If it breaks, every call fails, and the outcome of a commit under way is unknown.
pub(super) struct Session {
    client: Client,
    /// Ends with the connection.
    closed: watch::Receiver<()>,
    /// Carries the connection, and closes it when it is dropped.
    task: AbortOnDropHandle<()>,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Session {
    /// Connects and sets up the connection, without the barrier.
    pub(super) async fn connect(target: &Target) -> Result<Self, Error> {
        let session = Self::connect_by(&target.for_writing(), target).await?;
        session.client.batch_execute(BY_KEY).await?;
        Ok(session)
    }

    /// Connects to any host of the URL, such as a standby. What such a connection reads may yet be undone by a failover.
    pub(super) async fn connect_to_any(target: &Target) -> Result<Self, Error> {
        Self::connect_by(&target.config, target).await
    }

    async fn connect_by(config: &Config, target: &Target) -> Result<Self, Error> {
        let (client, mut connection) = config.connect(target.tls.clone()).await?;
        let (open, closed) = watch::channel(());
        let (doubts, mut doubted) = (Arc::clone(&target.doubts), target.doubts.subscribe());
        // A warning at the start, as of another version of the collations, is about the database and not about a commit.
        let is_set_up = Arc::new(AtomicBool::new(false));
        let has_begun = Arc::clone(&is_set_up);
        let task = tokio::spawn(async move {
            let _open = open;
            loop {
                let message = tokio::select! {
                    biased;
                    _ = doubted.changed() => return,
                    message = poll_fn(|context| connection.poll_message(context)) => message,
                };
                let Some(message) = message else { return };
                match message {
                    Ok(AsyncMessage::Notice(notice)) if notice.parsed_severity() == Some(Severity::Warning) => {
                        if !has_begun.load(Ordering::Relaxed) {
                            tracing::warn!(notice = notice.message(), "the database warns");
                            continue;
                        }
                        // A commit that no longer waits for a standby is reported as done, with a warning, and every
                        // connection reads it. So nothing that any connection says is certain, before it passes the
                        // barrier again.
                        tracing::warn!(notice = notice.message(), "the database warns; its connections are dropped");
                        doubts.send_replace(());
                        return;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(error = %describe(&error), "a connection to the database broke");
                        return;
                    }
                }
            }
        });
        let task = AbortOnDropHandle::new(task);
        client.batch_execute(SETTINGS).await?;
        let standbys: &str = "SELECT set_config('synchronous_commit', 'on', false) WHERE \
                              current_setting('synchronous_commit') IN ('off', 'local')";
        client.batch_execute(standbys).await?;
        client.batch_execute(&format!("SET search_path = {}", target.schema)).await?;
        is_set_up.store(true, Ordering::Relaxed);
        Ok(Self { client, closed, task, statements: Mutex::default() })
    }

    /// Passes the barrier: afterwards everything that this connection reads is durable. Returns the number of the last batch
    /// that was committed under this id. Waits for a transaction that an earlier connection of this id has under way.
    pub(super) async fn pass_barrier(&self, id: &[u8; 16]) -> Result<i64, Error> {
        let rows = self.client.query_typed(BARRIER, &[(&&id[..], Type::BYTEA)]).await?;
        rows.first().map_or(Ok(0), |row| row.try_get(0))
    }

    /// Removes the connection's row.
    pub(super) async fn leave(&self, id: &[u8; 16]) -> Result<(), Error> {
        self.client.query_typed("DELETE FROM connection WHERE id = $1", &[(&&id[..], Type::BYTEA)]).await.map(drop)
    }

    /// The process of the database that serves this connection.
    pub(super) async fn backend(&self) -> Result<Backend, Error> {
        let sql = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let rows = self.client.query_typed(sql, &[]).await?;
        let row = rows.first();
        Ok(Backend(row.map(|row| Ok::<_, Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?))
    }

    /// Ends the process of an earlier connection, which may wait for us with a transaction under way. One that waits for a
    /// standby is left alone: its end would show everyone a commit that no standby has.
    pub(super) async fn end_backend(&self, Backend(backend): &Backend) -> Result<(), Error> {
        let Some((pid, begun)) = backend else { return Ok(()) };
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2 AND \
                   wait_event = 'ClientRead'";
        self.client.query_typed(sql, &[(pid, Type::INT4), (begun, Type::TEXT)]).await.map(drop)
    }

    /// The outcome of calls whose answers come in time. If they do not, the connection is closed: the database or the way to it
    /// is gone. The database is not told to stop, so a commit may still happen.
    pub(super) async fn in_time<T>(&self, calls: impl Future<Output = T>) -> Option<T> {
        let outcome = timeout(ANSWER, calls).await.ok();
        if outcome.is_none() {
            tracing::warn!("the database does not answer; a connection to it is closed");
            self.task.abort();
        }
        outcome
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether a connection that answered with this error is closed, or is about to be: then waits until it is.
    pub(super) async fn breaks_with(&self, error: &Error) -> bool {
        let is_fatal = error.as_db_error().is_some_and(|said| said.parsed_severity() == Some(Severity::Fatal));
        if is_fatal {
            // Closes it if the database does not.
            let _ = self.in_time(self.closed()).await;
        }
        is_fatal || self.is_closed()
    }

    /// Returns when the connection is closed.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.clone();
        while closed.changed().await.is_ok() {}
    }

    /// Runs a statement, which is prepared at its first use.
    pub(super) async fn query(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    /// A statement that is prepared.
    pub(super) fn known(&self, sql: &'static str) -> Option<Statement> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
    }

    pub(super) async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.known(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// The process of the database that serves a connection, told from later ones with the same number by its begin.
#[derive(Clone)]
pub(super) struct Backend(Option<(i32, String)>);

/// An error with what the database said: its own text is only a kind.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": "),
    }
}
