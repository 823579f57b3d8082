//! The record of an event. Its data is the payment of that moment. Until the payment changes, only the payment's record holds
//! the data. The payment's next change first writes the data to the event.

use payments_core::{Currency, EventId, EventKind, LedgerAccount, PaymentId, Posting, RawJson, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    entry::{Entry, Record},
    keys,
    list::{List, item_of_event},
    payment::StoredPayment,
    reads::Reads,
};
use crate::{
    EventEntry, StoreError,
    domain::{BothBalances, DayTotals, MoneyMove, Scope, volume_of},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredEvent {
    pub(super) id: EventId,
    pub(super) event: EventKind,
    pub(super) created_at: Timestamp,
    pub(super) scope: Scope,
    pub(super) payment: PaymentId,
    /// The version of its payment when it happened.
    pub(super) version: u64,
    /// Missing while the payment's record still has this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<RawJson>,
    /// Its position in the list of its scope's events.
    pub(super) position: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) money: Option<StoredMoney>,
    /// The progress of fan-out, until it is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Pending>,
}

/// The postings of an event, and the balances after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredMoney {
    pub(super) currency: Currency,
    pub(super) postings: Vec<Posting>,
    /// The day of the payment's creation, counted from 1970.
    pub(super) day: u32,
    /// Its position in the list of its scope's transactions.
    pub(super) position: u64,
    pub(super) bdt: i128,
    pub(super) usd: i128,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The last endpoint that fan-out has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<WebhookId>,
}

impl StoredMoney {
    pub(super) fn moved(&self) -> Option<MoneyMove> {
        MoneyMove::of(self.currency, &self.postings)
    }

    pub(super) fn balances(&self) -> BothBalances {
        BothBalances { bdt: self.bdt, usd: self.usd }
    }
}

impl StoredEvent {
    pub(super) fn entry(&self) -> EventEntry {
        EventEntry { id: self.id.clone(), kind: self.event.clone(), payment: self.payment.clone() }
    }

    pub(super) fn parse(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        super::reads::parse(key, value)
    }

    pub(super) async fn read(reads: Reads<'_>, id: &EventId) -> Result<Option<Self>, StoreError> {
        reads.json(keys::event(id)).await
    }
}

impl Record for StoredEvent {
    fn key(&self) -> Vec<u8> {
        keys::event(&self.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let (scope, item) = (&self.scope, item_of_event(&self.id));
        let mut entries = vec![Entry::Item { list: List::events(scope), position: self.position, item: item.clone() }];
        if let Some(money) = &self.money {
            let StoredMoney { currency, postings, day, position, .. } = money;
            entries.push(Entry::Item { list: List::transactions(scope), position: *position, item });
            let sum = |name, amount| Entry::Sum { head: keys::head_of_scope(scope), name, amount };
            for Posting { account, minor } in postings {
                entries.push(sum(balance_of(*currency, *account), i128::from(*minor)));
            }
            if let Some(volume_minor) = volume_of(postings) {
                entries.push(sum(volume_in(*currency), volume_minor));
                entries.push(sum(paid_in(*currency), 1));
                let added = DayTotals { created: 0, paid: 1, volume_minor };
                entries.push(Entry::Day { scope: scope.clone(), currency: *currency, day: *day, added });
            }
        }
        if self.pending.is_some() {
            let value = self.payment.as_str().as_bytes().to_vec();
            entries.push(Entry::Key { key: keys::pending_event(&self.id), value });
        }
        entries
    }
}

/// The name of the sum that is the balance of an account.
pub(super) fn balance_of(currency: Currency, account: LedgerAccount) -> String {
    let account = match account {
        LedgerAccount::GatewayClearing => "gateway_clearing",
        LedgerAccount::Merchant => "merchant",
        LedgerAccount::PlatformFee => "platform_fee",
    };
    format!("balance.{currency}.{account}")
}

/// The name of the sum that is the gross amount of all payments ever paid.
pub(super) fn volume_in(currency: Currency) -> String {
    format!("volume.{currency}")
}

/// The name of the sum that counts the payments ever paid.
pub(super) fn paid_in(currency: Currency) -> String {
    format!("paid.{currency}")
}

pub(super) struct WholeEvent {
    pub(super) event: StoredEvent,
    pub(super) data: RawJson,
}

/// How often to read events whose payments change meanwhile.
const READINGS: usize = 16;

/// The events of these ids with their data, in the order of the ids. Leaves out missing events.
pub(super) async fn whole_events(reads: Reads<'_>, ids: &[EventId]) -> Result<Vec<WholeEvent>, StoreError> {
    let mut found: Vec<(usize, WholeEvent)> = Vec::new();
    let mut wanted: Vec<(usize, EventId)> = ids.iter().cloned().enumerate().collect();
    for _ in 0..READINGS {
        let keys: Vec<_> = wanted.iter().map(|(_, id)| keys::event(id)).collect();
        let records = reads.get(keys.clone()).await?;
        let mut of_payments = Vec::new();
        for (((nth, _), key), record) in wanted.iter().zip(keys).zip(records) {
            let Some(record) = record else { continue };
            let mut event = StoredEvent::parse(&key, &record)?;
            match event.data.take() {
                Some(data) => found.push((*nth, WholeEvent { event, data })),
                None => of_payments.push((*nth, event)),
            }
        }
        let keys: Vec<_> = of_payments.iter().map(|(_, event)| keys::payment(&event.payment)).collect();
        let payments = reads.get(keys.clone()).await?;
        wanted.clear();
        for (((nth, event), key), payment) in of_payments.into_iter().zip(keys).zip(payments) {
            let missing =
                || StoreError::corrupt(&key, format_args!("the payment of the event {} is not there", event.id));
            let payment = StoredPayment::parse(&key, &payment.ok_or_else(missing)?)?;
            match payment.data_of(&event.id) {
                Some(data) => found.push((nth, WholeEvent { event, data })),
                // The payment has changed meanwhile, so now the event has its data: read it again.
                None => wanted.push((nth, event.id)),
            }
        }
        if wanted.is_empty() {
            break;
        }
    }
    if let Some((_, id)) = wanted.first() {
        return Err(StoreError::corrupt(&keys::event(id), "neither it nor its payment has its data"));
    }
    found.sort_by_key(|(nth, _)| *nth);
    Ok(found.into_iter().map(|(_, whole)| whole).collect())
}
