//! The store on PostgreSQL: the [layout](super::layout) over bytes in cells, for any number of equal servers.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

pub use super::bytes::postgres::{Closing, DatabaseClock, OpenError, SourceLock, Target, TargetError};
use super::{
    Migration,
    bytes::postgres::{Moment, NewTables, Postgres},
    layout::{Claims, Placed},
};
use crate::ambient::Ambient;

/// Eight cells are enough for two cores to commit in parallel, and few enough for large batches.
const NEW: NewTables = NewTables { cells: 8, views: include_str!("postgres.sql") };

pub type PostgresStore = Placed<Postgres>;
/// A store in a database as of one moment.
pub type PostgresSnapshot = Placed<Moment>;

impl PostgresStore {
    /// Returns a store that has not connected yet. It is unavailable until it has [begun](Self::begin). `on_commit` is called
    /// after each batch with the number of its changes and how long it took.
    pub fn start(
        target: Target,
        ambient: &dyn Ambient,
        on_commit: impl Fn(usize, Duration) + Send + Sync + 'static,
    ) -> (Self, Closing) {
        let (bytes, closing) = Postgres::start(target, NEW, ambient, Arc::new(on_commit));
        let first_epoch = AtomicU64::new(u64::from_be_bytes(ambient.random()));
        (Self::new(bytes, Claims::Stored(Arc::new(first_epoch))), closing)
    }

    /// Connects a [started](Self::start) store, makes missing tables, and sets `clock` by the database's clock. Refuses a
    /// store into which a migration is not finished, and a role that lacks privileges.
    pub async fn begin(&self, clock: Option<&DatabaseClock>) -> Result<(), OpenError> {
        let (moment, cells) = self.bytes.prepare(clock).await?.into_moment().await?;
        Migration::refuse_unfinished(PostgresSnapshot::as_of(moment).last_migration().await?)?;
        self.bytes.open(cells);
        Ok(())
    }

    pub async fn open(target: Target, ambient: &dyn Ambient) -> Result<(Self, Closing), OpenError> {
        let (store, closing) = Self::start(target, ambient, |_, _| ());
        store.begin(None).await?;
        Ok((store, closing))
    }

    /// As [`open`](Self::open), even if a migration into the store is not finished.
    pub async fn open_to_migrate(target: Target, ambient: &dyn Ambient) -> Result<(Self, Closing), OpenError> {
        let (store, closing) = Self::start(target, ambient, |_, _| ());
        let prepared = store.bytes.prepare(None).await?;
        store.bytes.open(prepared.cells);
        Ok((store, closing))
    }

    /// Follows the database's clock, and drops old counts of requests. Never returns.
    pub async fn keep(self: Arc<Self>, clock: Arc<DatabaseClock>) {
        self.bytes.keep(&clock).await;
    }
}

impl PostgresSnapshot {
    /// Connects to any host of the target, such as a standby. Refuses a store into which a migration is not finished.
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        let snapshot = Self::open_to_migrate(target).await?;
        Migration::refuse_unfinished(snapshot.last_migration().await?)?;
        Ok(snapshot)
    }

    /// As [`open`](Self::open), even if a migration into the store is not finished.
    pub async fn open_to_migrate(target: &Target) -> Result<Self, OpenError> {
        Ok(Self::as_of(Moment::open(target).await?))
    }

    fn as_of(moment: Moment) -> Self {
        Self::new(moment, Claims::InMemory(Arc::default()))
    }
}
