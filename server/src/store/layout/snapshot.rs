//! A whole store at rest: what is opened, checked, exported and moved. Its calls block.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use payments_core::Posting;
use prometheus_client::metrics::gauge::Gauge;

use super::{
    Claims, LayoutStore, Outcome, decision,
    entry::owners_at,
    event::StoredEvent,
    keys::{self, CLAIMS},
    outcome_of,
    payment::StoredPayment,
    records::InOrder,
    store_error,
};
use crate::{
    domain::{Outgoing, Session},
    store::{
        Checked, Each, Leases, Migration, Record, RecordKind, Result, Snapshot, StoreError,
        bytes::{Bytes as _, Journaled, Local},
    },
};

/// The outcome of a read of a place on this machine, which never waits.
fn now<T>(read: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(read).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => Err(StoreError::unavailable("a read of a place on this machine waits")),
    }
}

impl LayoutStore<Journaled> {
    /// The store of bytes that were just opened.
    pub(in crate::store) fn opened(bytes: Journaled, leases: Arc<Leases>, outbox: Gauge) -> Result<Self> {
        let store = Self::new(bytes, Claims::InMemory(leases), outbox);
        let pending = now(async {
            let mut pending = 0;
            for reads in store.cells() {
                pending += reads.head(&keys::gauges()).await?.sum("outbox");
            }
            Ok(pending)
        })?;
        store.outbox.set(i64::try_from(pending).unwrap_or(i64::MAX));
        Ok(store)
    }

    /// Drops every claim on an idempotency key: the process that made them is gone.
    pub(in crate::store) fn void_key_claims(&self) -> Result<()> {
        let claims: Vec<_> = now(async {
            let mut claims = Vec::new();
            for reads in self.cells() {
                claims.extend(reads.all(CLAIMS.all()).await?);
            }
            Ok(claims)
        })?;
        let claims: Vec<_> = claims.iter().flat_map(|(key, value)| owners_at(CLAIMS, key, value)).collect();
        if claims.is_empty() {
            return Ok(());
        }
        let outcome = Outcome::default();
        let void =
            decision(self.bytes.packs(), &outcome, move |draft| claims.iter().try_for_each(|at| draft.drop_claim(at)));
        self.bytes.commit_blocking(void)?;
        outcome_of(&outcome).map_err(store_error)
    }
}

impl<B: Local> LayoutStore<B> {
    /// The values of a kind, in the order of what stands behind the kind.
    fn each<T: 'static>(&self, kind: RecordKind, of: impl Fn(Vec<u8>, Vec<u8>) -> Result<T> + 'static) -> Each<'_, T> {
        let mut records = match now(InOrder::open(self, kind, None, 8)) {
            Ok(records) => records,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        Box::new(std::iter::from_fn(move || {
            let entry = now(records.next()).transpose()?;
            Some(entry.and_then(|(key, value)| of(key, value)))
        }))
    }
}

impl<B: Local> Snapshot for LayoutStore<B> {
    fn records(&self) -> Result<u64> {
        Ok(self.bytes.count())
    }

    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
        now(self.check_all(progress))
    }

    fn each_session(&self) -> Each<'_, Session> {
        self.each(RecordKind::Payment, |key, record| Ok(StoredPayment::parse(&key, &record)?.session.into_owned()))
    }

    fn each_session_with_postings(&self) -> Each<'_, (Session, Vec<Vec<Posting>>)> {
        let stored = self.each(RecordKind::Payment, |key, record| StoredPayment::parse(&key, &record));
        Box::new(stored.map(|stored| {
            let stored = stored?;
            let mut postings = Vec::new();
            for id in &stored.events {
                let event = now(StoredEvent::read(self.of(id.slot()), id))?;
                postings.extend(event.and_then(|event| event.money).map(|money| money.postings));
            }
            Ok((stored.session.into_owned(), postings))
        }))
    }

    fn each_delivery(&self) -> Each<'_, Outgoing> {
        let stored = self.each(RecordKind::Delivery, |key, value| Ok((key, value)));
        Box::new(stored.map(|entry| {
            let (key, value) = entry?;
            now(self.whole_delivery(&key, &value))
        }))
    }

    fn page(&self, kind: RecordKind, after: Option<&str>, at_most: usize) -> Result<Vec<Record>> {
        now(self.record_page(kind, after, at_most))
    }

    fn count(&self, kind: RecordKind) -> Result<u64> {
        now(self.record_count(kind))
    }

    fn migration(&self) -> Result<Option<Migration>> {
        now(self.of(payments_core::Slot::FIRST).json(keys::migration()))
    }
}
