//! The store on PostgreSQL: any number of servers on one database, none of them special.
//!
//! `writer` commits the changes that wait together. `load` reads and locks the rows that they need, `batch` decides them one
//! after another, as an embedded store does, and `save` writes what came of it. `read` and `claims` are single statements.
//! `session` is a connection that has passed the barrier. `snapshot` reads everything in one transaction, for `check` and for
//! an export. A migration reads `records`, and `take_in` writes them.

mod batch;
mod check;
mod claims;
mod clock;
pub(in crate::store) mod connector;
mod days;
mod earlier_batches;
mod events;
mod hosts;
mod in_use;
mod key_cache;
mod load;
mod names;
mod payment_blocks;
mod payment_list;
mod payment_part;
mod primary;
mod privileges;
mod prune;
mod read;
mod read_task;
pub(in crate::store) mod readers;
mod record_columns;
mod records;
mod request_counts;
mod rows;
mod save;
mod schema;
pub(in crate::store) mod session;
mod snapshot;
pub(in crate::store) mod sqlstate;
mod statements;
mod take_in;
mod target;
mod transactions;
mod verbs;
mod writer;

use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::task::TaskTracker;

pub(crate) use self::{
    clock::DatabaseClock,
    in_use::SourceLock,
    schema::SchemaError,
    snapshot::PostgresSnapshot,
    target::{Target, TargetError},
};
use self::{
    connector::Unreachable,
    key_cache::KeyCache,
    readers::Readers,
    records::MIGRATION,
    session::Session,
    sqlstate::store_error,
    writer::{Job, Writer},
};
use crate::{
    ambient::Ambient,
    metrics::Commits,
    store::{Migration, StoreError, Unfinished},
};

/// How many batches are under way at a time: one is decided while the other waits for the disk.
const WRITERS: usize = 2;
/// How many connections read.
const READERS: usize = 4;
/// How many changes wait; the next caller waits for a place.
const QUEUE: usize = 4096;

/// A store in a database.
pub(crate) struct PostgresStore {
    target: Target,
    ambient: Arc<dyn Ambient>,
    readers: Readers,
    keys: KeyCache,
    /// How many deliveries are pending, as of the last look.
    outbox: Gauge,
    changes: mpsc::Sender<Job>,
    /// Whether the tables were found as this server needs them. Nothing is asked before.
    is_open: watch::Sender<bool>,
}

/// Waits for a store to be closed.
pub(crate) struct Closing(TaskTracker);

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The database cannot be reached.
    #[error("the database cannot be reached: {0}; {advice}", advice = .0.advice())]
    Unreachable(#[from] Unreachable),
    /// Its schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Others use it.
    #[error(transparent)]
    InUse(#[from] in_use::InUse),
    /// It is a part of another store.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    /// Whether time does not mend it: a person must.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.is_lasting(),
            Self::Schema(error) => error.is_lasting(),
            Self::InUse(_) | Self::Unfinished(_) => true,
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. } | StoreError::Denied(_)),
        }
    }
}

impl PostgresStore {
    /// Whether a database has the tables of a store. Makes none.
    pub(crate) async fn is_there(target: &Target) -> Result<bool, OpenError> {
        let session = Session::connect(target).await?;
        Ok(schema::is_there(&session, &target.schema).await?)
    }

    /// Fails if a server of this version could not work with the tables as they are. Changes nothing.
    pub(crate) async fn prove(target: &Target) -> Result<(), OpenError> {
        let session = Session::connect(target).await?;
        schema::expect(&session, &target.schema).await?;
        Ok(session.prove_privileges().await?)
    }

    /// Connects, and makes or updates the tables. Refuses a part of another store, and a role that lacks privileges.
    pub(crate) async fn open(
        target: Target,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        let (store, closing) = Self::start(target, ambient, commits);
        store.begin(None).await?;
        Ok((store, closing))
    }

    /// Connects to the database of a store that was [started](Self::start), as [`open`](Self::open) does, and sets a clock by it.
    pub(crate) async fn begin(&self, clock: Option<&DatabaseClock>) -> Result<(), OpenError> {
        let session = Self::prepare(&self.target).await?;
        refuse_unfinished(&session).await?;
        session.prove_privileges().await?;
        if let Some(clock) = clock {
            clock.set_by(&session).await?;
        }
        self.is_open.send_replace(true);
        Ok(())
    }

    /// As [`open`](Self::open), even if it is a part of another store.
    pub(crate) async fn open_to_migrate(
        target: Target,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        Self::prepare(&target).await?;
        let (store, closing) = Self::start(target, ambient, commits);
        store.is_open.send_replace(true);
        Ok((store, closing))
    }

    async fn prepare(target: &Target) -> Result<Session, OpenError> {
        let session = Session::connect(target).await?;
        session.or_elsewhere(schema::prepare(&session, &target.schema)).await?;
        Ok(session)
    }

    /// A store that has not asked its database for anything yet. Until it has [begun](Self::begin), it is unavailable.
    pub(crate) fn start(target: Target, ambient: Arc<dyn Ambient>, commits: Commits) -> (Self, Closing) {
        let (tasks, is_open) = (TaskTracker::new(), watch::Sender::new(false));
        let ids = (0..READERS).map(|_| Some(ambient.random())).collect();
        let readers = Readers::start(&target, ids, &is_open, &tasks);
        let (changes, queue) = mpsc::channel(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..WRITERS {
            let writer = Writer::new(target.clone(), ambient.random(), commits.clone());
            tasks.spawn(writer.run(Arc::clone(&queue)));
        }
        tasks.close();
        let store =
            Self { target, ambient, readers, keys: KeyCache::default(), outbox: commits.outbox, changes, is_open };
        (store, Closing(tasks))
    }
}

/// Refuses a database into which a migration is not finished.
async fn refuse_unfinished(session: &Session) -> Result<(), OpenError> {
    let rows = session.query(MIGRATION, &[]).await.map_err(|error| store_error(&error))?;
    let found = rows.first().map(|row| load::parse("migration", read::field(row, 0)?)).transpose()?;
    Ok(Migration::refuse_unfinished(found)?)
}

impl Closing {
    /// Waits until the connections are closed, once the store is dropped.
    pub(crate) async fn wait(self) {
        self.0.wait().await;
    }
}
