//! Claims on work: rows of `lease`, taken over by compare-and-set when their time has ended.

use payments_core::{Timestamp, WebhookId};
use tokio_postgres::Row;

use super::{PostgresStore, names, read::field};
use crate::store::{Claim, Lease, Planned, Queue, Result, StoreError, Work};

/// Inserts leases for what `due` finds, oldest first. Parameters: now, server, end, epoch, limit. A statement whose answer was
/// lost is sent again with the same epoch, and claims the same work again. Which leases run is `Lease::finds_running`.
macro_rules! claim {
    ($due:literal, $queue:literal, $order:literal) => {
        claim!("", $due, $queue, $order)
    };
    ($before:literal, $due:literal, $queue:literal, $order:literal) => {
        concat!(
            "WITH RECURSIVE ",
            $before,
            "due AS (",
            $due,
            " AND NOT EXISTS (SELECT FROM lease l WHERE l.queue = '",
            $queue,
            "' AND l.work = d.work AND l.until > $1 AND l.until <= 2 * $3::bigint - $1 \
             AND NOT l.epoch BETWEEN $4::bigint + 1 AND $4::bigint + $5) ORDER BY ",
            $order,
            " LIMIT $5), numbered AS (SELECT work, row_number() OVER (ORDER BY ",
            $order,
            ") AS number FROM due d) INSERT INTO lease (queue, work, epoch, server, until) SELECT '",
            $queue,
            "', work, $4::bigint + number, $2::bytea, $3::bigint FROM numbered ORDER BY work \
             ON CONFLICT (queue, work) DO UPDATE SET epoch = excluded.epoch, server = excluded.server, \
             until = excluded.until WHERE lease.until <= $1 OR lease.until > 2 * $3::bigint - $1 \
             OR lease.epoch BETWEEN $4::bigint + 1 AND $4::bigint + $5 \
             RETURNING work, epoch"
        )
    };
}

/// An event waits while an earlier one of its payment is claimed, unless by this statement.
const FAN_OUT: &str = claim!(
    "SELECT work FROM (SELECT id AS work, payment FROM pending_event) d WHERE NOT EXISTS (SELECT FROM pending_event e \
     JOIN lease o ON o.queue = 'fan-out' AND o.work = e.id AND o.until > $1 \
     AND o.until <= 2 * $3::bigint - $1 AND NOT o.epoch BETWEEN $4::bigint + 1 AND $4::bigint + $5 \
     WHERE e.payment = d.payment AND e.id < d.work)",
    "fan-out",
    "work"
);
/// Steps from each endpoint with pending deliveries to the next one in the index.
const LANES: &str = claim!(
    "lanes AS ((SELECT endpoint FROM delivery WHERE is_pending ORDER BY endpoint LIMIT 1) \
     UNION ALL SELECT (SELECT endpoint FROM delivery WHERE is_pending AND endpoint > lanes.endpoint \
     ORDER BY endpoint LIMIT 1) FROM lanes WHERE endpoint IS NOT NULL), ",
    "SELECT work FROM (SELECT endpoint AS work FROM lanes) d WHERE work IS NOT NULL",
    "lane",
    "work"
);
const RETRIES: &str = claim!(
    "SELECT work, at FROM (SELECT id AS work, retry_at AS at FROM delivery WHERE NOT is_pending) d WHERE at < $1",
    "retry",
    "at, work"
);
const EXPIRY: &str = claim!(
    "SELECT work, at FROM (SELECT id AS work, expires_at AS at FROM payment) d WHERE at < $1",
    "expiry",
    "at, work"
);
const GATEWAY_CHECKS: &str = claim!(
    "SELECT work, at FROM (SELECT id AS work, check_at AS at FROM payment) d WHERE at < $1",
    "gateway-check",
    "at, work"
);
/// Of the events that have just been claimed, those that another claim overtook.
const OVERTAKEN: &str = "SELECT d.id FROM pending_event d WHERE d.id = ANY($1) AND EXISTS (SELECT FROM pending_event e \
                         JOIN lease o ON o.queue = 'fan-out' AND o.work = e.id AND o.until > $2 \
                         AND o.until <= 2 * $3::bigint - $2 AND NOT o.work = ANY($1) \
                         WHERE e.payment = d.payment AND e.id < d.id)";
const CLAIM_LANE: &str = "INSERT INTO lease (queue, work, epoch, server, until) SELECT 'lane', $5, $4, $2, $3 \
                          WHERE EXISTS (SELECT FROM delivery WHERE endpoint = $5 AND is_pending) \
                          ON CONFLICT (queue, work) DO UPDATE SET epoch = excluded.epoch, server = excluded.server, \
                          until = excluded.until WHERE lease.until <= $1 OR lease.until > 2 * $3::bigint - $1 \
                          OR lease.epoch = $4 RETURNING work, epoch";
const RETRIES_AFTER: &str = "SELECT id, retry_at FROM delivery WHERE NOT is_pending AND retry_at > $1 ORDER BY retry_at \
                             FETCH FIRST $2 ROWS WITH TIES";
const EXPIRY_AFTER: &str = "SELECT id, expires_at FROM payment WHERE expires_at > $1 ORDER BY expires_at \
                            FETCH FIRST $2 ROWS WITH TIES";
