//! Reads records. Each verb is one statement, and a statement sees one moment.

use payments_core::{
    AppId, Currency, Delivery, DeliveryId, DeveloperId, Environment, EventId, LedgerAccount, Page, PageRequest,
    PaymentId, RANDOM_BYTES, RawJson, Slot, Status, Timestamp, UnknownFields, WebhookId, WorkspaceId,
};
use serde::de::DeserializeOwned;
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql},
};

use super::{
    PostgresStore,
    load::{LoadError, idempotency_row, payment_body},
    names::{self, Kind},
    sqlstate::store_error,
};
use crate::{
    domain::{
        ApiKey, App, Endpoint, IdempotencyKey, KeyHash, Outgoing, PendingEvent, Scope, Session, StoredResponse,
        StoredToken, Totals, Workspace,
    },
    store::{DeliveriesFrom, OutboxHead, Result, StoreError, StoredEvent},
};

const RECORD: &str = "SELECT body FROM record WHERE kind = $1 AND id = $2";
const RECORDS: &str = "SELECT body, id FROM record WHERE kind = $1 ORDER BY id";
const RECORDS_OF: &str = "SELECT body, id FROM record WHERE kind = $1 AND parent = $2 AND id > $3 ORDER BY id LIMIT $4";
const SESSION: &str = "SELECT body FROM payment WHERE id = $1";
const SETTLEMENTS: &str = "SELECT id, body FROM payment WHERE needs_settlement ORDER BY id";
const REVIEWS: &str = "SELECT id, body FROM payment WHERE needs_review ORDER BY id";
const SUMS: &str = "SELECT name, sum(value)::text FROM total WHERE developer = $1 AND environment = $2 \
    AND name = ANY($3) GROUP BY name";
const STATUS_SUMS: &str = "SELECT environment, name, sum(value)::bigint FROM total WHERE name LIKE 'payments/%' \
    GROUP BY environment, name";
const RESPONSE: &str = "SELECT i.developer, i.environment, i.digest, i.response, i.payment, NULL::text, p.body \
    FROM idempotency i LEFT JOIN payment p ON p.id = i.payment \
    WHERE i.developer = $1 AND i.environment = $2 AND i.digest = $3 AND i.response IS NOT NULL";
const PENDING_EVENT: &str = "SELECT e.payment, e.after, p.body FROM pending_event e \
    LEFT JOIN payment p ON p.id = e.payment WHERE e.id = $1";
const DELIVERY: &str = "SELECT d.id, d.body, p.body FROM delivery d LEFT JOIN payment p ON p.id = d.payment \
    WHERE d.id = $1";
/// A page of deliveries, of all or of those that a condition on `d` selects, and how many there are.
macro_rules! deliveries {
    ($condition:literal) => {
        concat!(
            "WITH shown AS (SELECT d.id, d.body, p.body AS payment FROM (SELECT d.id FROM delivery d \
             WHERE d.developer = $1 AND d.environment = $2",
            $condition,
            " ORDER BY d.id DESC OFFSET $4 LIMIT $5) k JOIN delivery d USING (id) \
             LEFT JOIN payment p ON p.id = d.payment), \
             counted AS (SELECT coalesce(sum(value), 0)::bigint AS total FROM total WHERE developer = $1 \
             AND environment = $2 AND name = $3) \
             SELECT s.id, s.body, s.payment, c.total FROM counted c LEFT JOIN shown s ON true ORDER BY s.id DESC"
        )
    };
}
const DELIVERIES: &str = deliveries!("");
const DELIVERIES_TO: &str = deliveries!(" AND d.endpoint = $6");
const DELIVERIES_OF: &str = "SELECT d.id, d.body, p.body FROM delivery d LEFT JOIN payment p ON p.id = d.payment \
    WHERE d.payment = $3 AND d.developer = $1 AND d.environment = $2 ORDER BY d.id LIMIT $4";
const DELIVERIES_FROM: &str = "SELECT d.id, d.body, p.body FROM delivery d LEFT JOIN payment p ON p.id = d.payment \
    WHERE d.endpoint = $3 AND d.developer = $1 AND d.environment = $2 AND d.id > $4 ORDER BY d.id LIMIT $5";
