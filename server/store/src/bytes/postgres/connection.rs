//! A connection to a cell. It takes the steps of the protocol by SQL statements.

use std::{ops::RangeInclusive, sync::Arc};

use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::{
    Error, Row, Statement,
    error::{Severity, SqlState},
    types::ToSql,
};
use uuid::Uuid;

use super::{
    connector::Connector,
    protocol::{Failed, Locked, Steps},
    session::Session,
    sqlstate::describe,
    statements::Statements,
    types::{Column, slots_of},
    view::{Found, HotWrite, Stored, Writes},
    writer::Connect,
};
use crate::{
    StoreError,
    bytes::{Batch, Table},
};

/// How many of the newest batches have a row.
const KEPT_BATCHES: i64 = 10_000;
/// After how many batches the rows of old ones are deleted.
const DELETE_EACH: i64 = 1_000;
/// Generic plans cost least. Citus does not send statements with generic plans to the cell's node.
const CHOOSE_PLANS: &str = "SELECT set_config('plan_cache_mode', CASE WHEN EXISTS (SELECT FROM pg_extension WHERE \
                            extname = 'citus') THEN 'force_custom_plan' ELSE 'force_generic_plan' END, false)";

pub(super) struct CellConnector {
    pub(super) connector: Arc<Connector>,
    pub(super) cell: i32,
    pub(super) slots: RangeInclusive<u16>,
    /// The name of the server in the rows of its batches.
    pub(super) server: String,
}

impl Connect for CellConnector {
    type Steps = CellConnection;

    async fn connect(&self) -> Result<CellConnection, String> {
        let session = self.connector.connect().await.map_err(|error| error.to_string())?;
        let prepared = async {
            session.client().batch_execute(CHOOSE_PLANS).await?;
            Statements::prepare(session.client()).await
        };
        let statements = session.in_time(prepared).await.ok_or("it does not answer")?;
        let statements = statements.map_err(|error| describe(&error))?;
        let (slots, server) = (self.slots.clone(), self.server.clone());
        Ok(CellConnection { session, statements, cell: self.cell, slots, server })
    }
}

pub(super) struct CellConnection {
    session: Session,
    statements: Statements,
    cell: i32,
    slots: RangeInclusive<u16>,
    server: String,
}

type Parameters<'p> = Vec<&'p (dyn ToSql + Sync)>;

