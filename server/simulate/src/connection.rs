//! A server's connection to the database: a place for bytes that is sometimes slow, sometimes unreachable, and sometimes does
//! not say whether a commit was made.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use payments_store::{
    Result, StoreError,
    bytes::{Bytes, Cell, Decision, KeyValue},
    embedded::EmbeddedStore,
};
use tokio::select;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Trouble,
    database::Database,
    fate::Fate,
    life::{Life, Way},
    unknown::Unknown,
};

/// In one of this many commits, the decision first runs before its values are known.
const UNKNOWN_AT_FIRST: u32 = 4;

/// One server's connection.
pub(super) struct Connection {
    pub(super) fate: Arc<Fate>,
    pub(super) database: Arc<Database>,
    pub(super) life: Arc<Life>,
}

impl Connection {
    /// The database, once the request has reached it.
    async fn reach(&self) -> Result<(Arc<EmbeddedStore>, CancellationToken)> {
        self.life.runs().await;
        if !self.fate.may_ask() {
            self.fate.count(|counts| counts.endless += 1);
            std::future::pending::<()>().await;
        }
        if self.is_lost().await {
            return Err(StoreError::unavailable("the database cannot be reached"));
        }
        if self.fate.strikes(Trouble::DatabaseLink, 2_000) {
            self.fate.wait(50..=12_000).await;
        } else if self.fate.strikes(Trouble::DatabaseLink, 4_000) {
            return Err(StoreError::unavailable("the connection to the database broke"));
        }
        self.database.current().ok_or_else(|| StoreError::unavailable("the database is down"))
    }

    /// Waits for the database as long as the server does. Returns whether the server has lost it.
    async fn is_lost(&self) -> bool {
        match self.life.way() {
            Way::Open => false,
            Way::Closed => {
                self.fate.wait(20..=3_000).await;
                true
            }
            Way::Silent => {
                self.fate.wait(1_000..=20_000).await;
                // If the way is open again, the database goes on, or another host has become the primary.
                self.life.way() != Way::Open
            }
        }
    }

    /// Reads, and brings the server the answer.
    async fn read<T, F>(&self, read: impl FnOnce(Arc<EmbeddedStore>) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let (store, _) = self.reach().await?;
        let outcome = read(store).await;
        self.life.runs().await;
        match self.is_lost().await {
            true => Err(StoreError::unavailable("the database cannot be reached")),
            false => outcome,
        }
    }
}

#[async_trait]
impl Bytes for Connection {
    /// As the embedded store's bytes do.
    fn packs(&self) -> bool {
        true
    }

    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>> {
        self.read(|store| async move { store.place_simulated().get(cell, keys).await }).await
    }

    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue>>> {
        self.read(|store| async move { store.place_simulated().range(cell, keys, is_reversed, at_most).await }).await
    }

    /// Without an answer, the outcome of the commit is unknown.
    ///
    /// The commit is a task of its own: a dead server's tasks are not polled again, and would hold the store for ever.
    async fn commit(&self, cell: Cell, mut decision: Decision) -> Result<()> {
        if self.fate.one_in(UNKNOWN_AT_FIRST) {
            // This run does not count, because its values are not known.
            let _ = decision(&mut Unknown::default());
        }
        let (store, ended) = self.reach().await?;
        self.database.commit_waits();
        let commit = async move { store.place_simulated().commit(cell, decision).await };
        let outcome = AbortOnDropHandle::new(tokio::spawn(async move {
            select! {
                biased;
                outcome = commit => outcome,
                () = ended.cancelled() => Err(StoreError::Unknown),
            }
        }));
        let outcome = outcome.await.unwrap_or(Err(StoreError::Unknown));
        self.life.runs().await;
        if self.is_lost().await || self.fate.strikes(Trouble::DatabaseLink, 2_000) {
            return Err(StoreError::Unknown);
        }
        match outcome {
            // Only the next opening of the store shows whether it was made.
            Err(StoreError::Stopped) => Err(StoreError::Unknown),
            outcome => outcome,
        }
    }
}