const OUTBOX: &str = "SELECT id FROM delivery WHERE endpoint = $1 AND is_pending ORDER BY id LIMIT $2";
const WAITING: &str = "SELECT count(*) FROM delivery WHERE retry_at IS NOT NULL AND NOT is_pending";
/// Of the first delivery of each outbox: the oldest one that was not attempted, and since when a further attempt is due.
const OLDEST_PENDING: &str = "SELECT min(id) FILTER (WHERE retry_at IS NULL), min(retry_at), \
    (SELECT count(*) FROM delivery WHERE is_pending) FROM (SELECT DISTINCT ON (endpoint) id, retry_at FROM delivery \
    WHERE is_pending ORDER BY endpoint, id) d";

/// A field of a row.
pub(super) fn field<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| store_error(&error))
}

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| StoreError::corrupt(what.as_bytes(), error))
}

/// The delivery of a row with its id, its body and its payment's body.
pub(super) fn delivery(row: &Row) -> Result<Outgoing> {
    let (id, body, payment): (&str, &str, Option<&str>) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
    let mut outgoing: Outgoing = parse(id, body)?;
    if let Some(event) = &outgoing.event {
        let missing = || StoreError::corrupt(id.as_bytes(), "its event is not there");
        let (session, mut stored) = event_of(event, id, payment.ok_or_else(missing)?)?.ok_or_else(missing)?;
        let corrupt = |error| StoreError::corrupt(id.as_bytes(), error);
        let data = stored.take_data(|| RawJson::of(&session.payment)).map_err(corrupt)?;
        stored.fill(&mut outgoing, &data).map_err(corrupt)?;
    }
    Ok(outgoing)
}

/// An event in its payment's body, with the session.
fn event_of(event: &EventId, id: &str, body: &str) -> Result<Option<(Session, StoredEvent)>> {
    let (session, events) = payment_body(id, body)?;
    Ok(events.into_iter().find(|stored| stored.id == *event).map(|stored| (session, stored)))
}

/// The API keys of rows, in the order of their workspaces and ids.
fn keys_in(rows: &[Row]) -> Result<Vec<(KeyHash, ApiKey)>> {
    let mut keys: Vec<(KeyHash, ApiKey)> = Vec::new();
    for row in rows {
        let id: &str = field(row, 1)?;
        let Some(digest) = hex::decode(id).ok().and_then(|hash| hash.try_into().ok()) else { continue };
        let key: ApiKey = parse(id, field(row, 0)?)?;
        keys.push((KeyHash { slot: key.scope.developer_id.slot(), digest }, key));
    }
    keys.sort_by(|(_, one), (_, other)| (&one.workspace_id, &one.id).cmp(&(&other.workspace_id, &other.id)));
    Ok(keys)
}

impl PostgresStore {
    pub(super) async fn record<T: DeserializeOwned>(&self, kind: Kind, id: &str) -> Result<Option<T>> {
        let row = self.readers.one(RECORD, &[&kind.as_str(), &id]).await?;
        row.map(|row| parse(id, field(&row, 0)?)).transpose()
    }

    /// A parent's records, in the order of their ids after `after`.
    pub(super) async fn records_of<T: DeserializeOwned>(
        &self,
        kind: Kind,
        parent: &str,
        after: &str,
        at_most: usize,
    ) -> Result<Vec<T>> {
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = self.readers.query(RECORDS_OF, &[&kind.as_str(), &parent, &after, &limit]).await?;
        rows.iter().map(|row| parse(field(row, 1)?, field(row, 0)?)).collect()
    }

    pub(super) async fn key_records(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        keys_in(&self.readers.query(RECORDS, &[&Kind::ApiKey.as_str()]).await?)
    }

