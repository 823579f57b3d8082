//! Reads the rows that a batch decides by, and locks them until it ends.
//!
//! Every server takes its locks in this order, within a table by key, so that none waits for another in a circle.

use std::collections::BTreeSet;

use payments_core::{DeliveryId, PaymentId, RawJson, Status, Timestamp};
use serde::{Deserialize, Serialize};
use tokio_postgres::{Error, Row};

use super::{
    batch::{
        Batch, DeliveryRow, IdempotencyName, IdempotencyRow, LookupName, PaymentColumns, PaymentRow, RecordRow,
        ResponseRow, ScopeName,
    },
    names::{self, Kind, RecordKey, WorkKey},
    session::Session,
    statements::Statements,
};
use crate::{
    domain::{Session as PaymentSession, StoredResponse},
    store::{Change, Record, StoreError, StoredEvent, Write},
};

/// The keys of the rows that changes read.
#[derive(Default)]
pub(super) struct Keys {
    leases: BTreeSet<WorkKey>,
    idempotency: BTreeSet<IdempotencyName>,
    records: BTreeSet<RecordKey>,
    /// Scopes whose number of endpoints is read, and those where it changes.
    endpoints: BTreeSet<ScopeName>,
    endpoints_changed: BTreeSet<ScopeName>,
    payments: BTreeSet<PaymentId>,
    deliveries: BTreeSet<DeliveryId>,
    /// The values of new payments that must be unique.
    unique: BTreeSet<LookupName>,
}

/// The body of a payment's row.
#[derive(Serialize, Deserialize)]
pub(super) struct PaymentBody<S, E> {
    pub(super) session: S,
    pub(super) events: E,
}

/// The stored response of a row.
#[derive(Serialize, Deserialize)]
pub(super) struct ResponseBody {
    pub(super) fingerprint: String,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<RawJson>,
    /// The event whose data is the body; the row names its payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<payments_core::EventId>,
}

