//! A connection to the database that has passed the barrier.
//!
//! A primary that crashes and starts again shows commits that no standby has yet. If a request was answered from them and a
//! standby was promoted then, the answer would be about something that never happened. So each connection first commits
//! something itself. This commit returns only when everything before it is as durable as the database's settings promise.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_postgres::{
    AsyncMessage, Client, Config, Error, Row, Statement,
    error::Severity,
    types::{ToSql, Type},
};
use tokio_util::task::AbortOnDropHandle;

use super::{sqlstate::describe, target::Target};

/// The settings of a connection, whatever the role's defaults are. No timeout may hit a write: a write that is cancelled
/// while it waits for a standby is reported as done. But a server that stops in the middle of a batch must lose its locks
/// after a few seconds. The timeout for this hits no commit: a transaction that commits is not idle.
const SETTINGS: &str = "SET statement_timeout = 0; SET lock_timeout = 0; \
                        SET idle_in_transaction_session_timeout = '5s'; \
                        SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
                        SET client_min_messages = 'warning'";
/// The statements of a server find their rows by key. A generic plan does not know how few keys an array has, and would read
/// whole tables.
const BY_KEY: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                      SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET jit = off";
/// How long an answer of the database may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the server waits for an answer before it looks for another primary.
const SILENT: Duration = Duration::from_secs(1);
/// A commit that needs no table. It waits for the standbys as every commit does.
const MESSAGE: &str = "SELECT pg_logical_emit_message(true, 'payments', '')";
/// Selects the name of the current WAL file. The name begins with the timeline.
const TIMELINE: &str = "SELECT pg_walfile_name(pg_current_wal_lsn())";
/// A commit to the one row that every server knows and none changes.
const BARRIER: &str = "UPDATE schema_version SET version = version";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads on any host that the URL accepts. A failover may still undo changes that are read.
    Reading,
    /// Writes on the host that accepts writes. The tables may not exist yet.
    Writing,
    /// Reads durable values on the host that accepts writes.
    Serving,
    /// Commits to a cell on the host that accepts writes.
    Cell,
}

/// Looks for another primary. If there is one, the connection that looks ends.
pub(super) type LookBeside = Box<dyn Fn() -> BoxFuture<'static, Infallible> + Send + Sync>;

/// A connection. If it breaks, every call fails, and the outcome of a commit under way is unknown.
pub(super) struct Session {
    client: Client,
    closed: watch::Receiver<()>,
    /// Carries the connection, and closes it when it is dropped.
    task: AbortOnDropHandle<()>,
    statements: Mutex<HashMap<&'static str, Statement>>,
    pub(super) target: Target,
    look_beside: LookBeside,
}

