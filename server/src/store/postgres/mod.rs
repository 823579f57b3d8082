//! The store on PostgreSQL: any number of servers on one database, none of them special.
//!
//! `writer` commits the changes that wait together. `load` reads and locks the rows that they need, `batch` decides them one
//! after another, as an embedded store does, and `save` writes what came of it. `read` and `claims` are single statements.
//! `session` is a connection that has passed the barrier. `snapshot` reads everything in one transaction, for `check` and for
//! an export.

mod batch;
mod check;
mod claims;
mod clock;
mod earlier_batches;
mod key_cache;
mod load;
mod names;
mod prune;
mod read;
mod readers;
mod record_columns;
mod request_counts;
mod rows;
mod save;
mod schema;
mod session;
mod snapshot;
mod statements;
mod target;
mod verbs;
mod writer;

use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Mutex, mpsc};
use tokio_util::task::TaskTracker;

pub(crate) use self::{
    clock::DatabaseClock,
    schema::SchemaError,
    snapshot::PostgresSnapshot,
    target::{Target, TargetError},
};
use self::{
    key_cache::KeyCache,
    readers::Readers,
    session::{Session, describe},
    writer::{Job, Writer},
};
use crate::{ambient::Ambient, metrics::Commits};

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
}

/// Waits for a store to be closed.
pub(crate) struct Closing(TaskTracker);

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The database cannot be reached.
    #[error("the database cannot be reached: {0}; check the URL, and that the database runs and accepts this user")]
    Unreachable(String),
    /// Its schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl PostgresStore {
    /// Connects, and makes or updates the tables.
    pub(crate) async fn open(
        target: Target,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        let unreachable = |error| OpenError::Unreachable(describe(&error));
        let session = Session::connect(&target).await.map_err(unreachable)?;
        schema::prepare(&session, &target.schema).await?;
        let tasks = TaskTracker::new();
        let readers = Readers::start(&target, (0..READERS).map(|_| ambient.random()).collect(), &tasks);
        let (changes, queue) = mpsc::channel(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..WRITERS {
            tasks.spawn(Writer::new(target.clone(), ambient.random(), commits.clone()).run(Arc::clone(&queue)));
        }
        tasks.close();
        Ok((
            Self { target, ambient, readers, keys: KeyCache::default(), outbox: commits.outbox, changes },
            Closing(tasks),
        ))
    }
}

impl Closing {
    /// Waits until the connections are closed, once the store is dropped.
    pub(crate) async fn wait(self) {
        self.0.wait().await;
    }
}