impl CellConnection {
    /// Runs calls that are sent together, in one round trip.
    async fn trip<T>(&self, calls: impl Future<Output = Result<T, Error>>) -> Result<T, Failed> {
        self.session.target.count_trip();
        match self.session.in_time(calls).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(self.failed(error)),
            None => Err(Failed::Broken("the database does not answer".to_owned())),
        }
    }

    /// What an error of the database means for a transaction under way.
    fn failed(&self, error: Error) -> Failed {
        let again = [
            // The batch has no number, because another one was faster.
            SqlState::NOT_NULL_VIOLATION,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::QUERY_CANCELED,
        ];
        // The database has become a standby, or it is shutting down.
        let elsewhere = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
        let said = describe(&error);
        let is_fatal = error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Fatal));
        match error.code() {
            Some(_) if is_fatal || self.session.is_closed() => Failed::Broken(said),
            Some(code) if elsewhere.contains(code) => Failed::Elsewhere(said),
            Some(code) if again.contains(code) => Failed::Overtaken(said),
            Some(&SqlState::UNIQUE_VIOLATION) => Failed::Met(said),
            Some(_) => Failed::Refused(error.into()),
            None => Failed::Broken(said),
        }
    }

    /// Runs a statement over keys, if there are any.
    async fn by_keys(
        &self,
        statement: &Statement,
        keys: &[&[u8]],
        more: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys = Column(keys.to_vec());
        let mut parameters: Parameters<'_> = vec![&self.cell, &keys];
        parameters.extend(more);
        self.session.client().query(statement, &parameters).await
    }

    async fn find(&self, keys: &[Vec<u8>]) -> Result<Found, Error> {
        let [records, entries, hot] = by_table(keys);
        let statements = &self.statements;
        let rows = tokio::try_join!(
            self.by_keys(&statements.records, &records, &[]),
            self.by_keys(&statements.entries, &entries, &[]),
            self.by_keys(&statements.hot, &hot, &[]),
        )?;
        let mut found = found(&records, &rows.0, text)?;
        found.extend(self::found(&entries, &rows.1, bytes)?);
        found.extend(self::found(&hot, &rows.2, version)?);
        Ok(found)
    }

    fn run<'p>(&'p self, statement: &'p Statement, parameters: Parameters<'p>) -> BoxFuture<'p, Result<(), Error>> {
        Box::pin(async move { self.session.client().execute(statement, &parameters).await.map(drop) })
    }

    /// Sends the calls `first`, the writes and the commit in one round trip.
    async fn commit_behind<'p>(
        &'p self,
        first: Vec<BoxFuture<'p, Result<(), Error>>>,
        after: Batch,
        batch: Batch,
        writes: &'p Writes,
    ) -> Result<(), Failed> {
        let statements = &self.statements;
        let (before, tags) = (after.number, (Uuid::from_u128(after.tag), Uuid::from_u128(batch.tag)));
        let (versions, old) = versions(&writes.hot, batch.number);
        let (puts, deletes) = rows(writes, &versions, &old);
        let mut calls = first;
        calls.push(self.run(&statements.insert_batch, vec![&self.cell, &before, &tags.0, &self.server, &tags.1]));
        let to_put =
            [&statements.insert_records, &statements.insert_entries, &statements.put_records, &statements.put_entries];
        for (statement, (keys, bodies)) in to_put.into_iter().zip(&puts) {
            if !keys.0.is_empty() {
                calls.push(self.run(statement, vec![&self.cell, keys, bodies]));
            }
        }
        let to_delete = [&statements.delete_records, &statements.delete_entries];
        for (statement, keys) in to_delete.into_iter().zip(&deletes) {
            if !keys.0.is_empty() {
                calls.push(self.run(statement, vec![&self.cell, keys]));
            }
        }
        if !writes.is_synced {
            calls.push(Box::pin(self.session.client().batch_execute("SET LOCAL synchronous_commit = off")));
        }
        calls.push(Box::pin(self.session.client().batch_execute("COMMIT")));
        // Each call is sent when it is first polled, so they are sent in this order. A commit after a failed statement rolls
        // back without an error of its own.
        let outcome = self.trip(async { join_all(calls).await.into_iter().collect::<Result<(), Error>>() }).await;
        if let Err(failed) = outcome {
            return Err(self.name_privileges(failed).await);
        }
        self.delete_old_batches(batch.number).await;
        Ok(())
    }

    /// The same failure. If the database denied something, it names the missing privileges.
    async fn name_privileges(&self, failed: Failed) -> Failed {
        match failed {
            Failed::Refused(error) => Failed::Refused(self.session.name_privileges(error).await),
            failed => failed,
        }
    }

    async fn delete_old_batches(&self, newest: i64) {
        let up_to = newest - KEPT_BATCHES;
        if up_to > 0 && newest % DELETE_EACH == 0 {
            let low = up_to - 2 * DELETE_EACH;
            let parameters: [&(dyn ToSql + Sync); 3] = [&self.cell, &low, &up_to];
            // If this fails, a later call deletes the rows.
            let _ = self.trip(self.session.client().execute(&self.statements.delete_batches, &parameters)).await;
        }
    }
}

/// Keys and bodies of new records, of new entries, and of records and entries that may exist; then the keys of deleted
/// records and of deleted entries.
type Rows<'w> = ([(Column<'w>, Column<'w>); 4], [Column<'w>; 2]);

