//! The lists of events.

use payments_core::{EventId, EventKind, IdError, PaymentId, RANDOM_BYTES, RawJson, Slot};
use tokio_postgres::Row;

use super::{PostgresStore, load::payment_body, names, read::field, transactions::money};
use crate::{
    domain::Scope,
    store::{EventEntry, EventRecord, EventWrite, EventsFrom, Result, StoreError},
};

/// A part of a list after a place in it.
macro_rules! part {
    ($($from:literal)?) => {
        concat!(
            "SELECT e.id, e.kind, e.payment FROM event e WHERE e.developer = $1 AND e.environment = $2 \
             AND e.added_by < pg_snapshot_xmin(pg_current_snapshot())",
            $( $from, )?
            " ORDER BY e.added_by, e.number LIMIT $3"
        )
    };
}
const FROM_BEGINNING: &str = part!();
const AFTER: &str = part!(" AND (e.added_by, e.number) > (SELECT f.added_by, f.number FROM event f WHERE f.id = $4)");
/// From the last event before that time, of any developer: all are in one order. An event of that time or later may have been added
/// before the first event of that time, but not before one of a minute earlier.
const FROM_TIME: &str = part!(
    " AND e.added_by >= coalesce((SELECT f.added_by FROM event f WHERE f.id < $4 ORDER BY f.id DESC LIMIT 1), '0')"
);
const PAYMENT_OF: &str = "SELECT payment FROM event WHERE id = $3 AND developer = $1 AND environment = $2";
const BODIES: &str = "SELECT id, body FROM payment WHERE id = ANY($3) AND developer = $1 AND environment = $2";
pub(super) const AFTER_ID: &str = "SELECT id, kind, payment, developer, environment, currency, amount, fee FROM event \
    WHERE id > $1 ORDER BY id LIMIT $2";

/// The columns id, kind and payment.
fn entry(row: &Row) -> Result<EventEntry> {
    let (id, kind, payment): (&str, &str, &str) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
    let corrupt = |error: IdError| StoreError::corrupt(id.as_bytes(), error);
    let payment = payment.parse().map_err(corrupt)?;
    Ok(EventEntry { id: id.parse().map_err(corrupt)?, kind: EventKind::from(kind), payment })
}

/// The columns id, kind, payment, developer, environment, currency, amount and fee.
pub(super) fn record(row: &Row) -> Result<EventRecord> {
    let entry = entry(row)?;
    let (developer, environment): (&str, &str) = (field(row, 3)?, field(row, 4)?);
    let unreadable = || StoreError::corrupt(entry.id.as_str().as_bytes(), "its scope cannot be read");
    let developer_id = developer.parse().map_err(|_| unreadable())?;
    let environment = names::environment(environment).ok_or_else(unreadable)?;
    let money = money(row, 5)?;
    Ok(EventRecord { scope: Scope { developer_id, environment }, entry, money })
}

impl PostgresStore {
    pub(super) async fn event_list(
        &self,
        scope: &Scope,
        from: &EventsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<EventEntry>>> {
        let (developer, environment) = names::scope(scope);
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = match from {
            EventsFrom::Beginning => self.readers.query(FROM_BEGINNING, &[&developer, &environment, &limit]).await?,
            EventsFrom::After(id) => {
                if self.payment_with_event(scope, id).await?.is_none() {
                    return Ok(None);
                }
                self.readers.query(AFTER, &[&developer, &environment, &limit, &id.as_str()]).await?
            }
            EventsFrom::Time(time) => {
                let first = EventId::new(Slot::FIRST, EventsFrom::margin(*time), [0; RANDOM_BYTES]);
                self.readers.query(FROM_TIME, &[&developer, &environment, &limit, &first.as_str()]).await?
            }
        };
        rows.iter().map(entry).collect::<Result<_>>().map(Some)
    }

    pub(super) async fn payment_with_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        let (developer, environment) = names::scope(scope);
        let row = self.readers.one(PAYMENT_OF, &[&developer, &environment, &id.as_str()]).await?;
        let parse = |row: Row| {
            let payment: &str = field(&row, 0)?;
            payment.parse().map_err(|error| StoreError::corrupt(id.as_str().as_bytes(), error))
        };
        row.map(parse).transpose()
    }

    pub(super) async fn events_of_payments(
        &self,
        scope: &Scope,
        payments: &[PaymentId],
    ) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        let (developer, environment) = names::scope(scope);
        let ids: Vec<_> = payments.iter().map(PaymentId::as_str).collect();
        let rows = self.readers.query(BODIES, &[&developer, &environment, &ids]).await?;
        let events = rows.iter().map(|row| {
            let (id, body): (&str, &str) = (field(row, 0)?, field(row, 1)?);
            let (session, events) = payment_body(id, body)?;
            let corrupt = |error| StoreError::corrupt(id.as_bytes(), error);
            let events = events.into_iter().map(|mut event| {
                let data = event.take_data(|| RawJson::of(&session.payment)).map_err(corrupt)?;
                Ok(EventWrite { id: event.id, kind: event.event, created_at: event.created_at, data })
            });
            Ok((session.payment.id.clone(), events.collect::<Result<_>>()?))
        });
        events.collect()
    }
}