/// The rows could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Database(#[from] Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Keys {
    /// The keys that changes need. A first try does not look for a payment or a delivery whose id is new. If it is there, the
    /// insertion says so, and the second try reads everything.
    pub(super) fn of(changes: &[Change], is_first_try: bool) -> Self {
        let mut keys = Self::default();
        for change in changes {
            keys.leases.extend(change.under.iter().map(|claim| names::work(&claim.work)));
            keys.idempotency.extend(change.idempotency.as_ref().map(|new| names::idempotency(&new.key)));
            change.writes.iter().for_each(|write| keys.add(write, is_first_try));
        }
        keys
    }

    fn add(&mut self, write: &Write, is_first_try: bool) {
        match write {
            Write::Workspace(it) => drop(self.records.insert((Kind::Workspace, it.id.to_string()))),
            Write::ApiKey(hash, _) => drop(self.records.insert((Kind::ApiKey, names::hash(hash)))),
            Write::App(it) => {
                self.records.insert((Kind::App, names::app(&it.app.developer_id, &it.app.id)));
            }
            Write::GatewayToken(name, _) => drop(self.records.insert((Kind::GatewayToken, name.to_string()))),
            Write::LogPart(it) => drop(self.records.insert((Kind::LogPart, it.key()))),
            Write::Migration(_) => drop(self.records.insert(names::migration())),
            Write::Moved(record) => self.add_moved(record, is_first_try),
            Write::EndpointChanged(it) => drop(self.records.insert((Kind::Endpoint, it.endpoint.id.to_string()))),
            Write::EndpointAdded { endpoint: it, .. } | Write::EndpointRemoved(it) => {
                self.records.insert((Kind::Endpoint, it.endpoint.id.to_string()));
                self.endpoints_changed.insert(names::scope(&it.scope()));
            }
            Write::Payment(it) => {
                if it.event.is_some() {
                    self.endpoints.insert(names::scope(&it.effects.scope));
                }
                let scope = names::scope(&it.effects.scope);
                self.unique.extend(it.unique.iter().map(|unique| (scope.clone(), unique.clone())));
                if it.session.version > 0 || !is_first_try {
                    self.payments.insert(it.session.payment.id.clone());
                }
            }
            Write::Delivery(it) | Write::DeliveryChanged(it) | Write::DeliveryResent(it) => {
                if it.version > 0 || !it.is_pending() || !is_first_try {
                    self.deliveries.insert(it.delivery.id.clone());
                }
            }
            Write::KeyClaimed(it) => drop(self.idempotency.insert(names::idempotency(&it.0))),
            Write::KeyReleased(key, _) => drop(self.idempotency.insert(names::idempotency(key))),
            Write::FannedOut { .. } => {}
        }
    }

    /// What a record of another store needs. It is new here, so a first try looks only for what others count with it.
    fn add_moved(&mut self, record: &Record, is_first_try: bool) {
        match record {
            Record::Endpoint(it) => drop(self.endpoints_changed.insert(names::scope(&it.scope()))),
            Record::KeyClaim(it) => drop(self.idempotency.insert(names::idempotency(&it.0))),
            _ => {}
        }
        if is_first_try {
            return;
        }
        let (kind, id) = record.key();
        match record {
            Record::Payment(it) => drop(self.payments.insert(it.session.payment.id.clone())),
            Record::StoredResponse(it) => drop(self.idempotency.insert(names::idempotency(&it.key))),
            Record::Delivery(it) => drop(self.deliveries.insert(it.delivery.id.clone())),
            _ => drop(Kind::of(kind).map(|kind| self.records.insert((kind, id)))),
        }
    }

    /// Reads and locks the rows, all statements in one round trip.
    pub(super) async fn load(&self, session: &Session, statements: &Statements) -> Result<Batch, LoadError> {
        let mut batch = Batch::default();
        let (leases, idempotency, records, counts, changed, payments, deliveries, redaction, found) = tokio::join!(
            self.leases(session, statements),
            self.idempotency(session, statements),
            self.records(session, statements),
            counts(session, &statements.lock_endpoint_counts, &self.endpoints_changed),
            counts(session, &statements.endpoint_counts, &self.endpoints),
            self.payments(session, statements),
            self.deliveries(session, statements),
            self.redaction(session, statements),
            self.found(session, statements),
        );
        for row in leases? {
            let queue: &str = row.try_get(0)?;
            let known = self.leases.iter().find(|(known, work)| *known == queue && row.get::<_, &str>(1) == work);
            if let Some(known) = known {
                batch.leases.insert(known.clone(), row.try_get(2)?);
            }
        }
        for row in idempotency? {
            let (name, row) = idempotency_row(&row)?;
            batch.idempotency.read(name, row);
        }
        for row in records? {
            let Some(kind) = Kind::known(row.try_get(0)?) else { continue };
            let version: i64 = row.try_get(2)?;
            let record = RecordRow { version: version.cast_unsigned(), parent: String::new(), body: String::new() };
            batch.records.read((kind, row.try_get(1)?), record);
        }
        for row in counts?.into_iter().chain(changed?) {
            let Some(environment) = names::environment(row.try_get(1)?) else { continue };
            let endpoints: i64 = row.try_get(2)?;
            let scope = (row.try_get(0)?, environment.as_str());
            batch.endpoints.read(scope, usize::try_from(endpoints).unwrap_or_default());
        }
        for row in payments? {
            let (id, row) = payment_row(&row)?;
            batch.payments.read(id, row);
        }
        for row in deliveries? {
            let (id, version): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
            let id = id.parse().map_err(|error| StoreError::corrupt(id.as_bytes(), error))?;
            batch.deliveries.read(id, DeliveryRow { version: version.cast_unsigned(), written: None });
        }
        for nth in found? {
            let nth: i64 = nth.try_get(0)?;
            let name = usize::try_from(nth - 1).ok().and_then(|nth| self.unique.iter().nth(nth));
            batch.found.extend(name.cloned());
        }
        let up_to = redaction?.first().map(|row| row.try_get::<_, String>(0)).transpose()?;
        batch.redacted_up_to = up_to.and_then(|id| id.parse().ok());
        Ok(batch)
    }

    async fn leases(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.leases.is_empty() {
            return Ok(Vec::new());
        }
        let (queues, works): (Vec<_>, Vec<_>) = self.leases.iter().map(|(queue, work)| (*queue, &**work)).unzip();
        session.client().query(&statements.lock_leases, &[&queues, &works]).await
    }

    async fn idempotency(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.idempotency.is_empty() {
            return Ok(Vec::new());
        }
        let (developers, environments, digests) = split(&self.idempotency);
        session.client().query(&statements.lock_idempotency, &[&developers, &environments, &digests]).await
    }

    async fn records(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.records.is_empty() {
            return Ok(Vec::new());
        }
        let (kinds, ids): (Vec<_>, Vec<_>) = self.records.iter().map(|(kind, id)| (kind.as_str(), &**id)).unzip();
        session.client().query(&statements.lock_records, &[&kinds, &ids]).await
    }

    async fn payments(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.payments.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = self.payments.iter().map(PaymentId::as_str).collect();
        session.client().query(&statements.lock_payments, &[&ids]).await
    }

    async fn deliveries(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = self.deliveries.iter().map(DeliveryId::as_str).collect();
        session.client().query(&statements.lock_deliveries, &[&ids]).await
    }

    /// The numbers of the values that find a payment, from 1.
    async fn found(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.unique.is_empty() {
            return Ok(Vec::new());
        }
        let developers: Vec<_> = self.unique.iter().map(|((developer, _), _)| &**developer).collect();
        let environments: Vec<_> = self.unique.iter().map(|((_, environment), _)| *environment).collect();
        let kinds: Vec<_> = self.unique.iter().map(|(_, lookup)| lookup.kind.as_str()).collect();
        let values: Vec<_> = self.unique.iter().map(|(_, lookup)| &*lookup.value).collect();
        session.client().query(&statements.found, &[&developers, &environments, &kinds, &values]).await
    }

    /// After the deliveries are locked: pruning, which locks them too, may have passed them until then.
    async fn redaction(&self, session: &Session, statements: &Statements) -> Result<Vec<Row>, Error> {
        if self.deliveries.is_empty() {
            return Ok(Vec::new());
        }
        session.client().query(&statements.redacted_up_to, &[]).await
    }
}

