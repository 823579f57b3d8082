//! Commits changes, and reads payments, events and totals.

use std::ops::RangeInclusive;

use payments_core::{Currency, Day, DeliveryId, DisputeId, Environment, EventId, LedgerAccount, PaymentId, Status};

use super::{
    Store,
    booking::{balance_of, paid_in, volume_in},
    codec::Reader,
    coverage::covers,
    delivery,
    entry::day_of,
    event::{StoredEvent, whole_events},
    head::{Head, read_day},
    keys,
    payment::{self, StoredPayment},
    reads::Scan,
};
use crate::{
    Backups, Change, CommitError, Committed, Conflict, EventWrite, Gauges, PaymentJson, RequestCounts, Result,
    StoreError, Write,
    bytes::with_prefix,
    domain::{DayTotals, Endpoint, Outgoing, PendingEvent, Scope, Session, Subject, Totals},
};

impl Store {
    /// Makes a change durable as a whole, if its conditions hold.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        #[cfg(feature = "simulation")]
        {
            crate::falsified::commit(self, change).await
        }
        #[cfg(not(feature = "simulation"))]
        {
            self.commit_as_it_is(change).await
        }
    }

    /// [`commit`](Self::commit) without the faults that a simulation plants.
    pub async fn commit_as_it_is(&self, change: Change) -> Result<Committed, CommitError> {
        debug_assert!(change.has_one_home(), "{change:?}");
        let cell = self.bytes.cell_of(change.home());
        let claims = self.claims.clone();
        let key_hash = |write: &Write| match write {
            Write::ApiKey(hash, _) => Some(hash.clone()),
            _ => None,
        };
        let changed: Vec<_> = change.writes.iter().filter_map(key_hash).collect();
        let committed = self.decide(cell, true, move |draft| {
            // Claims end by themselves, so the decision checks them.
            let hold = claims.hold(draft, &change.under)? || planted!(ClaimNotChecked);
            let applied = draft.apply(&change);
            if !hold {
                return Err(Conflict::WorkLost.into());
            }
            applied
        });
        let committed = committed.await;
        changed.iter().for_each(|hash| self.keys.remove(hash));
        committed
    }

    /// Fails if the store is readable but its database denies it a privilege that its work needs.
    pub async fn prove_readiness(&self) -> Result<()> {
        self.bytes.prove_readiness().await
    }

    /// The backups of the store's place, if it makes any.
    pub fn backups(&self) -> Option<Backups<'_>> {
        self.bytes.backups()
    }

    /// The counts of requests that all servers on the store share, if it may have several servers.
    pub fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.bytes.request_counts()
    }

    /// A developer's balance and volume in one currency.
    pub async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        let head = self.of_scope(scope).head(&keys::head_of_scope(scope)).await?;
        let payments = u64::try_from(head.sum(&paid_in(currency))).unwrap_or_default();
        let volume_minor = head.sum(&volume_in(currency));
        Ok(Totals { balance_minor: head.sum(&balance_of(currency, LedgerAccount::Merchant)), volume_minor, payments })
    }

    /// The totals of `days` in a currency, oldest first, without days that have no payments. Reads a value for each day, so
    /// the caller must bound their number.
    pub async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        let reads = self.of_scope(scope);
        let head = reads.head(&keys::head_of_scope(scope)).await?;
        let (first, last) = (keys::day(scope, currency, *days.start()), keys::day(scope, currency, *days.end()));
        let prefix = keys::days(scope, currency);
        let mut found = Vec::new();
        for (key, value) in reads.all(first..[&last[..], &[0]].concat()).await? {
            let day = str::from_utf8(&key[prefix.len()..]).ok().and_then(|day| day.parse::<Day>().ok());
            let totals = read_day(&mut Reader(&value));
            let (Some(day), Some(totals)) = (day, totals) else {
                return Err(StoreError::corrupt(&key, "it is no day's totals"));
            };
            found.push((day, totals));
        }
        // The last day is in the head, and may have become an earlier one since the head was read.
        let last = head.days.get(&currency).map(|(day, totals)| (day_of(*day), *totals));
        if let Some((day, totals)) = last.filter(|(day, _)| days.contains(day)) {
            found.retain(|(other, _)| *other != day);
            found.push((day, totals));
            found.sort_by_key(|(day, _)| *day);
        }
        Ok(found)
    }

    /// A payment's session, in any scope.
    pub async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        Ok(StoredPayment::read(self.of(id.slot()), id).await?.map(|stored| stored.session.into_owned()))
    }

    /// Every payment whose refund needs manual settlement, oldest first.
    pub async fn manual_settlements(&self) -> Result<Vec<Session>> {
        self.some_manual_settlements(usize::MAX).await
    }

    /// The same, at most `at_most` of each cell.
    pub async fn some_manual_settlements(&self, at_most: usize) -> Result<Vec<Session>> {
        self.sessions_under(&keys::settlements(), at_most).await
    }

    /// Every live payment with a dispute that is not decided, oldest first.
    pub async fn open_disputes(&self) -> Result<Vec<Session>> {
        self.some_open_disputes(usize::MAX).await
    }

    /// The same, at most `at_most` of each cell.
    pub async fn some_open_disputes(&self, at_most: usize) -> Result<Vec<Session>> {
        self.sessions_under(&keys::open_disputes(), at_most).await
    }

    /// The session of a dispute's payment, in any scope.
    pub async fn session_of_dispute(&self, id: &DisputeId) -> Result<Option<Session>> {
        let key = keys::payment_of_dispute(id);
        let Some(payment) = self.of(id.slot()).one(key.clone()).await? else { return Ok(None) };
        let payment = str::from_utf8(&payment).ok().and_then(|id| id.parse().ok());
        self.session(&payment.ok_or_else(|| StoreError::corrupt(&key, "it is no id of a payment"))?).await
    }

    /// Every payment that needs manual review, oldest first.
    pub async fn manual_reviews(&self) -> Result<Vec<Session>> {
        self.sessions_under(&keys::reviews(), usize::MAX).await
    }

    /// The head of each cell's counts and sums over all developers.
    pub(super) async fn gauge_heads(&self) -> Result<Vec<Head>> {
        let mut heads = Vec::new();
        for reads in self.cells()? {
            heads.push(reads.head(&keys::gauges()).await?);
        }
        Ok(heads)
    }

    /// Counts over the records of all developers.
    pub async fn gauges(&self) -> Result<Gauges> {
        let heads = self.gauge_heads().await?;
        let mut found = Gauges { covers: covers(&heads), ..Gauges::default() };
        for head in heads {
            let sum = |name| u64::try_from(head.sum(name)).unwrap_or_default();
            found.outbox += sum("outbox");
            found.waiting += sum("waiting");
            for (name, count) in &head.sums {
                let Some((environment, status)) = name.strip_prefix("payments.").and_then(|it| it.split_once('.'))
                else {
                    continue;
                };
                let of = Environment::ALL.into_iter().find(|it| it.as_str() == environment);
                let count = u64::try_from(*count).unwrap_or_default();
                found.payments.extend(of.map(|environment| (environment, Status::from(status), count)));
            }
        }
        Ok(found)
    }

    /// A payment of a scope, as the API serves it.
    pub async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        let key = keys::payment(id);
        let Some(record) = self.of(id.slot()).one(key.clone()).await? else { return Ok(None) };
        payment::served(&key, record, scope)
    }

    /// A pending event, and at most `at_most` endpoints to fan it out to next.
    pub async fn pending_event(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        let whole = whole_events(self.of(id.slot()), std::slice::from_ref(id)).await?.pop();
        let Some(whole) = whole.filter(|whole| whole.event.pending.is_some()) else { return Ok(None) };
        let at = keys::event(id);
        let StoredEvent { event: kind, created_at, pending, subject, scope, .. } = whole.event;
        let app_id = match &subject {
            Subject::Payment(payment) => {
                let missing = || StoreError::corrupt(&at, "its payment is not there");
                self.session(payment).await?.ok_or_else(missing)?.payment.app_id
            }
            Subject::Payout(_) => None,
        };
        let event = PendingEvent::new(subject, app_id, scope, id.clone(), kind, created_at, &whole.data);
        let event = event.map_err(|error| StoreError::corrupt(&at, error))?;
        let event = PendingEvent { after: pending.and_then(|pending| pending.after), ..event };
        let endpoints = self.endpoints(&event.scope, event.after.as_ref(), at_most).await?;
        Ok(Some((event, endpoints)))
    }

    /// The events of a scope with these ids, in their order. Leaves out missing ones.
    pub async fn whole_events(&self, scope: &Scope, ids: &[EventId]) -> Result<Vec<EventWrite>> {
        let mut found = whole_events(self.of_scope(scope), ids).await?;
        found.retain(|whole| whole.event.scope == *scope);
        Ok(found.into_iter().map(EventWrite::from).collect())
    }

    /// The events of each payment of a scope, oldest first. Leaves out missing payments. `payments` must name no payment
    /// twice.
    pub async fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        let reads = self.of_scope(scope);
        let keys = payments.iter().map(keys::payment).collect();
        let mut stored = reads.records(keys, |key, record| StoredPayment::parse(key, &record)).await?;
        stored.retain(|it| it.session.scope() == *scope);
        let ids: Vec<EventId> = stored.iter().flat_map(|it| it.events.iter().cloned()).collect();
        let mut whole = whole_events(reads, &ids).await?.into_iter().peekable();
        let mut found = Vec::new();
        for payment in stored.iter().map(|it| &it.session.payment.id) {
            let mut events = Vec::new();
            while let Some(whole) = whole.next_if(|whole| whole.event.subject.payment() == Some(payment)) {
                events.push(EventWrite::from(whole));
            }
            found.push((payment.clone(), events));
        }
        Ok(found)
    }

    pub async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        Ok(delivery::read(self.of(id.slot()), std::slice::from_ref(id)).await?.pop())
    }
}

impl Store {
    /// The sessions of payments that an index of each cell names, oldest first.
    async fn sessions_under(&self, prefix: &[u8], at_most: usize) -> Result<Vec<Session>> {
        let mut ids: Vec<PaymentId> = Vec::new();
        for reads in self.cells()? {
            let mut scan = Scan::new(reads, with_prefix(prefix));
            let before = ids.len();
            while ids.len() - before < at_most
                && let Some((key, _)) = scan.next().await?
            {
                ids.extend(keys::id_at_end::<PaymentId>(&key));
            }
        }
        ids.sort();
        let mut found = Vec::new();
        for id in ids {
            found.extend(self.session(&id).await?);
        }
        Ok(found)
    }
}
