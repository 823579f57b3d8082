//! A store in memory, for tests: ordered maps behind a lock, and no rule. A change is applied to a copy of all tables, which
//! takes their place if every condition holds.

mod events;
mod payments;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Day, Delivery, DeliveryId, DeveloperId, Environment, EventId, KeyId, LedgerAccount, Page,
    PageRequest, PaymentId, Status, Timestamp, UnknownFields, WebhookId, WorkspaceId,
};

use super::{
    Change, Claim, CommitError, Committed, Conflict, DeliveriesFrom, EventEntry, EventWrite, EventsFrom, Lease, Leases,
    OutboxHead, PaymentJson, PaymentSource, PaymentsFrom, Planned, Prunable, Queue, Result, Store, StoreError,
    TransactionEntry, TransactionsFrom, Work, first_planned,
};
use crate::domain::{
    ApiKey, App, DayTotals, Endpoint, IdempotencyKey, KeyClaim, KeyHash, LogPart, Outgoing, PendingEvent, Place, Scope,
    Session, StoredResponse, StoredToken, Totals, Workspace,
};

/// A store that forgets everything when it is dropped.
#[derive(Default)]
pub(crate) struct MemoryStore {
    tables: Mutex<Tables>,
    leases: Leases,
    /// How many of the next commits fail.
    failing_commits: AtomicU32,
}

#[derive(Clone, Default)]
struct Tables {
    workspaces: BTreeMap<String, Workspace>,
    api_keys: BTreeMap<(WorkspaceId, KeyId), (KeyHash, ApiKey)>,
    apps: BTreeMap<(DeveloperId, AppId), App>,
    gateway_tokens: BTreeMap<std::borrow::Cow<'static, str>, StoredToken>,
    endpoints: BTreeMap<WebhookId, Endpoint>,
    sessions: BTreeMap<PaymentId, Session>,
    /// All payments, the last one committed last, and the status by which each is listed.
    payments: Vec<(Scope, PaymentId)>,
    statuses: BTreeMap<PaymentId, Status>,
    expiry: BTreeSet<(Timestamp, PaymentId)>,
    gateway_check: BTreeSet<(Timestamp, PaymentId)>,
    manual_settlement: BTreeSet<((), PaymentId)>,
    manual_review: BTreeSet<((), PaymentId)>,
    balances: HashMap<(Scope, Currency, LedgerAccount), i128>,
    /// How much was paid, in how many payments.
    volumes: HashMap<(Scope, Currency), (i128, u64)>,
    /// By scope, currency and day of creation.
    days: BTreeMap<(String, &'static str, Day), DayTotals>,
    pending_events: BTreeMap<EventId, PendingEvent>,
    /// All events, the last one committed last.
    events: Vec<(Scope, PaymentId, EventWrite)>,
    /// All changes with postings, the last one committed last.
    transactions: Vec<(Scope, TransactionEntry)>,
    deliveries: BTreeMap<DeliveryId, Outgoing>,
    /// All deliveries, the last one committed last.
    delivery_log: Vec<DeliveryId>,
    outbox: BTreeSet<(WebhookId, DeliveryId)>,
    retries: BTreeSet<(Timestamp, DeliveryId)>,
    /// The last delivery that redaction has passed.
    redacted: Option<DeliveryId>,
    log_parts: BTreeMap<String, LogPart>,
    responses: ByKey<StoredResponse>,
    key_claims: ByKey<KeyClaim>,
}

type ByKey<V> = HashMap<IdempotencyKey, V>;

impl MemoryStore {
    /// Loses the record of a pending delivery, as a damaged store does.
    pub(crate) fn lose_delivery(&self, id: &DeliveryId) {
        self.tables().deliveries.remove(id);
    }

