//! The store's verbs.

use std::ops::RangeInclusive;

use payments_core::{
    Currency, Day, Delivery, DeliveryId, Environment, EventId, LedgerAccount, Page, PageRequest, PaymentId, Status,
    Timestamp, WebhookId,
};

use super::{
    Store,
    codec::Reader,
    delivery,
    entry::day_of,
    event::{StoredEvent, balance_of, paid_in, told, volume_in},
    head::read_day,
    idempotency, keys,
    list::List,
    lists,
    payment::{self, StoredPayment},
    payment_list, work,
};
use crate::{
    domain::{DayTotals, Endpoint, IdempotencyKey, Outgoing, PendingEvent, Scope, Session, StoredResponse, Totals},
    store::{
        Backups, Change, CommitError, Committed, Conflict, DeliveriesFrom, EventEntry, EventWrite, EventsFrom, Gauges,
        OutboxHead, PaymentJson, PaymentSource, PaymentsFrom, Planned, Queue, RequestCounts, Result, StoreError,
        TransactionEntry, TransactionsFrom, Write, first_planned,
    },
};

impl Store {
    /// Makes a change durable as a whole, if its conditions hold.
    pub(crate) async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        #[cfg(feature = "simulation")]
        {
            crate::simulation::commit(self, change).await
        }
        #[cfg(not(feature = "simulation"))]
        {
            self.commit_as_it_is(change).await
        }
    }

    /// [`commit`](Self::commit) without the faults that a simulation plants.
    pub(crate) async fn commit_as_it_is(&self, change: Change) -> Result<Committed, CommitError> {
        debug_assert!(change.has_one_home(), "{change:?}");
        let cell = self.bytes.cell_of(change.home());
        let claims = self.claims.clone();
        let key_hash = |write: &Write| match write {
            Write::ApiKey(hash, _) => Some(hash.clone()),
            _ => None,
        };
        let changed: Vec<_> = change.writes.iter().filter_map(key_hash).collect();
        let committed = self.decide(cell, true, move |draft| {
            // Claims end by themselves; they are looked at when the change is decided.
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

    /// Work of a queue by time that is planned strictly after a time, the earliest first: at most `at_most` pieces, and others of
    /// the time of the last one. Other queues have none.
    pub(crate) async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        let mut planned = Vec::new();
        for reads in self.cells()? {
            planned.extend(work::planned(reads, queue, after, at_most).await?);
        }
        planned.sort_by_key(|(time, _)| *time);
        first_planned(planned.into_iter().map(Ok), at_most)
    }

    /// Fails if the store is readable and cannot do its work all the same, because its database denies it a privilege.
    pub(crate) async fn prove_readiness(&self) -> Result<()> {
        self.bytes.prove_readiness().await
    }

    /// The backups that the engine makes, if it does.
    pub(crate) fn backups(&self) -> Option<&dyn Backups> {
        self.bytes.backups()
    }

    /// The counts of requests that all servers on the store share, if it may have several servers.
    pub(crate) fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.bytes.request_counts()
    }

    /// A developer's balance and volume in one currency.
    pub(crate) async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        let head = self.of(scope.developer_id.slot()).head(&keys::head_of_scope(scope)).await?;
        let payments = u64::try_from(head.sum(&paid_in(currency))).unwrap_or_default();
        let volume_minor = head.sum(&volume_in(currency));
        Ok(Totals { balance_minor: head.sum(&balance_of(currency, LedgerAccount::Merchant)), volume_minor, payments })
    }

    /// The totals of the days from the first to the last one in a currency, oldest first, without days that have no payments.
    /// Reads a record of each day, so the caller bounds their number.
    pub(crate) async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        let reads = self.of(scope.developer_id.slot());
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

    /// The stored response of an idempotency key, however old.
    pub(crate) async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        idempotency::stored(self.of(key.scope.developer_id.slot()), key).await
    }

    /// A payment's session, in any scope.
    pub(crate) async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        Ok(StoredPayment::read(self.of(id.slot()), id).await?.map(|stored| stored.session.into_owned()))
    }

    /// Every payment whose refund needs manual settlement, oldest first.
    pub(crate) async fn manual_settlements(&self) -> Result<Vec<Session>> {
        self.sessions_under(&keys::settlements()).await
    }

    /// Every payment that needs manual review, oldest first.
    pub(crate) async fn manual_reviews(&self) -> Result<Vec<Session>> {
        self.sessions_under(&keys::reviews()).await
    }

    /// What all developers' records add up to.
    pub(crate) async fn gauges(&self) -> Result<Gauges> {
        let mut found = Gauges::default();
        for reads in self.cells()? {
            let head = reads.head(&keys::gauges()).await?;
            let sum = |name| u64::try_from(head.sum(name)).unwrap_or_default();
            found.outbox += sum("outbox");
            found.waiting += sum("waiting");
            for (name, count) in &head.sums {
                let Some((environment, status)) = name.strip_prefix("payments.").and_then(|it| it.split_once('.'))
                else {
                    continue;
                };
                let of = [Environment::Live, Environment::Test].into_iter().find(|it| it.as_str() == environment);
                let count = u64::try_from(*count).unwrap_or_default();
                found.payments.extend(of.map(|environment| (environment, Status::from(status), count)));
            }
        }
        Ok(found)
    }

    /// Since when an outbox waits: of the first delivery of each, when its attempt was due. A first attempt is due when the
    /// delivery is made.
    pub(crate) async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        let mut oldest: Option<Timestamp> = None;
        for reads in self.cells()? {
            oldest = oldest.into_iter().chain(work::oldest_in_outbox(reads).await?).min();
        }
        Ok(oldest)
    }

    /// A payment of a scope, as the API serves it.
    pub(crate) async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        let key = keys::payment(id);
        let Some(record) = self.of(id.slot()).one(key.clone()).await? else { return Ok(None) };
        payment::served(&key, record, scope)
    }

    /// A page of a scope's payments, newest first, of one public status or of all.
    pub(crate) async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<PaymentJson>> {
        payment_list::payments(self.of(scope.developer_id.slot()), scope, status, page).await
    }

    /// At most `at_most` of a scope's payments, newest first. Fewer are the rest.
    pub(crate) async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        payment_list::payments_from(self.of(scope.developer_id.slot()), scope, source, from, at_most).await
    }

    /// A pending event, and the next endpoints to fan it out to, at most `at_most`.
    pub(crate) async fn pending_event(
        &self,
        id: &EventId,
        at_most: usize,
    ) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        let told = told(self.of(id.slot()), std::slice::from_ref(id)).await?.pop();
        let Some(told) = told.filter(|told| told.event.pending.is_some()) else { return Ok(None) };
        let at = keys::event(id);
        let missing = || StoreError::corrupt(&at, "its payment is not there");
        let session = self.session(&told.event.payment).await?.ok_or_else(missing)?;
        let StoredEvent { event: kind, created_at, pending, .. } = told.event;
        let event = PendingEvent::new(&session, id.clone(), kind, created_at, &told.data);
        let event = event.map_err(|error| StoreError::corrupt(&at, error))?;
        let event = PendingEvent { after: pending.and_then(|pending| pending.after), ..event };
        let endpoints = self.endpoints(&event.scope, event.after.as_ref(), at_most).await?;
        Ok(Some((event, endpoints)))
    }

    /// At most `at_most` entries of the list of a scope's events; `None` if it has no such event to begin after.
    pub(crate) async fn events(
        &self,
        scope: &Scope,
        from: &EventsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<EventEntry>>> {
        lists::events(self.of(scope.developer_id.slot()), scope, from, at_most).await
    }

    /// The payment of a scope's event.
    pub(crate) async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        let event = StoredEvent::read(self.of(id.slot()), id).await?;
        Ok(event.filter(|event| event.scope == *scope).map(|event| event.payment))
    }

    /// The events of each of these different payments of a scope, oldest first. Leaves out payments that are not there.
    pub(crate) async fn events_of(
        &self,
        scope: &Scope,
        payments: &[PaymentId],
    ) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        let reads = self.of(scope.developer_id.slot());
        let keys: Vec<_> = payments.iter().map(keys::payment).collect();
        let mut stored = Vec::new();
        for (key, record) in keys.iter().zip(reads.get(keys.clone()).await?) {
            stored.extend(record.map(|record| StoredPayment::parse(key, &record)).transpose()?);
        }
        stored.retain(|it| it.session.scope() == *scope);
        let ids: Vec<EventId> = stored.iter().flat_map(|it| it.events.iter().cloned()).collect();
        let mut told = told(reads, &ids).await?.into_iter().peekable();
        let mut found = Vec::new();
        for payment in stored.iter().map(|it| &it.session.payment.id) {
            let mut events = Vec::new();
            while let Some(told) = told.next_if(|told| told.event.payment == *payment) {
                let StoredEvent { id, event: kind, created_at, .. } = told.event;
                events.push(EventWrite { id, kind, created_at, data: told.data });
            }
            found.push((payment.clone(), events));
        }
        Ok(found)
    }

    /// At most `at_most` entries of the list of a scope's transactions, newest first; `None` if it has no such event to begin
    /// with.
    pub(crate) async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        lists::transactions(self.of(scope.developer_id.slot()), scope, from, at_most).await
    }

    /// At most `at_most` deliveries of the events of a scope's payment, oldest first.
    pub(crate) async fn deliveries_of(
        &self,
        scope: &Scope,
        payment: &PaymentId,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        let reads = self.of(payment.slot());
        let mut found = lists::first_deliveries(reads, List::deliveries_of(payment), at_most).await?;
        found.retain(|it| it.scope() == *scope);
        Ok(found)
    }

    /// At most `at_most` deliveries to an endpoint of a scope, oldest first.
    pub(crate) async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        lists::deliveries_from(self.of(to.slot()), List::deliveries_to(scope, to), from, at_most).await
    }

    /// A page of a developer's deliveries, newest first, to one endpoint or to all.
    pub(crate) async fn deliveries(
        &self,
        scope: &Scope,
        to: Option<&WebhookId>,
        page: PageRequest,
    ) -> Result<Page<Delivery>> {
        let list = to.map_or_else(|| List::deliveries(scope), |to| List::deliveries_to(scope, to));
        let Page { items, total, page, limit, unknown } =
            lists::deliveries(self.of(scope.developer_id.slot()), list, page).await?;
        Ok(Page { items: items.into_iter().map(|it| it.delivery).collect(), total, page, limit, unknown })
    }

    /// At most `at_most` deliveries of an endpoint's outbox, oldest first.
    pub(crate) async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        work::outbox(self.of(endpoint.slot()), endpoint, at_most).await
    }

    /// A delivery by its id.
    pub(crate) async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        Ok(delivery::read(self.of(id.slot()), std::slice::from_ref(id)).await?.pop())
    }
}

impl Store {
    /// The payments that an index of each cell names, oldest first.
    async fn sessions_under(&self, prefix: &[u8]) -> Result<Vec<Session>> {
        let mut ids: Vec<PaymentId> = Vec::new();
        for reads in self.cells()? {
            ids.extend(reads.all_with(prefix).await?.iter().filter_map(|(key, _)| keys::id_at_end(key)));
        }
        ids.sort();
        let mut found = Vec::new();
        for id in ids {
            found.extend(self.session(&id).await?);
        }
        Ok(found)
    }
}
