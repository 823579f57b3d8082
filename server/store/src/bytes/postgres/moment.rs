//! The database as of one moment: one transaction that only reads, while servers go on.

use std::ops::Range;

use async_trait::async_trait;
use payments_core::Slot;
use tokio::runtime::Handle;
use tokio_postgres::{Row, types::ToSql};

use super::{
    OpenError, Target, cell_of,
    reads::{self, Rows},
    schema::{self, Held},
    session::Session,
};
use crate::{
    StoreError,
    bytes::{AtRest, Bytes, Cell, Decision, KeyValue},
};

/// A reader may pause for longer than a server's transaction may.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
const COUNT: &str = "SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM entry)";

/// A transaction that sees the database as of its beginning. It ends when this is dropped.
pub struct Moment {
    session: Session,
    cells: Vec<Held>,
    /// Runs the connection, while its caller waits.
    runtime: Handle,
}

impl Moment {
    /// Connects to any host of the target, and begins the transaction. A standby can serve it, since it writes nothing, not
    /// even the barrier's commit.
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        let session = target.connect_to_any().await?;
        schema::expect(&session, &target.schema).await?;
        let cells = schema::held(&session).await?;
        Ok(Self::begin(session, cells).await?)
    }

    pub(super) async fn begin(session: Session, cells: Vec<Held>) -> Result<Self, StoreError> {
        session.client().batch_execute(BEGIN).await?;
        Ok(Self { session, cells, runtime: Handle::current() })
    }
}

impl Rows for Moment {
    async fn rows(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        Ok(self.session.query(sql, parameters).await?)
    }
}

#[async_trait]
impl Bytes for Moment {
    fn cells(&self) -> Result<Vec<Cell>, StoreError> {
        Ok(self.cells.iter().map(|(cell, _)| Cell(*cell)).collect())
    }

    fn cell_of(&self, slot: Slot) -> Cell {
        cell_of(self.cells.iter().map(|(cell, slots)| (*cell, slots)), slot)
    }

    fn packs(&self) -> bool {
        false
    }

    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        reads::get(self, cell.0.into(), keys).await
    }

    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        reads::range(self, cell.0.into(), &keys, is_reversed, at_most).await
    }

    async fn commit(&self, _: Cell, _: Decision) -> Result<(), StoreError> {
        Err(StoreError::unavailable("a store as of one moment is not written to"))
    }
}

impl AtRest for Moment {
    fn count(&self) -> Result<u64, StoreError> {
        let rows = self.wait(self.rows(COUNT, &[]))?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(count.cast_unsigned())
    }

    fn wait<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.runtime.block_on(read)
    }
}