const CHECKS_AFTER: &str = "SELECT id, check_at FROM payment WHERE check_at > $1 ORDER BY check_at \
                            FETCH FIRST $2 ROWS WITH TIES";
const RENEW: &str = "UPDATE lease SET until = $4 WHERE queue = $1 AND work = $2 AND epoch = $3 RETURNING work";
const RELEASE: &str = "DELETE FROM lease l USING (SELECT l.queue, l.work FROM lease l JOIN \
                       unnest($1::text[], $2::text[], $3::bigint[]) k (queue, work, epoch) USING (queue, work, epoch) \
                       ORDER BY 1, 2 FOR UPDATE OF l) o WHERE l.queue = o.queue AND l.work = o.work";

impl PostgresStore {
    pub(super) async fn claim_due(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        let (sql, name) = match queue {
            Queue::FanOut => (FAN_OUT, names::FAN_OUT),
            Queue::Lanes => (LANES, names::LANE),
            Queue::Retries => (RETRIES, names::RETRY),
            Queue::Expiry => (EXPIRY, names::EXPIRY),
            Queue::GatewayChecks => (GATEWAY_CHECKS, names::GATEWAY_CHECK),
        };
        let (now, until) = (lease.now.as_millis(), lease.until.as_millis());
        let (server, limit) = (&lease.server.0[..], i64::try_from(at_most).unwrap_or(i64::MAX));
        let rows = self.readers.query(sql, &[&now, &server, &until, &self.epoch(), &limit]).await?;
        let mut claims = rows.iter().map(|row| claim_of(row, name)).collect::<Result<Vec<_>>>()?;
        // Epochs are numbered in the order of the work.
        claims.sort_by_key(|claim| claim.epoch);
        if queue == Queue::FanOut && !claims.is_empty() {
            let ids: Vec<_> = claims.iter().map(|claim| names::work(&claim.work).1).collect();
            let rows = self.readers.query(OVERTAKEN, &[&ids, &now, &until]).await?;
            let overtaken = rows.iter().map(|row| field(row, 0)).collect::<Result<Vec<String>>>()?;
            let (given_back, kept): (Vec<_>, Vec<_>) =
                claims.into_iter().partition(|claim| overtaken.contains(&names::work(&claim.work).1));
            self.release_claims(&given_back).await?;
            claims = kept;
        }
        Ok(claims)
    }

    pub(super) async fn planned_after(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        let (sql, name) = match queue {
            Queue::FanOut | Queue::Lanes => return Ok(Vec::new()),
            Queue::Retries => (RETRIES_AFTER, names::RETRY),
            Queue::Expiry => (EXPIRY_AFTER, names::EXPIRY),
            Queue::GatewayChecks => (CHECKS_AFTER, names::GATEWAY_CHECK),
        };
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = self.readers.query(sql, &[&after.as_millis(), &limit]).await?;
        let planned = |row: &Row| Ok((time(field(row, 1)?)?, work_of(name, field(row, 0)?)?));
        rows.iter().map(planned).collect()
    }

    pub(super) async fn claim_one_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        let (now, until) = (lease.now.as_millis(), lease.until.as_millis());
        let parameters = (&lease.server.0[..], endpoint.as_str());
        let row = self.readers.one(CLAIM_LANE, &[&now, &parameters.0, &until, &self.epoch(), &parameters.1]).await?;
        row.map(|row| claim_of(&row, names::LANE)).transpose()
    }

    pub(super) async fn renew_claim(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        let (queue, work) = names::work(&claim.work);
        let (epoch, until) = (claim.epoch.cast_signed(), lease.until.as_millis());
        Ok(self.readers.one(RENEW, &[&queue, &work, &epoch, &until]).await?.is_some())
    }

    /// Ends claims, in the order in which all servers lock leases.
    pub(super) async fn release_claims(&self, claims: &[Claim]) -> Result<()> {
        if claims.is_empty() {
            return Ok(());
        }
        let (queues, works): (Vec<_>, Vec<_>) = claims.iter().map(|claim| names::work(&claim.work)).unzip();
        let epochs: Vec<_> = claims.iter().map(|claim| claim.epoch.cast_signed()).collect();
        self.readers.query(RELEASE, &[&queues, &works, &epochs]).await.map(drop)
    }

    /// The number before the epochs of some claims: random, so that no other claim has them. Epochs have no order.
    fn epoch(&self) -> i64 {
        i64::from_le_bytes(self.ambient.random()) >> 1
    }
}

fn claim_of(row: &Row, queue: &str) -> Result<Claim> {
    let (id, epoch): (&str, i64) = (field(row, 0)?, field(row, 1)?);
    Ok(Claim { work: work_of(queue, id)?, epoch: epoch.cast_unsigned() })
}

fn work_of(queue: &str, id: &str) -> Result<Work> {
    names::known_work(queue, id).ok_or_else(|| StoreError::corrupt(id.as_bytes(), "it is no id"))
}

fn time(millis: i64) -> Result<Timestamp> {
    Timestamp::from_millis(millis).map_err(|error| StoreError::corrupt(b"a planned time", error))
}