fn rows<'w>(writes: &'w Writes, versions: &'w [(Vec<u8>, &'w [u8])], old: &'w [Vec<u8>]) -> Rows<'w> {
    let is_record = |key: &[u8]| Table::of(key) == Some(Table::Record);
    let split = |rows: &'w [(Vec<u8>, Vec<u8>)]| -> (Vec<_>, Vec<_>) {
        rows.iter().map(|(key, body)| (&key[..], &body[..])).partition(|(key, _)| is_record(key))
    };
    let (new_records, mut new_entries) = split(&writes.inserted);
    new_entries.extend(versions.iter().map(|(key, body)| (&key[..], *body)));
    // Sorted in the order of the index.
    new_entries.sort_unstable();
    let (records, entries) = split(&writes.updated);
    let deleted = writes.deleted.iter().map(|key| &key[..]);
    let (old_records, mut old_entries): (Vec<_>, Vec<_>) = deleted.partition(|key| is_record(key));
    old_entries.extend(old.iter().map(|key| &key[..]));
    let puts = [new_records, new_entries, records, entries].map(|rows| {
        let (keys, bodies) = rows.into_iter().unzip();
        (Column(keys), Column(bodies))
    });
    (puts, [Column(old_records), Column(old_entries)])
}

type NewVersions<'w> = Vec<(Vec<u8>, &'w [u8])>;

/// The versions of hot entries that a batch writes, and those that it deletes.
fn versions(hot: &[HotWrite], batch: i64) -> (NewVersions<'_>, Vec<Vec<u8>>) {
    let key_of = |key: &[u8], batch: i64| [key, &batch.to_be_bytes()].concat();
    let new = hot.iter().filter_map(|it| Some((key_of(&it.key, batch), &it.body.as_ref()?[..]))).collect();
    let old = hot.iter().filter_map(|it| Some(key_of(&it.key, it.replaces?))).collect();
    (new, old)
}

impl Steps for CellConnection {
    async fn lock(
        &mut self,
        as_of: Option<Batch>,
        always: Vec<Vec<u8>>,
        unless: Vec<Vec<u8>>,
    ) -> Result<Locked, Failed> {
        let (client, statements) = (self.session.client(), &self.statements);
        let cell: [&(dyn ToSql + Sync); 1] = [&self.cell];
        let unless: Vec<&[u8]> = unless.iter().map(|key| &key[..]).collect();
        let Batch { number, tag } = as_of.unwrap_or(Batch { number: 0, tag: 0 });
        let tag = Uuid::from_u128(tag);
        let of_batch: [&(dyn ToSql + Sync); 2] = [&number, &tag];
        let calls = async {
            // The calls are sent in this order.
            let (begun, held, newest, found, hot) = tokio::join!(
                client.batch_execute("BEGIN"),
                client.query_one(&statements.lock, &cell),
                client.query_one(&statements.newest, &cell),
                self.find(&always),
                self.by_keys(&statements.hot_unless, &unless, &of_batch),
            );
            begun?;
            let (held, newest) = (held?, newest?);
            let newest = Batch { number: newest.try_get(0)?, tag: newest.try_get::<_, Uuid>(1)?.as_u128() };
            let (mut found, hot) = (found?, hot?);
            if as_of != Some(newest) {
                found.extend(self::found(&unless, &hot, version)?);
            }
            Ok((slots_of(&held, 0)?, Locked { newest, found }))
        };
        let locked = self.trip(calls).await;
        let refused = match locked {
            Ok((slots, locked)) if slots.as_ref() == Some(&self.slots) => return Ok(locked),
            Ok(_) => {
                let what =
                    format!("cell {} holds other slots than when this server started; start it again", self.cell);
                Failed::Refused(StoreError::unavailable(what))
            }
            Err(failed @ (Failed::Broken(_) | Failed::Elsewhere(_))) => return Err(failed),
            Err(failed) => failed,
        };
        self.roll_back().await?;
        Err(self.name_privileges(refused).await)
    }