async fn counts(
    session: &Session,
    statement: &tokio_postgres::Statement,
    scopes: &BTreeSet<ScopeName>,
) -> Result<Vec<Row>, Error> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let (developers, environments): (Vec<_>, Vec<_>) =
        scopes.iter().map(|(developer, environment)| (&**developer, *environment)).unzip();
    session.client().query(statement, &[&developers, &environments]).await
}

/// The columns of keys.
pub(super) fn split<'n>(
    names: impl IntoIterator<Item = &'n IdempotencyName>,
) -> (Vec<&'n str>, Vec<&'static str>, Vec<&'n [u8]>) {
    let (mut developers, mut environments, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    for ((developer, environment), digest) in names {
        developers.push(&**developer);
        environments.push(*environment);
        digests.push(&digest[..]);
    }
    (developers, environments, digests)
}

pub(super) fn parse<'t, T: Deserialize<'t>>(what: &str, json: &'t str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::corrupt(what.as_bytes(), error))
}

/// A payment's session and events, from the body of its row.
pub(super) fn payment_body(id: &str, json: &str) -> Result<(PaymentSession, Vec<StoredEvent>), StoreError> {
    let PaymentBody { session, events } = parse(id, json)?;
    Ok((session, events))
}

/// The columns id, body, status, expires_at, check_at, needs_settlement and needs_review.
pub(super) fn payment_row(row: &Row) -> Result<(PaymentId, PaymentRow), LoadError> {
    let (id, body): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    let (session, events) = payment_body(id, body)?;
    let time =
        |column| Ok::<_, Error>(row.try_get::<_, Option<i64>>(column)?.and_then(|at| Timestamp::from_millis(at).ok()));
    let columns = PaymentColumns {
        status: Some(Status::from(row.try_get::<_, &str>(2)?)),
        expiry: time(3)?,
        gateway_check: time(4)?,
        manual_settlement: row.try_get::<_, bool>(5)?.then_some(()),
        manual_review: row.try_get::<_, bool>(6)?.then_some(()),
    };
    Ok((session.payment.id.clone(), PaymentRow { session, events, columns }))
}

/// The columns developer, environment, digest, response, payment, claim, and the payment's body.
pub(super) fn idempotency_row(row: &Row) -> Result<(IdempotencyName, IdempotencyRow), LoadError> {
    let (developer, environment, digest): (String, &str, &[u8]) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let damaged = || StoreError::corrupt(b"idempotency", "its key is not of 32 bytes in a known environment");
    let environment = names::environment(environment).ok_or_else(damaged)?;
    let name = ((developer, environment.as_str()), digest.try_into().map_err(|_| damaged())?);
    let stored = row.try_get::<_, Option<&str>>(3)?;
    let response = stored.map(|json| response(json, row.try_get(4)?, row.try_get(6)?)).transpose()?;
    let claim = row.try_get::<_, Option<&str>>(5)?.map(|json| parse("idempotency", json)).transpose()?;
    Ok((name, IdempotencyRow { response, claim }))
}

/// A stored response, with the body that an event of its payment holds.
fn response(json: &str, payment: Option<&str>, record: Option<&str>) -> Result<ResponseRow, LoadError> {
    let ResponseBody { fingerprint, created_at, body, event } = parse("idempotency", json)?;
    let missing = || StoreError::corrupt(b"idempotency", "the event of a stored response is not there");
    let (body, event) = match (body, event) {
        (Some(body), _) => (body, None),
        (None, Some(event)) => {
            let (id, record) = payment.zip(record).ok_or_else(missing)?;
            let (session, events) = payment_body(id, record)?;
            let mut found = events.into_iter().find(|found| found.id == event).ok_or_else(missing)?;
            let data = found
                .take_data(|| RawJson::of(&session.payment))
                .map_err(|error| StoreError::corrupt(id.as_bytes(), error))?;
            (data, Some((session.payment.id, event)))
        }
        (None, None) => return Err(missing().into()),
    };
    Ok(ResponseRow { response: StoredResponse { fingerprint, created_at, body }, event })
}
