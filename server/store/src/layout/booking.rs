//! The record of a booking without an event, and the entries of every booking.

use std::str::FromStr;

use payments_core::{
    Booking, BookingKind, Currency, Environment, EventId, IdError, LedgerAccount, Posting, Timestamp, TransactionId,
};
use serde::{Deserialize, Serialize};

use super::{
    entry::{Entry, Record},
    keys,
    list::{List, item_of_booking},
};
use crate::domain::{BothBalances, DayTotals, GatewayName, MoneyMove, Scope, Subject, is_held};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredBooking {
    pub(super) id: TransactionId,
    pub(super) created_at: Timestamp,
    pub(super) scope: Scope,
    #[serde(alias = "payment")]
    pub(super) subject: Subject,
    pub(super) money: StoredMoney,
}

/// A booking, and the merchant's balances after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredMoney {
    #[serde(deserialize_with = "Currency::deserialize_closed")]
    pub(super) currency: Currency,
    /// The gateway of the clearing account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gateway: Option<GatewayName>,
    pub(super) booking: Booking,
    /// The day of the payment's creation, counted from 1970; 0 without a payment.
    pub(super) day: u32,
    /// The day in Dhaka on which the payment was paid, counted from 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) held_day: Option<u32>,
    /// Missing if it does not change the merchant's balance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) listed: Option<Listed>,
}

/// What a booking is about, for its money.
pub(super) struct MoneyOf<'s> {
    pub(super) scope: &'s Scope,
    pub(super) currency: Currency,
    pub(super) gateway: Option<GatewayName>,
    pub(super) day: u32,
    pub(super) held_day: Option<u32>,
}

/// A place in the list of a scope's transactions, and the balances there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) position: u64,
    /// Follows from the booking. It is stored for reports in SQL.
    amount: i64,
    fee: i64,
    bdt: i128,
    usd: i128,
}

impl Listed {
    pub(super) fn new(position: u64, moved: &MoneyMove, before: BothBalances) -> Self {
        let BothBalances { bdt, usd } = before.after(moved);
        Self { position, amount: moved.amount, fee: moved.fee, bdt, usd }
    }

    pub(super) fn balances(self) -> BothBalances {
        BothBalances { bdt: self.bdt, usd: self.usd }
    }
}

impl StoredMoney {
    pub(super) fn moved(&self) -> Option<MoneyMove> {
        MoneyMove::of(self.currency, self.booking)
    }

    /// Whether it is in the list of transactions as its booking says.
    pub(super) fn is_listed_as_booked(&self) -> bool {
        self.listed.map(|it| (it.amount, it.fee)) == self.moved().map(|it| (it.amount, it.fee))
    }

    /// The entries of the booking. `item` is its item in the list of transactions.
    pub(super) fn entries(&self, scope: &Scope, item: Vec<u8>) -> Vec<Entry> {
        let Self { currency, gateway, booking, day, held_day, listed } = self;
        let mut entries = Vec::new();
        if let Some(Listed { position, .. }) = listed {
            entries.push(Entry::Item { list: List::transactions(scope), position: *position, item });
        }
        entries.extend(booking.postings().map(|posting| self.sum(scope, posting)));
        entries.extend(self.totals(scope.environment));
        if let Some(((gateway, held_day), moved)) =
            gateway.zip(*held_day).zip(self.moved()).filter(|_| is_held(*booking))
        {
            let head = keys::held(scope, *currency, gateway, held_day);
            entries.push(Entry::Sum { head, name: HELD.to_owned(), amount: (moved.amount + moved.fee).into() });
        }
        if booking.kind == BookingKind::Paid {
            let volume_minor = i128::from(booking.minor);
            let sum = |name, amount| Entry::Sum { head: keys::head_of_scope(scope), name, amount };
            entries.push(sum(volume_in(*currency), volume_minor));
            entries.push(sum(paid_in(*currency), 1));
            let added = DayTotals { created: 0, paid: 1, volume_minor };
            entries.push(Entry::Day { scope: scope.clone(), currency: *currency, day: *day, added });
        }
        entries
    }

