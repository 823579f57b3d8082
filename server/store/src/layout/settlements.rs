//! The rows of gateways' statements, and the payments that wait for theirs.
//!
//! A row's record says for good where the row is booked. All are in the first slot, so one commit can write a batch of them.

use std::collections::BTreeMap;

use payments_core::{Currency, Environment, LedgerAccount, PaymentId, Slot, Timestamp};

use super::{
    Store,
    booking::books_of,
    codec::items,
    entry::{Entry, Record, key_alone, owners_at},
    keys::{self, UNSETTLED},
    merchants::Versioned,
    payment::StoredPayment,
    reads::{Scan, parse},
};
use crate::{
    Result,
    bytes::with_prefix,
    domain::{GatewayName, Session, SettledRow},
};

impl Record for SettledRow {
    fn key(&self) -> Vec<u8> {
        keys::settled_row(self.gateway, &self.row.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let Self { gateway, row, payment, .. } = self;
        let mut entries = Vec::new();
        if payment.is_none() {
            entries.push(key_alone(keys::suspended_row(*gateway, &row.id)));
        }
        for posting in self.bookings().flat_map(|(_, booking)| booking.postings().collect::<Vec<_>>()) {
            let name = books_of(Environment::Live, row.currency, posting.account, Some(*gateway));
            entries.push(Entry::Sum { head: keys::gauges(), name, amount: posting.minor.into() });
        }
        entries
    }
}

impl Versioned for SettledRow {
    fn version(&self) -> u64 {
        self.version
    }
}

impl Store {
    /// The imported rows of a gateway with these ids, in their order.
    pub async fn settled_rows<'i>(
        &self,
        gateway: GatewayName,
        ids: impl Iterator<Item = &'i str>,
    ) -> Result<Vec<Option<SettledRow>>> {
        let keys: Vec<_> = ids.map(|id| keys::settled_row(gateway, id)).collect();
        let found = self.of(Slot::FIRST).get(keys.clone()).await?;
        let of = |(key, value): (Vec<u8>, Option<Vec<u8>>)| value.map(|value| parse(&key, &value)).transpose();
        keys.into_iter().zip(found).map(of).collect()
    }

    /// At most `at_most` imported rows strictly after one, in the order of their gateways and ids: those without a payment, or
    /// all.
    pub async fn settled_rows_after(
        &self,
        after: Option<(GatewayName, &str)>,
        is_suspended: bool,
        at_most: usize,
    ) -> Result<Vec<SettledRow>> {
        let reads = self.of(Slot::FIRST);
        let (prefix, at) = match is_suspended {
            true => (keys::suspended_rows(), after.map(|(gateway, id)| keys::suspended_row(gateway, id))),
            false => (keys::settled_rows(), after.map(|(gateway, id)| keys::settled_row(gateway, id))),
        };
        let range = with_prefix(&prefix);
        let start = at.map_or(range.start, |at| [&at[..], &[0]].concat());
        let found = reads.range(start..range.end, at_most).await?;
        if !is_suspended {
            return found.iter().map(|(key, value)| parse(key, value)).collect();
        }
        let rows = keys::settled_rows();
        let keys = found.iter().map(|(key, _)| [&rows[..], &key[prefix.len()..]].concat()).collect();
        reads.records(keys, |key, value| parse(key, &value)).await
    }

    /// The sessions of these payments, without missing ones.
    pub async fn sessions(&self, ids: &[PaymentId]) -> Result<Vec<Session>> {
        let mut by_cell = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            by_cell.entry(self.bytes.cell_of(id.slot())).or_default().push(keys::payment(id));
        }
        let mut found = Vec::new();
        for (cell, keys) in by_cell {
            let of = |key: &[u8], record: Vec<u8>| Ok(StoredPayment::parse(key, &record)?.session.into_owned());
            found.extend(self.in_cell(cell).records(keys, of).await?);
        }
        Ok(found)
    }

    /// The payments that have each of these names at a gateway, in the order of the names: a transaction that paid them, or our
    /// reference for an attempt, unless it begins with the payment's id.
    pub async fn payments_at_gateway(
        &self,
        gateway: GatewayName,
        transactions: &[&str],
    ) -> Result<Vec<Vec<PaymentId>>> {
        let mut found = vec![Vec::new(); transactions.len()];
        let keys: Vec<_> = transactions.iter().map(|it| keys::at_gateway(gateway, it)).collect();
        for reads in self.cells()? {
            for (ids, owners) in found.iter_mut().zip(reads.get(keys.clone()).await?) {
                let owners = owners.unwrap_or_default();
                ids.extend(items(&owners).filter_map(|id| str::from_utf8(id).ok()?.parse::<PaymentId>().ok()));
            }
        }
        Ok(found)
    }

    /// The payments of which a gateway took money by this transaction, or that have this reference for an attempt there.
    pub async fn payments_of_transaction(&self, gateway: GatewayName, transaction: &str) -> Result<Vec<PaymentId>> {
        let keys = vec![keys::at_gateway(gateway, transaction), keys::surplus_at_gateway(gateway, transaction)];
        let mut found = Vec::new();
        for reads in self.cells()? {
            for owners in reads.get(keys.clone()).await?.into_iter().flatten() {
                found.extend(items(&owners).filter_map(|id| str::from_utf8(id).ok()?.parse::<PaymentId>().ok()));
            }
        }
        Ok(found)
    }

    /// At most `at_most` payments that wait for a settled row since before a time, strictly after one, the longest waiting
    /// first.
    pub async fn unsettled(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, &PaymentId)>,
        at_most: usize,
    ) -> Result<Vec<(Timestamp, Session)>> {
        let mut found: Vec<(Timestamp, PaymentId)> = Vec::new();
        for reads in self.cells()? {
            let mut range = UNSETTLED.before(before);
            range.start = after.map_or(range.start, |(time, _)| UNSETTLED.at(time));
            let (mut scan, mut count) = (Scan::new(reads, range), 0);
            while count < at_most
                && let Some((key, value)) = scan.next().await?
            {
                let Some(time) = UNSETTLED.time_of(&key) else { continue };
                let owners = owners_at(UNSETTLED, &key, &value).into_iter();
                let ids = owners.filter_map(|owner| str::from_utf8(&owner).ok()?.parse::<PaymentId>().ok());
                let ids = ids.map(|id| (time, id)).filter(|(time, id)| after.is_none_or(|after| (*time, id) > after));
                let length = found.len();
                found.extend(ids);
                count += found.len() - length;
            }
        }
        found.sort();
        found.truncate(at_most);
        let ids: Vec<_> = found.iter().map(|(_, id)| id.clone()).collect();
        let mut sessions: BTreeMap<_, _> =
            self.sessions(&ids).await?.into_iter().map(|it| (it.payment.id.clone(), it)).collect();
        Ok(found.into_iter().filter_map(|(time, id)| Some((time, sessions.remove(&id)?))).collect())
    }

    /// What the clearing account of a gateway holds.
    pub async fn clearing(&self, gateway: GatewayName, currency: Currency) -> Result<i128> {
        let name = books_of(Environment::Live, currency, LedgerAccount::GatewayClearing, Some(gateway));
        Ok(self.gauge_heads().await?.iter().map(|head| head.sum(&name)).sum())
    }
}