    async fn fetch(&mut self, keys: Vec<Vec<u8>>) -> Result<Found, Failed> {
        let found = self.trip(self.find(&keys)).await;
        if matches!(found, Err(Failed::Overtaken(_) | Failed::Met(_) | Failed::Refused(_))) {
            self.roll_back().await?;
        }
        found
    }

    async fn commit(&mut self, after: Batch, batch: Batch, writes: &Writes) -> Result<(), Failed> {
        self.commit_behind(Vec::new(), after, batch, writes).await
    }

    async fn commit_at_once(&mut self, after: Batch, batch: Batch, writes: &Writes) -> Result<(), Failed> {
        let begin: BoxFuture<'_, _> = Box::pin(self.session.client().batch_execute("BEGIN"));
        let calls = vec![begin, self.run(&self.statements.lock, vec![&self.cell])];
        self.commit_behind(calls, after, batch, writes).await
    }

    async fn roll_back(&mut self) -> Result<(), Failed> {
        self.trip(self.session.client().batch_execute("ROLLBACK")).await
    }

    async fn fence(&mut self, tag: u128, unknown: Option<Batch>) -> Result<(Batch, bool), Failed> {
        let (client, statements) = (self.session.client(), &self.statements);
        let Batch { number, tag: unknown } = unknown.unwrap_or(Batch { number: 0, tag: 0 });
        let (unknown, new) = (Uuid::from_u128(unknown), Uuid::from_u128(tag));
        let calls = async {
            client.batch_execute("BEGIN").await?;
            client.query_one(&statements.lock, &[&self.cell]).await?;
            let is_there = !client.query(&statements.is_there, &[&self.cell, &number, &unknown]).await?.is_empty();
            let fence = client.query_one(&statements.insert_fence, &[&self.cell, &self.server, &new]).await?;
            client.batch_execute("COMMIT").await?;
            Ok((Batch { number: fence.try_get(0)?, tag }, is_there))
        };
        match self.trip(calls).await {
            // Another connection tries the fence again.
            Err(Failed::Overtaken(what) | Failed::Met(what) | Failed::Elsewhere(what)) => Err(Failed::Broken(what)),
            fenced => fenced,
        }
    }

    fn is_closed(&self) -> bool {
        self.session.is_closed()
    }
}

/// Keys by their tables: records, entries, hot entries.
pub(super) fn by_table(keys: &[Vec<u8>]) -> [Vec<&[u8]>; 3] {
    [Table::Record, Table::Entry, Table::Hot]
        .map(|table| keys.iter().filter(|key| Table::of(key) == Some(table)).map(|key| &key[..]).collect())
}

/// The values of keys in rows. Each row has the number of its key, counted from 1.
pub(super) fn found(
    keys: &[&[u8]],
    rows: &[Row],
    stored: impl Fn(&Row) -> Result<Stored, Error>,
) -> Result<Found, Error> {
    let mut found: Found = keys.iter().map(|key| (key.to_vec(), None)).collect();
    for row in rows {
        let nth = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        if let Some((_, value)) = found.get_mut(nth) {
            *value = Some(stored(row)?);
        }
    }
    Ok(found)
}

pub(super) fn text(row: &Row) -> Result<Stored, Error> {
    Ok(Stored { body: row.try_get::<_, &str>(2)?.as_bytes().to_vec(), batch: 0 })
}

pub(super) fn bytes(row: &Row) -> Result<Stored, Error> {
    Ok(Stored { body: row.try_get::<_, &[u8]>(2)?.to_vec(), batch: 0 })
}

/// A version of a hot entry: its key ends with the batch that wrote it.
pub(super) fn version(row: &Row) -> Result<Stored, Error> {
    let key: &[u8] = row.try_get(1)?;
    let batch = key.last_chunk().map_or(0, |batch| i64::from_be_bytes(*batch));
    Ok(Stored { batch, ..bytes(row)? })
}
