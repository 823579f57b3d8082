//! A store as of one moment, to check, export and move it.

use payments_core::{Booking, Currency, Slot, Timestamp, TransactionId};
use serde::Serialize;

use super::{
    Placed, Store,
    booking::StoredBooking,
    decision,
    entry::owners_at,
    event::StoredEvent,
    keys::{self, CLAIMS},
    outcome_of,
    payment::StoredPayment,
    payout::StoredPayout,
    reads::{Reads, parse},
    records::InOrder,
    store_error,
};
use crate::{
    Migration, Result,
    bytes::{AtRest, Bytes, Journaled, KeyValue, now},
    domain::{GatewayName, Outgoing, PayoutRecord, Session},
};

pub(super) type Each<'s, T> = Box<dyn Iterator<Item = Result<T>> + 's>;

/// A store as of one moment. Its methods block: call them on a thread that runs no tasks.
pub trait Snapshot {
    /// Counts the records, for a progress bar.
    fn records(&self) -> Result<u64>;
    /// Checks every record. Calls `progress` with the number of records read.
    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked>;
    /// Every payment with its session, in the order of their ids.
    fn each_session(&self) -> Each<'_, Session>;
    /// Every payment with its session and its bookings with their times, in the order of their ids. A payment's oldest booking
    /// is first.
    fn each_session_with_bookings(&self) -> Each<'_, (Session, Vec<(Timestamp, Booking)>)>;
    /// The same of every payout.
    fn each_payout_with_bookings(&self) -> Each<'_, (PayoutRecord, Vec<(Timestamp, Booking)>)>;
    fn each_delivery(&self) -> Each<'_, Outgoing>;
    /// The records of a kind, in the order of the text after the kind in their keys.
    fn each(&self, kind: &'static str) -> Each<'_, KeyValue>;
    /// At most `at_most` values strictly after a key, in the order of their keys. All are of one slot.
    fn values_after(&self, key: Option<&[u8]>, at_most: usize) -> Result<Vec<KeyValue>>;
    fn migration(&self) -> Result<Option<Migration>>;
    /// What the clearing account of a gateway holds.
    fn clearing(&self, gateway: GatewayName, currency: Currency) -> Result<i128>;
}

#[derive(Debug, Default, Serialize)]
pub struct Checked {
    pub records: u64,
    pub payments: u64,
    /// The faults; none in a sound store.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The record's key. Bytes that are not text are escaped.
    pub record: String,
    pub what: String,
}

impl Placed<Journaled> {
    /// Drops every claim on an idempotency key, because the process that made them is gone.
    pub fn void_key_claims(&self) -> Result<()> {
        let claims: Vec<_> = now(async {
            let mut claims = Vec::new();
            for reads in self.cells()? {
                claims.extend(reads.all(CLAIMS.all()).await?);
            }
            Ok(claims)
        })?;
        let claims: Vec<_> = claims.iter().flat_map(|(key, value)| owners_at(CLAIMS, key, value)).collect();
        if claims.is_empty() {
            return Ok(());
        }
        let (void, outcome) =
            decision(self.bytes.packs(), move |draft| claims.iter().try_for_each(|at| draft.drop_claim(at)));
        self.bytes.commit_blocking(void)?;
        outcome_of(&outcome).map_err(store_error)
    }
}

impl<B: AtRest> Placed<B> {
    fn each_of<T: 'static>(
        &self,
        kind: &'static str,
        of: impl Fn(&Self, Vec<u8>, Vec<u8>) -> Result<T> + 'static,
    ) -> Each<'_, T> {
        let mut records = match self.bytes.wait(InOrder::open(self, kind)) {
            Ok(records) => records,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        Box::new(std::iter::from_fn(move || {
            let entry = self.bytes.wait(records.next()).transpose()?;
            Some(entry.and_then(|(key, value)| of(self, key, value)))
        }))
    }
}

impl<B: AtRest> Placed<B> {
    /// The bookings without an event that are there, with their times.
    fn bookings(&self, reads: Reads<'_>, ids: &[TransactionId]) -> Result<Vec<(Timestamp, Booking)>> {
        let keys: Vec<_> = ids.iter().map(keys::booking).collect();
        let stored = self.bytes.wait(reads.get(keys.clone()))?;
        let found = keys.iter().zip(stored).filter_map(|(key, booking)| Some((key, booking?)));
        let parsed = found.map(|(key, booking)| parse::<StoredBooking>(key, &booking));
        parsed.map(|booking| booking.map(|it| (it.created_at, it.money.booking))).collect()
    }
}

impl<B: AtRest> Snapshot for Placed<B> {
    fn records(&self) -> Result<u64> {
        self.bytes.count()
    }

    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
        self.bytes.wait(self.check_all(progress))
    }

    fn each_session(&self) -> Each<'_, Session> {
        self.each_of("payment", |_, key, record| Ok(StoredPayment::parse(&key, &record)?.session.into_owned()))
    }

    fn each_session_with_bookings(&self) -> Each<'_, (Session, Vec<(Timestamp, Booking)>)> {
        self.each_of("payment", |store, key, record| {
            let stored = StoredPayment::parse(&key, &record)?;
            let reads = store.of(stored.session.payment.id.slot());
            let mut bookings = Vec::new();
            let keys: Vec<_> = stored.events.iter().map(keys::event).collect();
            for (key, event) in keys.iter().zip(store.bytes.wait(reads.get(keys.clone()))?) {
                let event = event.map(|event| StoredEvent::parse(key, &event)).transpose()?;
                bookings.extend(event.and_then(|it| Some((it.created_at, it.money?.booking))));
            }
            bookings.extend(store.bookings(reads, &stored.bookings)?);
            bookings.sort();
            Ok((stored.session.into_owned(), bookings))
        })
    }

    fn each_payout_with_bookings(&self) -> Each<'_, (PayoutRecord, Vec<(Timestamp, Booking)>)> {
        self.each_of("payout", |store, key, record| {
            let stored: StoredPayout = parse(&key, &record)?;
            let bookings = store.bookings(store.of(stored.record.payout.id.slot()), &stored.bookings)?;
            Ok((stored.record, bookings))
        })
    }

    fn each_delivery(&self) -> Each<'_, Outgoing> {
        self.each_of("delivery", |store, key, value| store.bytes.wait(store.whole_delivery(&key, &value)))
    }

    fn each(&self, kind: &'static str) -> Each<'_, KeyValue> {
        self.each_of(kind, |_, key, value| Ok((key, value)))
    }

    fn values_after(&self, key: Option<&[u8]>, at_most: usize) -> Result<Vec<KeyValue>> {
        self.bytes.wait(self.read_values_after(key, at_most))
    }

    fn migration(&self) -> Result<Option<Migration>> {
        self.bytes.wait(self.last_migration())
    }

    fn clearing(&self, gateway: GatewayName, currency: Currency) -> Result<i128> {
        self.bytes.wait(Store::clearing(self, gateway, currency))
    }
}

impl Store {
    pub async fn last_migration(&self) -> Result<Option<Migration>> {
        self.of(Slot::FIRST).json(keys::migration()).await
    }
}