    /// The next commits fail, as on a full disk.
    pub(crate) fn fail_commits(&self, commits: u32) {
        self.failing_commits.store(commits, Ordering::SeqCst);
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change to all tables, or none.
    fn change<T, E>(&self, change: impl FnOnce(&mut Tables) -> Result<T, E>) -> Result<T, E> {
        let mut tables = self.tables();
        let mut changed = tables.clone();
        let outcome = change(&mut changed)?;
        *tables = changed;
        Ok(outcome)
    }

    fn sessions_in(&self, index: fn(&Tables) -> &BTreeSet<((), PaymentId)>) -> Vec<Session> {
        let tables = self.tables();
        index(&tables).iter().map(|(_, id)| tables.sessions[id].clone()).collect()
    }
}

/// Drops the oldest entries of a table that are older than a time.
fn prune<V>(table: &mut ByKey<V>, before: Timestamp, at_most: usize, time: fn(&V) -> Timestamp) -> usize {
    for dropped in 0..at_most {
        let oldest = table.iter().min_by_key(|(_, it)| time(it)).filter(|(_, it)| time(it) < before);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return dropped };
        table.remove(&key);
    }
    at_most
}

/// The items of a page of a list, newest first.
fn page<T>(newest_first: Vec<T>, request: PageRequest) -> Page<T> {
    let total = newest_first.len() as u64;
    let shown = request.skipped()..request.skipped() + u64::from(request.limit());
    let items = newest_first.into_iter().zip(0..).filter(|(_, place)| shown.contains(place));
    Page {
        items: items.map(|(it, _)| it).collect(),
        total,
        page: request.page(),
        limit: request.limit(),
        unknown: UnknownFields::new(),
    }
}

fn json_of(session: &Session) -> PaymentJson {
    PaymentJson::of(&session.payment).unwrap()
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        debug_assert!(change.has_one_home(), "{change:?}");
        let fails = self.failing_commits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() {
            return Err(StoreError::unavailable("no space left on the device").into());
        }
        self.change(|tables| {
            let pending_before = tables.pending_events.len();
            if change.under.iter().any(|claim| !self.leases.holds(claim)) {
                return Err(Conflict::WorkLost.into());
            }
            change.idempotency.into_iter().try_for_each(|keep| tables.keep(keep))?;
            change.writes.into_iter().try_for_each(|write| tables.write(write))?;
            Ok(Committed { has_pending_event: tables.pending_events.len() > pending_before })
        })
    }

    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        let due = self.tables().due(queue, lease.now);
        self.leases.claim_first(due.into_iter().map(Ok), lease, at_most)
    }

    async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        first_planned(self.tables().planned(queue, after).into_iter().map(Ok), at_most)
    }

    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        let has_pending = self.tables().outbox_of(endpoint).next().is_some();
        Ok(has_pending.then(|| self.leases.claim(Work::Lane(endpoint.clone()), lease)).flatten())
    }

    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        Ok(self.leases.renew(claim, lease))
    }

    async fn release(&self, claims: &[Claim]) -> Result<()> {
        claims.iter().for_each(|claim| self.leases.release(claim));
        Ok(())
    }

    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        self.change(|tables| match what {
            Prunable::StoredResponses => Ok(prune(&mut tables.responses, before, at_most, |it| it.created_at)),
            Prunable::KeyClaims => Ok(prune(&mut tables.key_claims, before, at_most, |it| it.until)),
            Prunable::DeliveryBodies => tables.redact(before, at_most),
        })
    }

    async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>> {
        Ok(self.tables().api_keys.values().find(|(of, _)| of == hash).map(|(_, it)| Arc::new(it.clone())))
    }
    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        Ok(self.tables().api_keys.values().cloned().collect())
    }
    async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        Ok(self.tables().api_keys.values().filter(|(_, it)| it.workspace_id == *workspace).cloned().collect())
    }
    async fn workspace(&self, id: &str) -> Result<Option<Workspace>> {
        Ok(self.tables().workspaces.get(id).cloned())
    }
    async fn workspaces(&self) -> Result<Vec<Workspace>> {
        Ok(self.tables().workspaces.values().cloned().collect())
    }
    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        Ok(self.tables().workspaces.values().find(|it| it.developer_id == *developer).cloned())
    }
    async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        let tables = self.tables();
        let balance = tables.balances.get(&(scope.clone(), currency, LedgerAccount::Merchant));
        let (volume_minor, payments) = tables.volumes.get(&(scope.clone(), currency)).copied().unwrap_or_default();
        Ok(Totals { balance_minor: balance.copied().unwrap_or_default(), volume_minor, payments })
    }
    async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        let (first, last) = days.into_inner();
        let range = (scope.to_string(), currency.code(), first)..=(scope.to_string(), currency.code(), last);
        Ok(self.tables().days.range(range).map(|((.., day), totals)| (*day, *totals)).collect())
    }
    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        Ok(self.tables().apps.get(&(developer.clone(), id.clone())).cloned())
    }
    async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>> {
        Ok(self.tables().log_parts.get(&place.key_in(scope)).cloned())
    }
    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>> {
        Ok(self.tables().apps.values().filter(|it| it.app.developer_id == *developer).cloned().collect())
    }
    async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        Ok(self.tables().responses.get(key).cloned())
    }
    async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        Ok(self.tables().sessions.get(id).cloned())
    }
    async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        Ok(self.tables().sessions.get(id).filter(|session| session.scope() == *scope).map(json_of))
    }
    async fn manual_settlements(&self) -> Result<Vec<Session>> {
        Ok(self.sessions_in(|tables| &tables.manual_settlement))
    }
    async fn manual_reviews(&self) -> Result<Vec<Session>> {
        Ok(self.sessions_in(|tables| &tables.manual_review))
    }
    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>> {
        let tables = self.tables();
        Ok(tables.payments.iter().map(|(of, id)| (of.environment, tables.statuses[id].clone(), 1)).collect())
    }
    async fn waiting_deliveries(&self) -> Result<u64> {
        Ok(self.tables().retries.len() as u64)
    }
    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        let tables = self.tables();
        let first = tables.outbox.iter().zip(std::iter::once(None).chain(tables.outbox.iter().map(Some)));
        let first = first.filter(|((endpoint, _), before)| before.is_none_or(|(other, _)| other != endpoint));
        let since =
            |id: &DeliveryId| tables.deliveries.get(id).and_then(Outgoing::retry_at).or_else(|| id.created_at());
        Ok(first.filter_map(|((_, id), _)| since(id)).min())
    }
    async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>> {
        Ok(self.tables().gateway_tokens.get(name).cloned())
    }
    async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        request: PageRequest,
    ) -> Result<Page<PaymentJson>> {
        let tables = self.tables();
        let listed = tables.payments.iter().rev().filter(|(of, _)| of == scope).map(|(_, id)| id);
        let listed = listed.filter(|id| status.is_none_or(|status| tables.statuses[*id] == *status));
        Ok(page(listed.map(|id| json_of(&tables.sessions[id])).collect(), request))
    }
    async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        Ok(self.tables().payments_from(scope, source, from, at_most))
    }
    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>> {
        Ok(self.tables().endpoints.get(id).cloned())
    }
    async fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>, at_most: usize) -> Result<Vec<Endpoint>> {
        Ok(self.tables().endpoints(scope, after).take(at_most).collect())
    }
    async fn pending_event(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        let tables = self.tables();
        let Some(event) = tables.pending_events.get(id).cloned() else { return Ok(None) };
        let endpoints = tables.endpoints(&event.scope, event.after.as_ref()).take(at_most).collect();
        Ok(Some((event, endpoints)))
    }
    async fn events(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Result<Option<Vec<EventEntry>>> {
        Ok(self.tables().event_list(scope, from, at_most))
    }
    async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        Ok(self.tables().payment_of_event(scope, id))
    }
    async fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        Ok(self.tables().events_of(scope, payments))
    }
    async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        Ok(self.tables().transaction_list(scope, from, at_most))
    }
    async fn deliveries_of(&self, scope: &Scope, payment: &PaymentId, at_most: usize) -> Result<Vec<Outgoing>> {
        let tables = self.tables();
        let of_payment =
            tables.deliveries.values().filter(|it| it.payment.as_ref() == Some(payment) && it.scope() == *scope);
        Ok(of_payment.take(at_most).cloned().collect())
    }
    async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        let tables = self.tables();
        let listed = tables.delivery_log.iter().filter_map(|id| tables.deliveries.get(id));
        let to_it = listed.filter(|it| it.delivery.webhook_id == *to && it.scope() == *scope);
        let passed = |it: &&Outgoing| from.after.as_ref().is_some_and(|after| it.delivery.id != *after);
        let skipped = usize::from(from.after.is_some());
        Ok(to_it.skip_while(passed).skip(skipped).take(at_most).cloned().collect())
    }
    async fn deliveries(
        &self,
        scope: &Scope,
        endpoint: Option<&WebhookId>,
        request: PageRequest,
    ) -> Result<Page<Delivery>> {
        let tables = self.tables();
        let listed = tables.delivery_log.iter().rev().map(|id| &tables.deliveries[id]);
        let is_asked_for = |it: &Outgoing| endpoint.is_none_or(|endpoint| it.delivery.webhook_id == *endpoint);
        let listed = listed.filter(|it| it.scope() == *scope && is_asked_for(it));
        Ok(page(listed.map(|it| it.delivery.clone()).collect(), request))
    }
    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        let ids: Vec<_> = self.tables().outbox_of(endpoint).take(at_most).cloned().collect();
        Ok(OutboxHead { is_all: ids.len() < at_most, ids })
    }
    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        Ok(self.tables().deliveries.get(id).cloned())
    }
}
