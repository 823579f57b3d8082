//! Bytes in a database: several processes, several cells.
//!
//! [`protocol`] commits a batch of changes in four steps, without SQL: lock, fetch, decide, write. A decision reads and
//! writes a [`view`]. [`writer`] commits the waiting changes of a cell together, [`connection`] has the SQL, and [`reads`]
//! reads outside commits. A [`session`] is a connection that has passed the barrier, and [`connector`] finds the host for it.
//! [`moment`] reads everything in one transaction.

mod clock;
mod connection;
mod connector;
mod hosts;
mod in_use;
mod moment;
mod primary;
mod privileges;
mod protocol;
mod read_task;
mod readers;
mod reads;
mod request_counts;
mod schema;
mod session;
mod sqlstate;
mod statements;
mod target;
mod types;
mod view;
mod writer;

#[cfg(test)]
mod played;
#[cfg(test)]
mod tests;

use std::{
    ops::{Range, RangeInclusive},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use payments_core::Slot;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::task::TaskTracker;

pub use self::{
    clock::DatabaseClock,
    in_use::SourceLock,
    moment::Moment,
    schema::SchemaError,
    target::{Target, TargetError},
};
use self::{
    connection::CellConnector,
    connector::{Connector, Unreachable},
    protocol::Job,
    readers::Readers,
    schema::Held,
    session::{Purpose, Session},
    writer::{Waiting, Writer},
};
use super::{Batch, Bytes, Cell, Decision, KeyValue};
use crate::{RequestCounts, StoreError, Unfinished, ambient::Ambient};

/// How long the newest batch of a cell is remembered before it is read again.
const FRESH: Duration = Duration::from_millis(1500);
/// How often old counts of requests are dropped.
const TIDY: Duration = Duration::from_secs(60);
/// How many changes of a cell can wait. The next caller waits until there is room.
const QUEUE: usize = 4096;

pub struct Postgres {
    target: Target,
    new: NewTables,
    /// The cells, once the tables have been checked. Before that, nothing is read.
    cells: OnceLock<Vec<CellOf>>,
    is_open: watch::Sender<bool>,
    readers: Readers,
    on_commit: Arc<OnCommit>,
    /// Tells this server's batches from others'.
    server: u64,
    /// The tasks that hold connections.
    tasks: TaskTracker,
}

/// How tables are made where there are none.
#[derive(Clone, Copy)]
pub struct NewTables {
    /// How many cells share the slots.
    pub cells: u16,
    /// Statements that make views of the records, for people.
    pub views: &'static str,
}

/// A cell and the way to its writer.
struct CellOf {
    cell: u16,
    slots: RangeInclusive<u16>,
    changes: mpsc::Sender<Waiting>,
    /// The newest batch when this server's last one was committed.
    own: Arc<Mutex<Option<Seen>>>,
    /// The newest batch when it was last read. Locked during a read, so that others wait for its result.
    read: tokio::sync::Mutex<Option<Seen>>,
}

/// Called after each batch with the number of its changes and how long it took.
pub type OnCommit = dyn Fn(usize, Duration) + Send + Sync;

/// A batch that was the newest at this time or later.
type Seen = (Instant, Batch);

/// Waits until the connections of a dropped place are closed.
pub type Closing = TaskTracker;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database cannot be reached: {0}; {advice}", advice = .0.advice())]
    Unreachable(#[from] Unreachable),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    InUse(#[from] in_use::InUse),
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    /// Whether the error lasts until a person acts.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.is_lasting(),
            Self::Schema(error) => error.is_lasting(),
            Self::InUse(_) | Self::Unfinished(_) => true,
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. } | StoreError::Denied(_)),
        }
    }
}

impl Target {
    /// Whether the database has the tables. Does not make them.
    pub async fn has_tables(&self) -> Result<bool, OpenError> {
        let session = self.connect().await?;
        Ok(schema::is_there(&session, &self.schema).await?)
    }

    /// Fails if a server of this version could not work with the tables as they are. Changes nothing.
    pub async fn prove(&self) -> Result<(), OpenError> {
        let session = self.connect().await?;
        schema::expect(&session, &self.schema).await?;
        Ok(session.prove_privileges().await?)
    }
}

impl Postgres {
    /// Returns a place that has not connected yet. It is unavailable until it is [open](Self::open). The connections end when
    /// it is dropped.
    pub fn start(target: Target, new: NewTables, ambient: &dyn Ambient, on_commit: Arc<OnCommit>) -> (Self, Closing) {
        let (tasks, is_open) = (TaskTracker::new(), watch::Sender::new(false));
        let readers = Readers::start(&target, &is_open, &tasks);
        let (cells, server) = (OnceLock::new(), u64::from_be_bytes(ambient.random()));
        let closing = tasks.clone();
        tasks.close();
        (Self { target, new, cells, is_open, readers, on_commit, server, tasks }, closing)
    }

    /// Makes missing tables, refuses a role that lacks privileges, and sets `clock` by the database's clock.
    pub async fn prepare(&self, clock: Option<&DatabaseClock>) -> Result<Prepared, OpenError> {
        let session = self.target.connect().await?;
        session.or_elsewhere(schema::prepare(&session, &self.target.schema, self.new)).await?;
        session.prove_privileges().await?;
        if let Some(clock) = clock {
            clock.set_by(&session).await?;
        }
        let cells = session.or_elsewhere(schema::held(&session)).await?;
        Ok(Prepared { session, cells })
    }

