//! Reads payouts.

use std::ops::Range;

use payments_core::{Balance, Currency, PayoutId, Timestamp};

use super::{
    Store,
    codec::unpack,
    entry::owners_at,
    keys::{self, SCHEDULES},
    list::{List, ReadList},
    lists::listed,
    payout::{StoredPayout, stated_in},
    reads::{Reads, Scan, parse},
};
use crate::{
    Result, StoreError,
    bytes::with_prefix,
    domain::{Destination, PayoutRecord, Scope},
};

/// Where a merchant's next statement in a currency begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextStatement {
    /// The position of its first transaction.
    pub from: u64,
    pub opening_balance: Balance,
}

impl Store {
    pub async fn destination(&self, scope: &Scope, currency: Currency) -> Result<Option<Destination>> {
        self.of_scope(scope).json(keys::destination(scope, currency)).await
    }

    /// At most `at_most` destinations whose next payout is due.
    pub async fn due_schedules(&self, now: Timestamp, at_most: usize) -> Result<Vec<Destination>> {
        let mut found = Vec::new();
        for reads in self.cells()? {
            let mut owners = Vec::new();
            for (key, value) in reads.range(SCHEDULES.before(now.plus_millis(1)), at_most).await? {
                owners.extend(owners_at(SCHEDULES, &key, &value));
            }
            found.extend(reads.records(owners, |key, value| parse(key, &value)).await?);
        }
        found.truncate(at_most);
        Ok(found)
    }

    pub async fn payout(&self, id: &PayoutId) -> Result<Option<PayoutRecord>> {
        let stored: Option<StoredPayout> = self.of(id.slot()).json(keys::payout(id)).await?;
        Ok(stored.map(|it| it.record))
    }

    /// At most `at_most` payouts of a scope, newest first, from the one after `after` on; `None` if the scope has no payout
    /// `after`.
    pub async fn payouts(
        &self,
        scope: &Scope,
        after: Option<&PayoutId>,
        at_most: usize,
    ) -> Result<Option<Vec<PayoutRecord>>> {
        let reads = self.of_scope(scope);
        let mut list = ReadList::open(reads, List::payouts(scope)).await?;
        let end = match after {
            None => list.count(),
            Some(id) => {
                let stored: Option<StoredPayout> = reads.json(keys::payout(id)).await?;
                match stored.filter(|it| it.record.scope == *scope) {
                    Some(stored) => stored.position,
                    None => return Ok(None),
                }
            }
        };
        let positions: Vec<u64> = (end.saturating_sub(at_most as u64)..end).rev().collect();
        let stored = stored(reads, &list.at(&positions).await?).await?;
        Ok(Some(stored.into_iter().map(|it| it.record).collect()))
    }

    /// Every payout that is open, oldest first.
    pub async fn open_payouts(&self) -> Result<Vec<PayoutRecord>> {
        self.some_open_payouts(usize::MAX).await
    }

    /// The same, at most `at_most` of each cell.
    pub async fn some_open_payouts(&self, at_most: usize) -> Result<Vec<PayoutRecord>> {
        self.payouts_with(&keys::open_payouts(), at_most).await
    }

    /// Every payout of an operator's batch, oldest first.
    pub async fn payouts_in_batch(&self, batch: &str) -> Result<Vec<PayoutRecord>> {
        self.payouts_with(&keys::payouts_in_batch(batch), usize::MAX).await
    }

    /// The payouts at the ends of the keys with a prefix, oldest first.
    async fn payouts_with(&self, prefix: &[u8], at_most: usize) -> Result<Vec<PayoutRecord>> {
        let mut found = Vec::new();
        for reads in self.cells()? {
            let (mut scan, mut ids) = (Scan::new(reads, with_prefix(prefix)), Vec::new());
            while ids.len() < at_most
                && let Some((key, _)) = scan.next().await?
            {
                ids.extend(keys::id_at_end::<PayoutId>(&key));
            }
            let stored = reads
                .records(ids.iter().map(keys::payout).collect(), |key, value| parse::<StoredPayout>(key, &value))
                .await?;
            found.extend(stored.into_iter().map(|it| it.record));
        }
        found.sort_by(|a: &PayoutRecord, b| a.payout.id.cmp(&b.payout.id));
        Ok(found)
    }

    /// Where a scope's next statement in a currency begins: after the last payout that the bank paid at once.
    pub async fn next_statement(&self, scope: &Scope, currency: Currency) -> Result<NextStatement> {
        let reads = self.of_scope(scope);
        let head = reads.head(&keys::head_of_scope(scope)).await?;
        let from = u64::try_from(head.sum(&stated_in(currency))).unwrap_or_default();
        let Some(last) = from.checked_sub(1) else { return Ok(NextStatement::default()) };
        let mut list = ReadList::open(reads, List::transactions(scope)).await?;
        let ended = listed(reads, &list.at(&[last]).await?).await?.pop().and_then(|it| it.money.listed);
        let missing = || StoreError::corrupt(&keys::head_of_scope(scope), "the end of the last statement is not there");
        let balance = ended.ok_or_else(missing)?.balances().of(currency);
        Ok(NextStatement { from, opening_balance: Balance::from_minor(balance) })
    }

    /// The positions of a payout's transactions in the list of its scope. Its own is the last.
    pub async fn statement_of(&self, id: &PayoutId) -> Result<Option<Range<u64>>> {
        let stored: Option<StoredPayout> = self.of(id.slot()).json(keys::payout(id)).await?;
        Ok(stored.map(|it| it.record.from..it.to + 1))
    }
}

/// The payouts of these items of a list, in their order.
async fn stored(reads: Reads<'_>, items: &[Vec<u8>]) -> Result<Vec<StoredPayout>> {
    let keys = items.iter().filter_map(|it| unpack(PayoutId::PREFIX, it)).map(|id| keys::payout(&id)).collect();
    reads.records(keys, |key, value| parse(key, &value)).await
}
