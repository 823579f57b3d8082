//! Reads the records that a migration moves, page by page in the order of their keys.

use serde::de::DeserializeOwned;
use tokio_postgres::{Row, types::ToSql};

use super::{
    batch::{IdempotencyRow, ResponseRow},
    events,
    load::{LoadError, idempotency_row, parse, payment_body},
    names::{self, Kind},
    read::field,
    snapshot::PostgresSnapshot,
    sqlstate::store_error,
};
use crate::{
    domain::{IdempotencyKey, KeyHash, Scope},
    store::{Migration, PaymentRecord, PendingEventRecord, Record, RecordKind, ResponseRecord, Result, StoreError},
};

const RECORDS: &str = "SELECT id, body FROM record WHERE kind = $1 AND id > $2 ORDER BY id LIMIT $3";
const RECORD_COUNT: &str = "SELECT count(*) FROM record WHERE kind = $1";
const PAYMENTS: &str = "SELECT p.id, p.body, ARRAY(SELECT o.version FROM posting o WHERE o.payment = p.id ORDER BY o.version), \
    ARRAY(SELECT o.body FROM posting o WHERE o.payment = p.id ORDER BY o.version) FROM payment p WHERE p.id > $1 \
    ORDER BY p.id LIMIT $2";
const PENDING_EVENTS: &str = "SELECT id, payment, after FROM pending_event WHERE id > $1 ORDER BY id LIMIT $2";
const DELIVERIES: &str = "SELECT id, body FROM delivery WHERE id > $1 ORDER BY id LIMIT $2";
pub(super) const MIGRATION: &str = "SELECT body FROM record WHERE kind = 'migration'";
const REDACTED_UP_TO: &str = "SELECT up_to FROM redaction";
/// Rows of idempotency keys that have a column.
macro_rules! idempotency {
    ($column:literal) => {
        concat!(
            "SELECT i.developer, i.environment, i.digest, i.response, i.payment, i.claim, p.body FROM idempotency i \
             LEFT JOIN payment p ON p.id = i.payment WHERE (i.developer, i.environment, i.digest) > ($1, $2, $3) AND i.",
            $column,
            " IS NOT NULL ORDER BY 1, 2, 3 LIMIT $4"
        )
    };
}
const RESPONSES: &str = idempotency!("response");
const CLAIMS: &str = idempotency!("claim");

impl PostgresSnapshot {
    /// At most `at_most` records of a kind strictly after a key.
    pub(super) fn record_page(&self, kind: RecordKind, after: Option<&str>, at_most: usize) -> Result<Vec<Record>> {
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let id = after.unwrap_or_default();
        let by_id = |sql, read: fn(&Row) -> Result<Record>| self.read(sql, &[&id, &limit], read);
        match kind {
            RecordKind::Workspace => self.bodies(Kind::Workspace, id, limit, |_, it| Some(Record::Workspace(it))),
            RecordKind::ApiKey => self.bodies(Kind::ApiKey, id, limit, |id, it: Box<crate::domain::ApiKey>| {
                let digest = hex::decode(id).ok()?.try_into().ok()?;
                Some(Record::ApiKey(KeyHash { slot: it.scope.developer_id.slot(), digest }, it))
            }),
            RecordKind::App => self.bodies(Kind::App, id, limit, |_, it| Some(Record::App(it))),
            RecordKind::GatewayToken => {
                self.bodies(Kind::GatewayToken, id, limit, |id, it| Some(Record::GatewayToken(id.to_owned(), it)))
            }
            RecordKind::Endpoint => self.bodies(Kind::Endpoint, id, limit, |_, it| Some(Record::Endpoint(it))),
            RecordKind::LogPart => self.bodies(Kind::LogPart, id, limit, |_, it| Some(Record::LogPart(it))),
            RecordKind::Payment => by_id(PAYMENTS, payment),
            RecordKind::Event => by_id(events::AFTER_ID, |row| events::record(row).map(Record::Event)),
            RecordKind::PendingEvent => by_id(PENDING_EVENTS, pending_event),
            RecordKind::Delivery => {
                by_id(DELIVERIES, |row| Ok(Record::Delivery(parse(field(row, 0)?, field(row, 1)?)?)))
            }
            RecordKind::StoredResponse => self.idempotency(RESPONSES, id, limit, response),
            RecordKind::KeyClaim => self.idempotency(CLAIMS, id, limit, |key, IdempotencyRow { claim, .. }| {
                Some(Record::KeyClaim(Box::new((key, claim?))))
            }),
            RecordKind::RedactedUpTo if after.is_some() => Ok(Vec::new()),
            RecordKind::RedactedUpTo => self.read(REDACTED_UP_TO, &[], |row| {
                let id: &str = field(row, 0)?;
                let id = id.parse().map_err(|error| StoreError::corrupt(b"redaction", error))?;
                Ok(Record::RedactedUpTo(id))
            }),
        }
    }

