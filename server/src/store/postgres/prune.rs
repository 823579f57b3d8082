//! Drops and redacts old rows.

use payments_core::{DeliveryId, Timestamp};

use super::{
    PostgresStore,
    connector::{Connector, Purpose},
    read::{delivery, field},
    request_counts::millis,
    session::Session,
    sqlstate::store_error,
};
use crate::store::{Prunable, Result, StoreError, WINDOW};

const RESPONSES: &str = "WITH old AS (SELECT developer, environment, digest, claim FROM idempotency \
    WHERE responded_at < $1 ORDER BY responded_at LIMIT $2 FOR UPDATE), \
    dropped AS (DELETE FROM idempotency i USING old o WHERE i.developer = o.developer \
    AND i.environment = o.environment AND i.digest = o.digest AND o.claim IS NULL RETURNING 1), \
    claimed AS (UPDATE idempotency i SET responded_at = NULL, response = NULL, payment = NULL FROM old o \
    WHERE i.developer = o.developer AND i.environment = o.environment AND i.digest = o.digest \
    AND o.claim IS NOT NULL RETURNING 1) \
    SELECT (SELECT count(*) FROM dropped) + (SELECT count(*) FROM claimed)";
const KEY_CLAIMS: &str = "WITH old AS (SELECT developer, environment, digest, response FROM idempotency \
    WHERE claimed_until < $1 ORDER BY claimed_until LIMIT $2 FOR UPDATE), \
    dropped AS (DELETE FROM idempotency i USING old o WHERE i.developer = o.developer \
    AND i.environment = o.environment AND i.digest = o.digest AND o.response IS NULL RETURNING 1), \
    answered AS (UPDATE idempotency i SET claimed_until = NULL, claim = NULL FROM old o \
    WHERE i.developer = o.developer AND i.environment = o.environment AND i.digest = o.digest \
    AND o.response IS NOT NULL RETURNING 1) \
    SELECT (SELECT count(*) FROM dropped) + (SELECT count(*) FROM answered)";
/// Leases that nobody took over, windows of requests, and rows of connections that ended without removing them.
const LEFT_BEHIND: &str = "WITH ended AS (DELETE FROM lease WHERE until < $1), \
    over AS (DELETE FROM request_window WHERE begun_at < $1 - $2) \
    DELETE FROM connection WHERE seen_at < now() - interval '7 days'";
const NEXT_DELIVERY: &str = "SELECT id FROM delivery WHERE id > coalesce((SELECT up_to FROM redaction), '') \
    ORDER BY id LIMIT 1";
const NEXT_DELIVERIES: &str = "SELECT d.id, d.body, p.body, d.is_pending FROM delivery d \
    LEFT JOIN payment p ON p.id = d.payment WHERE d.id > coalesce((SELECT up_to FROM redaction), '') \
    ORDER BY d.id LIMIT $1 FOR UPDATE OF d";
const REDACT: &str = "UPDATE delivery d SET body = k.body FROM unnest($1::text[], $2::text[]) k (id, body) \
    WHERE d.id = k.id";
const REDACTED: &str = "INSERT INTO redaction (up_to) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET \
    up_to = greatest(redaction.up_to, $1)";

impl PostgresStore {
    pub(super) async fn prune_older(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        let (time, limit) = (before.as_millis(), i64::try_from(at_most).unwrap_or(i64::MAX));
        let sql = match what {
            Prunable::StoredResponses => RESPONSES,
            Prunable::KeyClaims => {
                self.readers.query(LEFT_BEHIND, &[&time, &millis(WINDOW)]).await?;
                KEY_CLAIMS
            }
            Prunable::DeliveryBodies => return self.redact(before, limit).await,
        };
        let row = self.readers.one(sql, &[&time, &limit]).await?;
        let dropped: i64 = row.map_or(Ok(0), |row| field(&row, 0))?;
        Ok(usize::try_from(dropped).unwrap_or_default())
    }

    /// Redacts over a connection of its own, since it needs a transaction, unless nothing is old enough.
    async fn redact(&self, before: Timestamp, at_most: i64) -> Result<usize> {
        let next = self.readers.one(NEXT_DELIVERY, &[]).await?;
        let next = next.map(|row| field::<String>(&row, 0)).transpose()?.and_then(|id| id.parse::<DeliveryId>().ok());
        if next.is_none_or(|id| id.created_at().is_some_and(|at| at >= before)) {
            return Ok(0);
        }
        let id = self.ambient.random();
        let connector = Connector::new(self.target.clone(), Purpose::Writing(Some(id)));
        let session = connector.connect().await.map_err(StoreError::unavailable)?;
        let redacting = async {
            let passed = redact_next(&session, before, at_most).await?;
            session.leave(&id).await.map_err(|error| store_error(&error))?;
            Ok(passed)
        };
        session.in_time(redacting).await.unwrap_or_else(|| Err(StoreError::unavailable("the database does not answer")))
    }
}

/// Redacts the next deliveries, oldest first, and returns how many it passed. A pending one keeps its payload until it ends.
async fn redact_next(session: &Session, before: Timestamp, at_most: i64) -> Result<usize> {
    let failed = |error| store_error(&error);
    session.client().batch_execute("BEGIN").await.map_err(failed)?;
    let rows = session.query(NEXT_DELIVERIES, &[&at_most]).await.map_err(failed)?;
    let (mut ids, mut bodies, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let id: String = field(&row, 0)?;
        let mut outgoing = delivery(&row)?;
        if outgoing.delivery.created_at >= before {
            break;
        }
        let corrupt = |error| StoreError::corrupt(id.as_bytes(), error);
        if !outgoing.is_pending() {
            outgoing.redact().map_err(corrupt)?;
            bodies.push(serde_json::to_string(&outgoing).map_err(corrupt)?);
            ids.push(id.clone());
        }
        passed.push(id);
    }
    if let Some(last) = passed.last() {
        session.query(REDACT, &[&ids, &bodies]).await.map_err(failed)?;
        session.query(REDACTED, &[last]).await.map_err(failed)?;
    }
    session.client().batch_execute("COMMIT").await.map_err(failed)?;
    Ok(passed.len())
}
