//! The lists of transactions: the events of changes with postings.
//!
//! A list is read up to a transaction before which none can still appear, so what the entries up to one add up to never changes.
//! A reader adds up what follows the last checkpoint before its page, and leaves a checkpoint after every `STEP` entries that no
//! reader has passed yet. So a page costs its own entries and two times `STEP` at most, and each entry is passed once more in its
//! life. Whoever writes a transaction adds nothing up.

use payments_core::{Currency, EventId, IdError, RANDOM_BYTES, Slot};
use tokio_postgres::Row;

use super::{PostgresStore, names, read::field};
use crate::{
    domain::{BothBalances, MoneyMove, Scope},
    store::{Result, StoreError, TransactionEntry, TransactionsFrom},
};

/// How many entries a checkpoint follows the one before.
const STEP: i64 = 500;
/// How many entries a statement passes at most.
const AT_ONCE: i64 = 100 * STEP;

/// A part of a list from a place in it on.
macro_rules! part {
    ($($from:literal)?) => {
        concat!(
            "SELECT e.id, e.payment, e.currency, e.amount, e.fee FROM event e WHERE e.developer = $1 AND e.environment = $2 \
             AND e.amount IS NOT NULL AND e.added_by < pg_snapshot_xmin(pg_current_snapshot())",
            $( $from, )?
            " ORDER BY e.added_by DESC, e.number DESC LIMIT $3"
        )
    };
}
const FROM_NEWEST: &str = part!();
const FROM_EVENT: &str =
    part!(" AND (e.added_by, e.number) <= (SELECT f.added_by, f.number FROM event f WHERE f.id = $4)");
/// The first event of a later time may be another developer's: all are in one order. Without one, all entries are earlier.
const BEFORE: &str = part!(
    " AND e.added_by <= coalesce((SELECT f.added_by FROM event f WHERE f.id >= $4 ORDER BY f.id LIMIT 1), \
     pg_snapshot_xmin(pg_current_snapshot()))"
);
const IS_LISTED: &str =
    "SELECT FROM event WHERE id = $3 AND developer = $1 AND environment = $2 AND amount IS NOT NULL";
/// Adds checkpoints after the last one of a scope. Servers that do so at the same time add the same ones.
const ADD_CHECKPOINTS: &str = "WITH last AS (SELECT added_by, number, bdt, usd FROM balance_checkpoint \
    WHERE developer = $1 AND environment = $2 ORDER BY added_by DESC, number DESC LIMIT 1), \
    next AS (SELECT e.added_by, e.number, e.currency, e.amount + e.fee AS net FROM event e \
    WHERE e.developer = $1 AND e.environment = $2 AND e.amount IS NOT NULL \
    AND e.added_by < pg_snapshot_xmin(pg_current_snapshot()) \
    AND (e.added_by, e.number) > (coalesce((SELECT added_by FROM last), '0'), coalesce((SELECT number FROM last), -1)) \
    ORDER BY e.added_by, e.number LIMIT $4), \
    summed AS (SELECT added_by, number, row_number() OVER o AS nth, \
    coalesce(sum(net) FILTER (WHERE currency = 'BDT') OVER o, 0) AS bdt, \
    coalesce(sum(net) FILTER (WHERE currency = 'USD') OVER o, 0) AS usd FROM next WINDOW o AS (ORDER BY added_by, number)) \
    INSERT INTO balance_checkpoint (developer, environment, added_by, number, bdt, usd) \
    SELECT $1, $2, added_by, number, bdt + coalesce((SELECT bdt FROM last), 0), usd + coalesce((SELECT usd FROM last), 0) \
    FROM summed WHERE nth % $3 = 0 ON CONFLICT DO NOTHING RETURNING number";
