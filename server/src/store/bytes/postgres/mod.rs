//! Bytes in a database: several processes, several cells.
//!
//! [`protocol`] says how a batch of changes is committed, without a word of SQL: lock, fetch, decide, write. [`view`] is what a
//! decision reads through and writes into. [`writer`] commits the changes of a cell that wait together, [`connection`] has the
//! words, and [`reads`] reads outside commits.

mod connection;
mod protocol;
mod reads;
mod schema;
mod statements;
mod types;
mod view;
mod writer;

#[cfg(test)]
mod played;
#[cfg(test)]
mod tests;

use std::{
    ops::{Range, RangeInclusive},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use payments_core::Slot;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use self::{
    connection::CellConnector,
    writer::{Waiting, Writer},
};
use super::{Bytes, Cell, Decision, KeyValue};
use crate::{
    ambient::Ambient,
    metrics::Commits,
    store::{
        StoreError,
        postgres::{
            OpenError, Target,
            connector::{Connector, Purpose},
            readers::Readers,
            session::Session,
        },
    },
};

/// How many cells a new database has: enough for two cores to decide and commit beside each other, few enough for large
/// batches.
pub(crate) const CELLS: u16 = 8;
/// How many connections read.
const READERS: usize = 4;
/// How many changes of a cell wait; the next caller waits for a place.
const QUEUE: usize = 4096;

/// Bytes in a database.
pub(crate) struct Postgres {
    cells: Vec<CellOf>,
    readers: Readers,
    /// How many round trips to the database there were.
    trips: Arc<AtomicU64>,
}

/// A cell and the way to its writer.
struct CellOf {
    cell: u16,
    slots: RangeInclusive<u16>,
    changes: mpsc::Sender<Waiting>,
}

impl Postgres {
    /// Connects, and makes the tables with this number of cells unless they are there. The connections end when it is
    /// dropped; the tracker tells when.
    pub(in crate::store) async fn open(
        target: Target,
        cells: u16,
        ambient: &dyn Ambient,
        commits: &Commits,
    ) -> Result<(Self, TaskTracker), OpenError> {
        let session = Session::connect(&target).await?;
        let held = session.or_elsewhere(schema::prepare(&session, &target.schema, cells)).await?;
        drop(session);
        let (tasks, trips) = (TaskTracker::new(), Arc::<AtomicU64>::default());
        let readers = Readers::start(&target, vec![None; READERS], &watch::Sender::new(true), &tasks);
        let server = u64::from_be_bytes(ambient.random());
        let mut cells = Vec::new();
        for (cell, slots) in held {
            let connect = CellConnector {
                connector: Connector::new(target.clone(), Purpose::Cell),
                cell: cell.into(),
                slots: slots.clone(),
                server: format!("{server:016x}"),
                trips: Arc::clone(&trips),
            };
            let (changes, queue) = mpsc::channel(QUEUE);
            let commits = commits.clone();
            let writer = Writer::new(connect, slots.clone(), server);
            tasks.spawn(writer.run(queue, move |changes, took| commits.synced(changes, took)));
            cells.push(CellOf { cell, slots, changes });
        }
        tasks.close();
        Ok((Self { cells, readers, trips }, tasks))
    }

    /// How many round trips to the database there were: reads, and steps of commits.
    pub(in crate::store) fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    fn in_trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Bytes for Postgres {
    fn cells(&self) -> Vec<Cell> {
        self.cells.iter().map(|it| Cell(it.cell)).collect()
    }

    fn cell_of(&self, slot: Slot) -> Cell {
        let found = self.cells.iter().find(|it| it.slots.contains(&slot.number()));
        // The cells have all slots.
        Cell(found.map_or(0, |it| it.cell))
    }

    fn packs(&self) -> bool {
        false
    }

    /// Statements of several tables go over several connections at the same time.
    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.in_trip();
        reads::get(&self.readers, cell.0.into(), keys).await
    }

    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        self.in_trip();
        let found = reads::range(&self.readers, cell.0.into(), &keys, is_reversed, at_most).await?;
        Ok(found.into_iter().map(Ok).collect())
    }

    async fn commit(&self, cell: Cell, decision: Decision) -> Result<(), StoreError> {
        let (answer, outcome) = oneshot::channel();
        let of_cell = self.cells.iter().find(|it| it.cell == cell.0).ok_or(StoreError::Stopped)?;
        of_cell.changes.send(Waiting { decision, answer }).await.map_err(|_| StoreError::Stopped)?;
        outcome.await.map_err(|_| StoreError::Stopped)?
    }
}