    /// The cell's sums of what merchants are owed, owe, and have in transit, so that nobody adds up all merchants.
    fn totals(&self, environment: Environment) -> impl Iterator<Item = Entry> {
        let Self { currency, booking, listed, .. } = *self;
        let moved = i128::from(booking.change_of(LedgerAccount::Merchant));
        let balances = listed.map(|it| it.balances().of(currency)).map_or([0, 0], |after| [after - moved, after]);
        let [owed, owing] = [1, -1].map(|sign| balances.map(|it| (sign * it).max(0)));
        let in_transit = booking.change_of(LedgerAccount::PayoutsInTransit).into();
        [(OWED, owed[1] - owed[0]), (OWING, owing[1] - owing[0]), (IN_TRANSIT, in_transit)]
            .into_iter()
            .filter(|(_, amount)| *amount != 0)
            .map(move |(name, amount)| Entry::Sum {
                head: keys::gauges(),
                name: total_of(environment, currency, name),
                amount,
            })
    }

    /// The part of a posting in the balance of its account: a developer's, or the cell's part of one of the platform's.
    fn sum(&self, scope: &Scope, Posting { account, minor }: Posting) -> Entry {
        let (head, name) = match account.is_of_a_developer() {
            true => (keys::head_of_scope(scope), balance_of(self.currency, account)),
            false => (keys::gauges(), books_of(scope.environment, self.currency, account, self.gateway)),
        };
        Entry::Sum { head, name, amount: minor.into() }
    }
}

impl Record for StoredBooking {
    fn key(&self) -> Vec<u8> {
        keys::booking(&self.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        self.money.entries(&self.scope, item_of_booking(&self.id))
    }
}

/// The name of the sum of what a day's payments by a gateway brought a merchant.
pub(super) const HELD: &str = "net";

/// What the positive balances of merchants sum to.
pub(super) const OWED: &str = "owed";
/// What the negative ones sum to, without their sign.
pub(super) const OWING: &str = "owing";
pub(super) const IN_TRANSIT: &str = "in_transit";

/// The name of a cell's sum over the merchants.
pub(super) fn total_of(environment: Environment, currency: Currency, name: &str) -> String {
    format!("merchants.{environment}.{currency}.{name}")
}

/// The name of the sum of what refunds under way will take from a merchant.
pub(super) fn under_way_in(currency: Currency) -> String {
    format!("under_way.{currency}")
}

/// An id in the list of transactions: of a booking without an event, or of an event.
pub(super) enum ListedId {
    Booking(TransactionId),
    Event(EventId),
}

impl ListedId {
    /// The key of the record that it names.
    pub(super) fn key(&self) -> Vec<u8> {
        match self {
            Self::Booking(id) => keys::booking(id),
            Self::Event(id) => keys::event(id),
        }
    }

    pub(super) fn created_at(&self) -> Option<Timestamp> {
        match self {
            Self::Booking(id) => id.created_at(),
            Self::Event(id) => id.created_at(),
        }
    }
}

impl FromStr for ListedId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(Self::Event).or_else(|_| text.parse().map(Self::Booking))
    }
}

/// The name of the sum that is the cell's part of an account of the platform. The clearing account is a gateway's.
pub(super) fn books_of(
    environment: Environment,
    currency: Currency,
    account: LedgerAccount,
    gateway: Option<GatewayName>,
) -> String {
    let gateway = gateway.filter(|_| account == LedgerAccount::GatewayClearing);
    let of_gateway = gateway.map_or_else(String::new, |gateway| format!(".{}", gateway.as_str()));
    format!("books.{environment}.{currency}.{}{of_gateway}", account.as_str())
}

/// The name of the sum that is the balance of a developer's account.
pub(super) fn balance_of(currency: Currency, account: LedgerAccount) -> String {
    format!("balance.{currency}.{}", account.as_str())
}

/// The name of the sum that is the gross amount of all payments ever paid.
pub(super) fn volume_in(currency: Currency) -> String {
    format!("volume.{currency}")
}

/// The name of the sum that counts the payments ever paid.
pub(super) fn paid_in(currency: Currency) -> String {
    format!("paid.{currency}")
}