impl Session {
    /// Connects to one host and sets up the connection, without the barrier.
    pub(super) async fn open(
        target: Target,
        purpose: Purpose,
        host: usize,
        config: &Config,
        look_beside: LookBeside,
    ) -> Result<Self, Error> {
        let (open, closed) = watch::channel(());
        let (primary, mut ends) = (Arc::clone(&target.primary), Box::pin(target.primary.ends(host)));
        let (client, mut connection) = config.connect(target.tls.clone()).await?;
        // A warning at the start, for example about the version of collations, is not about a commit.
        let is_set_up = Arc::new(AtomicBool::new(false));
        let has_begun = Arc::clone(&is_set_up);
        let task = tokio::spawn(async move {
            let _open = open;
            loop {
                let message = tokio::select! {
                    biased;
                    () = &mut ends => return,
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
                        // connection reads it. So no answer of a connection is certain until it passes the barrier again.
                        tracing::warn!(notice = notice.message(), "the database warns; its connections are dropped");
                        primary.doubt();
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
        if purpose != Purpose::Reading {
            client.batch_execute(BY_KEY).await?;
        }
        is_set_up.store(true, Ordering::Relaxed);
        Ok(Self { client, closed, task, statements: Mutex::default(), target, look_beside })
    }

    /// Passes the barrier without the tables, which may not be there.
    pub(super) async fn commit_something(&self) -> Result<(), Error> {
        match self.client.batch_execute(MESSAGE).await {
            // The role may not be allowed to call the function. Then a failover may still undo changes that a command reads.
            Err(error) if error.as_db_error().is_some() && !self.is_closed() => Ok(()),
            outcome => outcome,
        }
    }

    /// The timeline of the host; `None` if the database does not tell it.
    pub(super) async fn timeline(&self) -> Result<Option<u32>, Error> {
        let rows = match self.client.query_typed(TIMELINE, &[]).await {
            Err(error) if error.as_db_error().is_some() && !self.is_closed() => return Ok(None),
            rows => rows?,
        };
        let file: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(file.and_then(|name| u32::from_str_radix(name.get(..8)?, 16).ok()))
    }

    /// Passes the barrier: afterwards everything that this connection reads is durable.
    pub(super) async fn pass_barrier(&self) -> Result<(), Error> {
        self.client.batch_execute(BARRIER).await
    }

    /// The process of the database that serves this connection.
    pub(super) async fn backend(&self) -> Result<Backend, Error> {
        let sql = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let rows = self.client.query_typed(sql, &[]).await?;
        let row = rows.first();
        Ok(Backend(row.map(|row| Ok::<_, Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?))
    }

    /// Ends the process of an earlier connection, which may hold locks in a transaction. A process that waits for a standby
    /// is left alone: its end would show everyone a commit that no standby has. Returns whether it waits.
    pub(super) async fn end_backend(&self, Backend(backend): &Backend) -> Result<bool, Error> {
        let Some((pid, begun)) = backend else { return Ok(false) };
        let sql = "SELECT CASE WHEN wait_event = 'ClientRead' THEN NOT pg_terminate_backend(pid) \
                   ELSE coalesce(wait_event = 'SyncRep' OR wait_event_type = 'Lock', false) END \
                   FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2";
        let rows = self.client.query_typed(sql, &[(pid, Type::INT4), (begun, Type::TEXT)]).await?;
        rows.first().map_or(Ok(false), |row| row.try_get(0))
    }

    /// The outcome of calls that are answered in time. If they are not, closes the connection: the database or the way to it
    /// is gone. The database is not told to stop, so a commit may still happen.
    pub(super) async fn in_time<T>(&self, calls: impl Future<Output = T>) -> Option<T> {
        let outcome = timeout(ANSWER, self.or_elsewhere(calls)).await.ok();
        if outcome.is_none() {
            tracing::warn!("the database does not answer; a connection to it is closed");
            self.task.abort();
        }
        outcome
    }

    /// The outcome of calls that may take long. While the database is silent, looks whether another host has become the
    /// primary. If so, the connection is closed and the calls fail.
    pub(super) async fn or_elsewhere<T>(&self, calls: impl Future<Output = T>) -> T {
        let mut calls = pin!(calls);
        if let Ok(outcome) = timeout(SILENT, &mut calls).await {
            return outcome;
        }
        tokio::select! {
            biased;
            outcome = calls => outcome,
            never = (self.look_beside)() => match never {},
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether this error ends the connection. If so, waits until it is closed.
    pub(super) async fn breaks_with(&self, error: &Error) -> bool {
        let is_fatal = error.as_db_error().is_some_and(|said| said.parsed_severity() == Some(Severity::Fatal));
        if is_fatal {
            // This closes the connection if the database does not.
            let _ = self.in_time(self.closed()).await;
        }
        is_fatal || self.is_closed()
    }

    pub(super) async fn closed(&self) {
        let mut closed = self.closed.clone();
        while closed.changed().await.is_ok() {}
    }

    /// Runs a statement, which is prepared at its first use.
    pub(super) async fn query(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    pub(super) fn known(&self, sql: &'static str) -> Option<Statement> {
        self.statements.lock().get(sql).cloned()
    }

    pub(super) async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.known(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// The process of the database that serves a connection. Its start time tells it from a later process with the same number.
#[derive(Clone)]
pub(super) struct Backend(Option<(i32, String)>);
