//! The database as of one moment: one transaction that only reads, while servers go on.

use std::{
    iter,
    sync::atomic::{AtomicU32, Ordering},
    vec,
};

use payments_core::Posting;
use tokio::runtime::Handle;
use tokio_postgres::{Error, Row, types::ToSql};

use super::{
    OpenError, Target, check,
    load::{parse, payment_body},
    read::{delivery, field},
    refuse_unfinished, schema,
    session::Session,
    sqlstate::store_error,
};
use crate::{
    domain::{Outgoing, Session as PaymentSession},
    store::{Checked, Each, Migration, Record, RecordKind, Result, Snapshot},
};

/// How many rows are in memory at a time.
const PAGE: usize = 128;

/// Who reads may pause for longer than a server's transaction may.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// The rows that a check reads, without the leases.
const RECORDS: &str = "SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM endpoint_count) \
    + (SELECT count(*) FROM payment) + (SELECT count(*) FROM posting) + (SELECT count(*) FROM total) \
    + (SELECT count(*) FROM day_total) \
    + (SELECT count(*) FROM idempotency) + (SELECT count(*) FROM pending_event) + (SELECT count(*) FROM delivery) \
    + (SELECT count(*) FROM event) + (SELECT count(*) FROM payment_lookup) \
    + (SELECT count(*) FROM balance_checkpoint) + (SELECT count(*) FROM redaction) \
    + (SELECT count(*) FROM payment_block_sum JOIN payment_block USING (developer, environment, number) WHERE is_counted)";
const LEASES: &str = "SELECT count(*) FROM lease";
/// Whether leases can be read. A standby has none, since their table is not logged, and refuses each statement that names it.
const HAS_LEASES: &str = "SELECT NOT pg_is_in_recovery()";
const SESSIONS: &str = "SELECT id, body FROM payment ORDER BY id";
const SESSIONS_WITH_POSTINGS: &str = "SELECT p.id, p.body, \
    ARRAY(SELECT o.body FROM posting o WHERE o.payment = p.id ORDER BY o.version) FROM payment p ORDER BY p.id";
const DELIVERIES: &str = "SELECT d.id, d.body, p.body FROM delivery d LEFT JOIN payment p ON p.id = d.payment \
    ORDER BY d.id";

/// A transaction that sees the database as of its beginning. It ends when this is dropped.
///
/// It writes nothing, so a standby can serve it, and the connection does not pass the barrier.
pub(crate) struct PostgresSnapshot {
    session: Session,
    /// Runs the connection. The methods wait for it.
    runtime: Handle,
    /// Whether leases can be read.
    has_leases: bool,
    /// How many cursors were made.
    cursors: AtomicU32,
}

impl PostgresSnapshot {
    /// Connects to any host of the target, and begins the transaction. Refuses a part of another store.
    pub(crate) async fn open(target: &Target) -> Result<Self, OpenError> {
        let snapshot = Self::open_to_migrate(target).await?;
        refuse_unfinished(&snapshot.session).await?;
        Ok(snapshot)
    }

    /// As [`open`](Self::open), even if it is a part of another store.
    pub(crate) async fn open_to_migrate(target: &Target) -> Result<Self, OpenError> {
        let session = Session::connect_to_any(target).await?;
        session.client().batch_execute(BEGIN).await.map_err(|error| store_error(&error))?;
        schema::expect(&session, &target.schema).await?;
        let row = session.client().query_one(HAS_LEASES, &[]).await.map_err(|error| store_error(&error))?;
        let has_leases = field(&row, 0)?;
        Ok(Self { session, runtime: Handle::current(), has_leases, cursors: AtomicU32::new(0) })
    }

    /// Whether the leases can be read: a standby has none.
    pub(super) fn has_leases(&self) -> bool {
        self.has_leases
    }

    /// The number that a query returns.
    fn number(&self, sql: &'static str) -> Result<u64> {
        let number: i64 = self.query(sql, &[])?.first().map_or(Ok(0), |row| field(row, 0))?;
        Ok(number.cast_unsigned())
    }

    /// Runs a query that returns few rows.
    pub(super) fn query(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.wait(self.session.query(sql, parameters))
    }

    /// Runs a query that returns any number of rows, which are read page by page.
    pub(super) fn rows(&self, sql: &str) -> Result<Rows<'_>> {
        let cursor = format!("rows_{}", self.cursors.fetch_add(1, Ordering::Relaxed));
        self.wait(self.session.client().batch_execute(&format!("DECLARE {cursor} NO SCROLL CURSOR FOR {sql}")))?;
        let next = format!("FETCH {PAGE} FROM {cursor}");
        Ok(Rows { snapshot: self, next, page: Vec::new().into_iter(), is_last: false })
    }

    fn each<'s, T: 's>(&'s self, sql: &str, read: fn(&Row) -> Result<T>) -> Each<'s, T> {
        match self.rows(sql) {
            Ok(rows) => Box::new(rows.map(move |row| read(&row?))),
            Err(error) => Box::new(iter::once(Err(error))),
        }
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T> {
        self.runtime.block_on(answer).map_err(|error| store_error(&error))
    }
}

/// The rows of a query.
pub(super) struct Rows<'s> {
    snapshot: &'s PostgresSnapshot,
    /// Fetches the next page.
    next: String,
    page: vec::IntoIter<Row>,
    /// Whether no page follows this one.
    is_last: bool,
}

impl Iterator for Rows<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.page.as_slice().is_empty() && !self.is_last {
            let page = self.snapshot.wait(self.snapshot.session.client().query_typed(&self.next, &[]));
            match page {
                Ok(page) => (self.is_last, self.page) = (page.len() < PAGE, page.into_iter()),
                Err(error) => {
                    self.is_last = true;
                    return Some(Err(error));
                }
            }
        }
        self.page.next().map(Ok)
    }
}

impl Snapshot for PostgresSnapshot {
    fn records(&self) -> Result<u64> {
        let leases = if self.has_leases { self.number(LEASES)? } else { 0 };
        Ok(self.number(RECORDS)? + leases)
    }

    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
        check::check(self, progress)
    }

    fn each_session(&self) -> Each<'_, PaymentSession> {
        self.each(SESSIONS, |row| Ok(payment_body(field(row, 0)?, field(row, 1)?)?.0))
    }

    fn each_session_with_postings(&self) -> Each<'_, (PaymentSession, Vec<Vec<Posting>>)> {
        self.each(SESSIONS_WITH_POSTINGS, |row| {
            let (id, bodies): (&str, Vec<&str>) = (field(row, 0)?, field(row, 2)?);
            let postings = bodies.into_iter().map(|body| parse(id, body)).collect::<Result<_>>()?;
            Ok((payment_body(id, field(row, 1)?)?.0, postings))
        })
    }

    fn each_delivery(&self) -> Each<'_, Outgoing> {
        self.each(DELIVERIES, delivery)
    }

    fn page(&self, kind: RecordKind, after: Option<&str>, at_most: usize) -> Result<Vec<Record>> {
        self.record_page(kind, after, at_most)
    }

    fn count(&self, kind: RecordKind) -> Result<u64> {
        self.record_count(kind)
    }

    fn migration(&self) -> Result<Option<Migration>> {
        self.last_migration()
    }
}