    pub fn open(&self, cells: Vec<Held>) {
        self.cells.get_or_init(|| cells.into_iter().map(|held| self.start_cell(held)).collect());
        self.is_open.send_replace(true);
    }

    fn start_cell(&self, (cell, slots): Held) -> CellOf {
        let connect = CellConnector {
            connector: Connector::new(self.target.clone(), Purpose::Cell),
            cell: cell.into(),
            slots: slots.clone(),
            server: format!("{:016x}", self.server),
        };
        let (changes, queue) = mpsc::channel(QUEUE);
        let (on_commit, own) = (Arc::clone(&self.on_commit), Arc::<Mutex<Option<Seen>>>::default());
        let writer = Writer::new(connect, slots.clone(), self.server);
        let newest = Arc::clone(&own);
        self.tasks.spawn(writer.run(queue, move |changes, took, batch| {
            let seen = batch.map(|batch| (Instant::now(), batch));
            *newest.lock() = seen;
            on_commit(changes, took);
        }));
        CellOf { cell, slots, changes, own, read: tokio::sync::Mutex::default() }
    }

    async fn commit_change(&self, cell: Cell, decision: Decision, is_synced: bool) -> Result<(), StoreError> {
        let (answer, outcome) = oneshot::channel();
        let of_cell = self.cells_of()?.iter().find(|it| it.cell == cell.0).ok_or(StoreError::Stopped)?;
        let waiting = Waiting { job: Job::new(decision, is_synced), answer };
        of_cell.changes.send(waiting).await.map_err(|_| StoreError::Stopped)?;
        outcome.await.map_err(|_| StoreError::Stopped)?
    }

    /// Follows the database's clock, and drops old counts of requests. Never returns.
    pub async fn keep(&self, clock: &DatabaseClock) {
        let tidy = async {
            let mut ticks = interval(TIDY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(error) = self.drop_old_counts().await {
                    tracing::warn!(%error, "the counts of requests of earlier minutes cannot be dropped; trying again");
                }
            }
        };
        tokio::join!(clock.follow(&self.readers), tidy);
    }

    fn cells_of(&self) -> Result<&[CellOf], StoreError> {
        Ok(self.cells.get().ok_or_else(away)?)
    }

    /// How many round trips to the database there were: reads, and steps of commits.
    #[cfg(any(test, feature = "testing"))]
    pub fn trips(&self) -> u64 {
        self.target.trips.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A database with usable tables that does not serve yet.
pub struct Prepared {
    session: Session,
    pub cells: Vec<Held>,
}

impl Prepared {
    /// The database as of one moment, over the connection that prepared it.
    pub async fn into_moment(self) -> Result<(Moment, Vec<Held>), OpenError> {
        let cells = self.cells.clone();
        Ok((Moment::begin(self.session, self.cells).await?, cells))
    }
}

fn away() -> StoreError {
    StoreError::unavailable("the database cannot be reached")
}

fn cell_of<'c>(mut cells: impl Iterator<Item = (u16, &'c RangeInclusive<u16>)>, slot: Slot) -> Cell {
    // Every slot is in a cell.
    Cell(cells.find(|(_, slots)| slots.contains(&slot.number())).map_or(0, |(cell, _)| cell))
}

#[async_trait]
impl Bytes for Postgres {
    fn cells(&self) -> Result<Vec<Cell>, StoreError> {
        Ok(self.cells_of()?.iter().map(|it| Cell(it.cell)).collect())
    }

    fn cell_of(&self, slot: Slot) -> Cell {
        cell_of(self.cells.get().into_iter().flatten().map(|it| (it.cell, &it.slots)), slot)
    }

    fn packs(&self) -> bool {
        false
    }

    /// Statements of several tables go over several connections at the same time.
    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.target.count_trip();
        reads::get(&self.readers, cell.0.into(), keys).await
    }

    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        self.target.count_trip();
        reads::range(&self.readers, cell.0.into(), &keys, is_reversed, at_most).await
    }

    async fn commit(&self, cell: Cell, decision: Decision) -> Result<(), StoreError> {
        self.commit_change(cell, decision, true).await
    }

    async fn commit_unsynced(&self, cell: Cell, decision: Decision) -> Result<(), StoreError> {
        self.commit_change(cell, decision, false).await
    }

    async fn newest(&self, cell: Cell) -> Result<Option<Batch>, StoreError> {
        let of_cell = self.cells_of()?.iter().find(|it| it.cell == cell.0).ok_or(StoreError::Stopped)?;
        let mut read = of_cell.read.lock().await;
        let read = match read.filter(|(at, _)| at.elapsed() < FRESH) {
            Some(seen) => seen,
            None => {
                let at = Instant::now();
                *read.insert((at, reads::newest(&self.readers, cell.0.into()).await?))
            }
        };
        let own = *of_cell.own.lock();
        // Compare by time, not by number: numbers go back if a failover loses batches.
        let (_, newest) = own.filter(|(at, _)| *at > read.0).unwrap_or(read);
        Ok(Some(newest))
    }

    async fn prove_readiness(&self) -> Result<(), StoreError> {
        self.readers.prove_privileges().await
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        Some(self)
    }
}