    pub(super) fn record_count(&self, kind: RecordKind) -> Result<u64> {
        let rows = match kind {
            RecordKind::Payment => self.query("SELECT count(*) FROM payment", &[]),
            RecordKind::Event => self.query("SELECT count(*) FROM event", &[]),
            RecordKind::PendingEvent => self.query("SELECT count(*) FROM pending_event", &[]),
            RecordKind::StoredResponse => self.query("SELECT count(response) FROM idempotency", &[]),
            RecordKind::KeyClaim => self.query("SELECT count(claim) FROM idempotency", &[]),
            RecordKind::Delivery => self.query("SELECT count(*) FROM delivery", &[]),
            RecordKind::RedactedUpTo => self.query("SELECT count(*) FROM redaction", &[]),
            _ => self.query(RECORD_COUNT, &[&Kind::of(kind).map(Kind::as_str)]),
        };
        let count: i64 = rows?.first().map_or(Ok(0), |row| field(row, 0))?;
        Ok(count.cast_unsigned())
    }

    pub(super) fn last_migration(&self) -> Result<Option<Migration>> {
        let rows = self.query(MIGRATION, &[])?;
        rows.first().map(|row| parse("migration", field(row, 0)?)).transpose()
    }

    fn read(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> Result<Record>,
    ) -> Result<Vec<Record>> {
        self.query(sql, parameters)?.iter().map(read).collect()
    }

    /// Records of one kind in the table `record`.
    fn bodies<T: DeserializeOwned>(
        &self,
        kind: Kind,
        after: &str,
        limit: i64,
        record: impl Fn(&str, T) -> Option<Record>,
    ) -> Result<Vec<Record>> {
        self.read(RECORDS, &[&kind.as_str(), &after, &limit], |row| {
            let id: &str = field(row, 0)?;
            record(id, parse(id, field(row, 1)?)?).ok_or_else(|| StoreError::corrupt(id.as_bytes(), "it is no id"))
        })
    }

    fn idempotency(
        &self,
        sql: &'static str,
        after: &str,
        limit: i64,
        record: impl Fn(IdempotencyKey, IdempotencyRow) -> Option<Record>,
    ) -> Result<Vec<Record>> {
        let mut parts = after.split('/');
        let (developer, environment) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let digest = hex::decode(parts.next().unwrap_or_default());
        let digest = digest.map_err(|error| StoreError::corrupt(after.as_bytes(), error))?;
        self.read(sql, &[&developer, &environment, &digest, &limit], |row| {
            let unreadable = || StoreError::corrupt(b"idempotency", "its key cannot be read");
            let (((developer, environment), digest), row) = idempotency_row(row).map_err(|error| match error {
                LoadError::Store(error) => error,
                LoadError::Database(error) => store_error(&error),
            })?;
            let developer_id = developer.parse().map_err(|_| unreadable())?;
            let environment = names::environment(environment).ok_or_else(unreadable)?;
            let key = IdempotencyKey { scope: Scope { developer_id, environment }, digest };
            record(key, row).ok_or_else(unreadable)
        })
    }
}

fn payment(row: &Row) -> Result<Record> {
    let (id, body): (&str, &str) = (field(row, 0)?, field(row, 1)?);
    let (versions, bodies): (Vec<i64>, Vec<&str>) = (field(row, 2)?, field(row, 3)?);
    let (session, events) = payment_body(id, body)?;
    let postings =
        versions.into_iter().zip(bodies).map(|(version, body)| Ok((version.cast_unsigned(), parse(id, body)?)));
    let postings = postings.collect::<Result<_>>()?;
    Ok(Record::Payment(Box::new(PaymentRecord { session, events, postings })))
}

fn pending_event(row: &Row) -> Result<Record> {
    let (id, payment, after): (&str, &str, Option<&str>) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
    let corrupt = |error: payments_core::IdError| StoreError::corrupt(id.as_bytes(), error);
    Ok(Record::PendingEvent(PendingEventRecord {
        id: id.parse().map_err(corrupt)?,
        payment: payment.parse().map_err(corrupt)?,
        after: after.map(str::parse).transpose().map_err(corrupt)?,
    }))
}

fn response(key: IdempotencyKey, row: IdempotencyRow) -> Option<Record> {
    let ResponseRow { response, event } = row.response?;
    Some(Record::StoredResponse(Box::new(ResponseRecord { key, response, event })))
}