/// What the entries up to that of an event add up to.
const BALANCES: &str = "WITH at AS (SELECT added_by, number FROM event WHERE id = $3), \
    last AS (SELECT c.added_by, c.number, c.bdt, c.usd FROM balance_checkpoint c \
    WHERE c.developer = $1 AND c.environment = $2 AND (c.added_by, c.number) <= (SELECT added_by, number FROM at) \
    ORDER BY c.added_by DESC, c.number DESC LIMIT 1), \
    rest AS (SELECT sum(e.amount + e.fee) FILTER (WHERE e.currency = 'BDT') AS bdt, \
    sum(e.amount + e.fee) FILTER (WHERE e.currency = 'USD') AS usd FROM event e \
    WHERE e.developer = $1 AND e.environment = $2 AND e.amount IS NOT NULL \
    AND (e.added_by, e.number) <= (SELECT added_by, number FROM at) \
    AND (e.added_by, e.number) > (coalesce((SELECT added_by FROM last), '0'), coalesce((SELECT number FROM last), -1))) \
    SELECT (coalesce((SELECT bdt FROM last), 0) + coalesce(rest.bdt, 0))::text, \
    (coalesce((SELECT usd FROM last), 0) + coalesce(rest.usd, 0))::text FROM rest";

/// The columns currency, amount and fee, from one on.
pub(super) fn money(row: &Row, first: usize) -> Result<Option<MoneyMove>> {
    let (currency, amount, fee): (Option<&str>, Option<i64>, Option<i64>) =
        (field(row, first)?, field(row, first + 1)?, field(row, first + 2)?);
    let Some(((currency, amount), fee)) = currency.zip(amount).zip(fee) else { return Ok(None) };
    let currency: Currency = currency.parse().map_err(|error| StoreError::corrupt(b"event", error))?;
    Ok(Some(MoneyMove { currency, amount, fee }))
}

/// The columns id and payment, and the money.
fn entry(row: &Row) -> Result<(EventId, payments_core::PaymentId, MoneyMove)> {
    let (id, payment): (&str, &str) = (field(row, 0)?, field(row, 1)?);
    let corrupt = |error: IdError| StoreError::corrupt(id.as_bytes(), error);
    let money = money(row, 2)?.ok_or_else(|| StoreError::corrupt(id.as_bytes(), "a part of its money is missing"))?;
    Ok((id.parse().map_err(corrupt)?, payment.parse().map_err(corrupt)?, money))
}

impl PostgresStore {
    pub(super) async fn transaction_list(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        let (developer, environment) = names::scope(scope);
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = match from {
            TransactionsFrom::Newest => self.readers.query(FROM_NEWEST, &[&developer, &environment, &limit]).await?,
            TransactionsFrom::Event(id) => {
                if self.readers.one(IS_LISTED, &[&developer, &environment, &id.as_str()]).await?.is_none() {
                    return Ok(None);
                }
                self.readers.query(FROM_EVENT, &[&developer, &environment, &limit, &id.as_str()]).await?
            }
            TransactionsFrom::Before(time) => {
                let later = EventId::new(Slot::FIRST, TransactionsFrom::margin(*time), [0; RANDOM_BYTES]);
                self.readers.query(BEFORE, &[&developer, &environment, &limit, &later.as_str()]).await?
            }
        };
        let rows = rows.iter().map(entry).collect::<Result<Vec<_>>>()?;
        let Some((newest, ..)) = rows.first() else { return Ok(Some(Vec::new())) };
        let mut balances = self.balances_after(scope, newest, STEP).await?;
        let listed = rows.into_iter().map(|(event, payment, money)| {
            let balance_minor = balances.of(money.currency);
            balances = balances.before(&money);
            TransactionEntry { event, payment, money, balance_minor }
        });
        Ok(Some(listed.collect()))
    }

    /// What the entries of a scope up to that of an event add up to.
    pub(in crate::store) async fn balances_after(
        &self,
        scope: &Scope,
        event: &EventId,
        step: i64,
    ) -> Result<BothBalances> {
        let (developer, environment) = names::scope(scope);
        while !self.readers.query(ADD_CHECKPOINTS, &[&developer, &environment, &step, &AT_ONCE]).await?.is_empty() {}
        let row = self.readers.one(BALANCES, &[&developer, &environment, &event.as_str()]).await?;
        let sum = |nth| {
            let text: &str = row.as_ref().map_or(Ok("0"), |row| field(row, nth))?;
            text.parse::<i128>().map_err(|error| StoreError::corrupt(event.as_str().as_bytes(), error))
        };
        Ok(BothBalances { bdt: sum(0)?, usd: sum(1)? })
    }
}
