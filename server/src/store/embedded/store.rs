//! The store's verbs.

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use journaled_tree::Read;
use payments_core::{
    AppId, Currency, Day, Delivery, DeliveryId, DeveloperId, Environment, EventId, LedgerAccount, Page, PageRequest,
    PaymentId, Status, Timestamp, WebhookId, WorkspaceId,
};

use super::{
    EmbeddedStore,
    codec::{self, Records},
    deliveries, events,
    keys::{self, List, StatusBitmap},
    outbox, pending, read_many, responses,
    stored::Stored,
    transactions, work,
};
use crate::{
    domain::{
        ApiKey, App, DayTotals, Endpoint, IdempotencyKey, KeyHash, LogPart, Outgoing, PendingEvent, Place, Scope,
        Session, StoredResponse, StoredToken, Totals, Workspace,
    },
    store::{
        Backups, Change, Claim, CommitError, Committed, Conflict, DeliveriesFrom, EventEntry, EventWrite, EventsFrom,
        Lease, OutboxHead, PaymentJson, PaymentSource, PaymentsFrom, Planned, Prunable, Queue, Store, StoreError,
        TransactionEntry, TransactionsFrom, Work, first_planned,
    },
};

#[async_trait]
impl Store for EmbeddedStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        debug_assert!(change.has_one_home(), "{change:?}");
        let leases = Arc::clone(&self.leases);
        let committed = self.write(move |view| {
            // Claims end by themselves; they are looked at when the change is decided.
            if !planted!(ClaimNotChecked) && change.under.iter().any(|claim| !leases.holds(claim)) {
                return Err(Conflict::WorkLost.into());
            }
            Ok::<_, CommitError>((view.apply(change)?, view.outbox))
        });
        let (committed, added) = committed.await?;
        self.outbox.inc_by(added);
        Ok(committed)
    }

    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>, StoreError> {
        let (records, leases) = (&self.database, &self.leases);
        match queue {
            Queue::FanOut => leases.claim_first(pending::due(records), lease, at_most),
            Queue::Lanes => {
                let lanes = work::lanes(records).map(|lane| Ok((Work::Lane(lane?.0), None)));
                read_many(|| leases.claim_first(lanes, lease, at_most))
            }
            Queue::Retries => leases.claim_first(work::retries(records, lease.now), lease, at_most),
            Queue::Expiry => leases.claim_first(work::expired(records, lease.now), lease, at_most),
            Queue::GatewayChecks => leases.claim_first(work::gateway_checks(records, lease.now), lease, at_most),
        }
    }

    async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>, StoreError> {
        let records = &self.database;
        match queue {
            Queue::FanOut | Queue::Lanes => Ok(Vec::new()),
            Queue::Retries => first_planned(work::retries_after(records, after), at_most),
            Queue::Expiry => first_planned(work::expiring_after(records, after), at_most),
            Queue::GatewayChecks => first_planned(work::gateway_checks_after(records, after), at_most),
        }
    }

    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>, StoreError> {
        let is_empty = self.database.count_prefix(&keys::outbox_of(endpoint), 1)? == 0;
        Ok(if is_empty { None } else { self.leases.claim(Work::Lane(endpoint.clone()), lease) })
    }

    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool, StoreError> {
        Ok(self.leases.renew(claim, lease))
    }

    async fn release(&self, claims: &[Claim]) -> Result<(), StoreError> {
        claims.iter().for_each(|claim| self.leases.release(claim));
        Ok(())
    }

    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        self.write(move |view| match what {
            Prunable::StoredResponses => view.prune_responses(before, at_most),
            Prunable::KeyClaims => view.prune_claims(before, at_most),
            Prunable::DeliveryBodies => view.prune_delivery_bodies(before, at_most),
        })
        .await
    }

    fn backups(&self) -> Option<&dyn Backups> {
        Some(self)
    }

    async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>, StoreError> {
        // Before the reading: a key that changes meanwhile is read again.
        let batch = self.database.last_batch();
        if let Some(key) = self.keys.unchanged_since(hash, batch) {
            return Ok(Some(key));
        }
        self.database.get(&keys::api_key(hash))?.map(|record| self.keys.parse(hash, &record, batch)).transpose()
    }

    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>, StoreError> {
        self.keys_by_ids(keys::API_KEY_IDS)
    }

    async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>, StoreError> {
        self.keys_by_ids(&keys::api_key_ids_of(workspace))
    }

    async fn workspace(&self, id: &str) -> Result<Option<Workspace>, StoreError> {
        self.get(&keys::workspace(id))
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>, StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(keys::WORKSPACES) {
            let (key, record) = entry?;
            found.push(codec::parse(&key, &record)?);
        }
        Ok(found)
    }

    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>, StoreError> {
        let Some(id) = self.get::<String>(&keys::workspace_of(developer))? else { return Ok(None) };
        self.get(&keys::workspace(&id))
    }

    async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals, StoreError> {
        let balance = self.get(&keys::balance(scope, currency, LedgerAccount::Merchant))?.unwrap_or_default();
        let (volume_minor, payments) = self.get(&keys::volume(scope, currency))?.unwrap_or_default();
        Ok(Totals { balance_minor: balance, volume_minor, payments })
    }

    async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>, StoreError> {
        let range = keys::day(scope, currency, *days.start())..=keys::day(scope, currency, *days.end());
        let totals = self.database.range(range).map(|entry| {
            let (key, totals) = entry?;
            let day = keys::day_of(&key).ok_or_else(|| StoreError::corrupt(&key, "its day cannot be read"))?;
            Ok((day, codec::parse(&key, &totals)?))
        });
        totals.collect()
    }

    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>, StoreError> {
        self.get(&keys::app(developer, id))
    }

    async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>, StoreError> {
        self.database.read(&keys::log_part(&place.key_in(scope)))
    }
    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>, StoreError> {
        self.each(&keys::apps_of(developer)).collect()
    }

    async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>, StoreError> {
        let used = keys::idempotency(key);
        let Some(used_at) = self.get(&used)? else { return Ok(None) };
        responses::read(&self.database, &used, used_at)
    }

    async fn session(&self, id: &PaymentId) -> Result<Option<Session>, StoreError> {
        Ok(Stored::read(&self.database, id)?.map(|stored| stored.session))
    }

    async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>, StoreError> {
        self.json_of(scope, id)
    }

    async fn manual_settlements(&self) -> Result<Vec<Session>, StoreError> {
        read_many(|| self.sessions_under(keys::MANUAL_SETTLEMENTS))
    }

    async fn manual_reviews(&self) -> Result<Vec<Session>, StoreError> {
        read_many(|| self.sessions_under(keys::MANUAL_REVIEWS))
    }

    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(keys::COUNTS) {
            let (key, count) = entry?;
            if let Some((environment, status)) = keys::count_of_status(&key) {
                found.push((environment, status, codec::parse(&key, &count)?));
            }
        }
        Ok(found)
    }

    async fn waiting_deliveries(&self) -> Result<u64, StoreError> {
        Ok(self.get(&keys::waiting_deliveries())?.unwrap_or_default())
    }

    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut lanes = work::lanes(&self.database);
        read_many(|| {
            lanes.try_fold(None, |oldest: Option<Timestamp>, lane| Ok(oldest.into_iter().chain(lane?.1).min()))
        })
    }

    async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>, StoreError> {
        self.get(&keys::gateway_token(name))
    }

    async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<PaymentJson>, StoreError> {
        let bitmap = status.map(|status| StatusBitmap::of(scope, status));
        let read = |id: &PaymentId| self.json_of(scope, id);
        self.page(&List::payments(scope), bitmap.as_ref(), page, read)
    }

    async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>, StoreError> {
        self.part_of_payments(scope, source, from, at_most)
    }

    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>, StoreError> {
        self.get(&keys::endpoint(id))
    }

    async fn endpoints(
        &self,
        scope: &Scope,
        after: Option<&WebhookId>,
        at_most: usize,
    ) -> Result<Vec<Endpoint>, StoreError> {
        let prefix = keys::endpoints_of(scope);
        let after = after.map_or_else(|| prefix.clone(), |id| keys::endpoint_of(scope, id));
        let mut endpoints = Vec::new();
        for entry in self.database.prefix_after(&prefix, &after).take(at_most) {
            let id = keys::id_after(&prefix, &entry?.0);
            endpoints.extend(id.map(|id| self.get(&keys::endpoint(&id))).transpose()?.flatten());
        }
        Ok(endpoints)
    }

    async fn pending_event(
        &self,
        id: &EventId,
        at_most: usize,
    ) -> Result<Option<(PendingEvent, Vec<Endpoint>)>, StoreError> {
        let Some(event) = pending::read(&self.database, id)? else { return Ok(None) };
        let endpoints = self.endpoints(&event.scope, event.after.as_ref(), at_most).await?;
        Ok(Some((event, endpoints)))
    }

    async fn events(
        &self,
        scope: &Scope,
        from: &EventsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<EventEntry>>, StoreError> {
        events::page(&self.database, scope, from, at_most)
    }

    async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>, StoreError> {
        let place = events::place_of(&self.database, id)?.filter(|place| place.scope == *scope);
        let Some(place) = place else { return Ok(None) };
        Ok(events::at(&self.database, &List::events(scope), place.position)?.map(|entry| entry.payment))
    }

    async fn events_of(
        &self,
        scope: &Scope,
        payments: &[PaymentId],
    ) -> Result<Vec<(PaymentId, Vec<EventWrite>)>, StoreError> {
        let mut found = Vec::new();
        for payment in payments {
            let events = events::of_payment(&self.database, scope, payment)?;
            found.extend(events.map(|events| (payment.clone(), events)));
        }
        Ok(found)
    }

    async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>, StoreError> {
        transactions::page(&self.database, scope, from, at_most)
    }

    async fn deliveries_of(
        &self,
        scope: &Scope,
        payment: &PaymentId,
        at_most: usize,
    ) -> Result<Vec<Outgoing>, StoreError> {
        let mut found = deliveries::of_payment(&self.database, payment, at_most)?;
        found.retain(|it| it.scope() == *scope);
        Ok(found)
    }

    async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>, StoreError> {
        deliveries::to_endpoint(&self.database, &List::deliveries_to(scope, to), from, at_most)
    }
    async fn deliveries(
        &self,
        scope: &Scope,
        endpoint: Option<&WebhookId>,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        let list = match endpoint {
            Some(endpoint) => List::deliveries_to(scope, endpoint),
            None => List::deliveries(scope),
        };
        let read = |id: &DeliveryId| Ok(deliveries::read(&self.database, id)?.map(|outgoing| outgoing.delivery));
        self.page(&list, None, page, read)
    }

    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead, StoreError> {
        outbox::head(&self.database, endpoint, at_most)
    }

    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
        deliveries::read(&self.database, id)
    }
}