    pub(super) async fn key_records_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        let row = [&Kind::ApiKey.as_str() as &(dyn ToSql + Sync), &workspace.as_str(), &"", &i64::MAX];
        keys_in(&self.readers.query(RECORDS_OF, &row).await?)
    }

    pub(super) async fn workspace_records(&self) -> Result<Vec<Workspace>> {
        let rows = self.readers.query(RECORDS, &[&Kind::Workspace.as_str()]).await?;
        rows.iter().map(|row| parse(field(row, 1)?, field(row, 0)?)).collect()
    }

    pub(super) async fn app_record(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        self.record(Kind::App, &names::app(developer, id)).await
    }

    pub(super) async fn workspace_record_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        Ok(self.records_of(Kind::Workspace, developer.as_str(), "", 1).await?.pop())
    }

    pub(super) async fn token_record(&self, name: &str) -> Result<Option<StoredToken>> {
        self.record(Kind::GatewayToken, name).await
    }

    pub(super) async fn endpoint_records(
        &self,
        scope: &Scope,
        after: Option<&WebhookId>,
        at_most: usize,
    ) -> Result<Vec<Endpoint>> {
        let after = after.map_or("", WebhookId::as_str);
        self.records_of(Kind::Endpoint, &names::endpoints_of(scope), after, at_most).await
    }

    pub(super) async fn totals_of(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        let (developer, environment) = names::scope(scope);
        let wanted =
            [names::balance(currency, LedgerAccount::Merchant), names::volume(currency), names::paid(currency)];
        let rows = self.readers.query(SUMS, &[&developer, &environment, &&wanted[..]]).await?;
        let mut sums = [0_i128; 3];
        for row in &rows {
            let (name, sum): (&str, &str) = (field(row, 0)?, field(row, 1)?);
            if let Some(nth) = wanted.iter().position(|wanted| wanted == name) {
                sums[nth] = sum.parse().map_err(|error| StoreError::corrupt(name.as_bytes(), error))?;
            }
        }
        let [balance_minor, volume_minor, payments] = sums;
        Ok(Totals { balance_minor, volume_minor, payments: u64::try_from(payments).unwrap_or_default() })
    }

    pub(super) async fn status_counts(&self) -> Result<Vec<(Environment, Status, u64)>> {
        let mut counts = Vec::new();
        for row in self.readers.query(STATUS_SUMS, &[]).await? {
            let (environment, name, count): (&str, &str, i64) = (field(&row, 0)?, field(&row, 1)?, field(&row, 2)?);
            let status = name.strip_prefix(names::STATUS).map(Status::from);
            if let (Some(environment), Some(status)) = (names::environment(environment), status) {
                counts.push((environment, status, u64::try_from(count).unwrap_or_default()));
            }
        }
        Ok(counts)
    }

    pub(super) async fn response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        let (developer, environment) = names::scope(&key.scope);
        let row = self.readers.one(RESPONSE, &[&developer, &environment, &&key.digest[..]]).await?;
        let Some(row) = row else { return Ok(None) };
        match idempotency_row(&row) {
            Ok((_, row)) => Ok(row.response.map(|response| response.response)),
            Err(LoadError::Store(error)) => Err(error),
            Err(LoadError::Database(error)) => Err(store_error(&error)),
        }
    }

    pub(super) async fn session_of(&self, id: &PaymentId) -> Result<Option<Session>> {
        let row = self.readers.one(SESSION, &[&id.as_str()]).await?;
        row.map(|row| payment_body(id.as_str(), field(&row, 0)?).map(|(session, _)| session)).transpose()
    }

    pub(super) async fn sessions_to_settle(&self) -> Result<Vec<Session>> {
        self.sessions(SETTLEMENTS).await
    }

    pub(super) async fn sessions_to_review(&self) -> Result<Vec<Session>> {
        self.sessions(REVIEWS).await
    }

    async fn sessions(&self, sql: &'static str) -> Result<Vec<Session>> {
        let rows = self.readers.query(sql, &[]).await?;
        rows.iter().map(|row| Ok(payment_body(field(row, 0)?, field(row, 1)?)?.0)).collect()
    }

    pub(super) async fn pending(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        let Some(row) = self.readers.one(PENDING_EVENT, &[&id.as_str()]).await? else { return Ok(None) };
        let (after, body): (Option<&str>, Option<&str>) = (field(&row, 1)?, field(&row, 2)?);
        let missing = || StoreError::corrupt(id.as_str().as_bytes(), "the event's payment does not have it");
        let (session, mut event) = event_of(id, id.as_str(), body.ok_or_else(missing)?)?.ok_or_else(missing)?;
        let corrupt = |error| StoreError::corrupt(id.as_str().as_bytes(), error);
        let data = event.take_data(|| RawJson::of(&session.payment)).map_err(corrupt)?;
        let pending = PendingEvent::new(&session, id.clone(), event.event, event.created_at, &data).map_err(corrupt)?;
        let pending = PendingEvent { after: after.and_then(|after| after.parse().ok()), ..pending };
        let endpoints = self.endpoint_records(&pending.scope, pending.after.as_ref(), at_most).await?;
        Ok(Some((pending, endpoints)))
    }

    pub(super) async fn delivery_of(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        self.readers.one(DELIVERY, &[&id.as_str()]).await?.map(|row| delivery(&row)).transpose()
    }

    pub(super) async fn deliveries_of_payment(
        &self,
        scope: &Scope,
        payment: &PaymentId,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        let (developer, environment) = names::scope(scope);
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = self.readers.query(DELIVERIES_OF, &[&developer, &environment, &payment.as_str(), &limit]).await?;
        rows.iter().map(delivery).collect()
    }

    pub(super) async fn deliveries_after(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        let (developer, environment) = names::scope(scope);
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let earliest = DeliveryId::new(Slot::FIRST, from.earliest(), [0; RANDOM_BYTES]);
        let after = from.after.as_ref().unwrap_or(&earliest);
        let parameters: [&(dyn ToSql + Sync); 5] = [&developer, &environment, &to.as_str(), &after.as_str(), &limit];
        self.readers.query(DELIVERIES_FROM, &parameters).await?.iter().map(delivery).collect()
    }

    pub(super) async fn delivery_page(
        &self,
        scope: &Scope,
        to: Option<&WebhookId>,
        page: PageRequest,
    ) -> Result<Page<Delivery>> {
        let (developer, environment) = names::scope(scope);
        let (skipped, limit) = places(page);
        let name = to.map_or_else(|| names::DELIVERIES.to_owned(), names::deliveries_to);
        let endpoint = to.map(WebhookId::as_str).unwrap_or_default();
        let common: [&(dyn ToSql + Sync); 6] = [&developer, &environment, &name, &skipped, &limit, &endpoint];
        let rows = match to {
            None => self.readers.query(DELIVERIES, &common[..5]).await?,
            Some(_) => self.readers.query(DELIVERIES_TO, &common).await?,
        };
        let total: i64 = rows.first().map_or(Ok(0), |row| field(row, 3))?;
        let mut items = Vec::new();
        for row in &rows {
            if field::<Option<&str>>(row, 0)?.is_some() {
                items.push(delivery(row)?.delivery);
            }
        }
        Ok(Page {
            items,
            total: u64::try_from(total).unwrap_or_default(),
            page: page.page(),
            limit: page.limit(),
            unknown: UnknownFields::new(),
        })
    }

    pub(super) async fn outbox_head(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = self.readers.query(OUTBOX, &[&endpoint.as_str(), &limit]).await?;
        let is_all = rows.len() < at_most;
        let id = |row: &Row| {
            let id: &str = field(row, 0)?;
            id.parse().map_err(|error| StoreError::corrupt(id.as_bytes(), error))
        };
        Ok(OutboxHead { ids: rows.iter().map(id).collect::<Result<_>>()?, is_all })
    }

    pub(super) async fn waiting_count(&self) -> Result<u64> {
        let row = self.readers.one(WAITING, &[]).await?;
        let count: i64 = row.map_or(Ok(0), |row| field(&row, 0))?;
        Ok(count.cast_unsigned())
    }

    pub(super) async fn oldest_pending(&self) -> Result<Option<Timestamp>> {
        let row = self.readers.one(OLDEST_PENDING, &[]).await?;
        let Some(row) = row else { return Ok(None) };
        self.outbox.set(field(&row, 2)?);
        let (id, retry_at): (Option<String>, Option<i64>) = (field(&row, 0)?, field(&row, 1)?);
        let made_at = id.and_then(|id| id.parse().ok()).and_then(|id: DeliveryId| id.created_at());
        let retry_at = retry_at.and_then(|at| Timestamp::from_millis(at).ok());
        Ok(made_at.into_iter().chain(retry_at).min())
    }
}

/// How many entries a page passes over, and how many it shows.
pub(super) fn places(page: PageRequest) -> (i64, i64) {
    (i64::try_from(page.skipped()).unwrap_or(i64::MAX), page.limit().into())
}
