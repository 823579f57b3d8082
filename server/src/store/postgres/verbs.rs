//! The store's verbs.

use std::{ops::RangeInclusive, sync::Arc, time::Instant};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Day, Delivery, DeliveryId, DeveloperId, Environment, EventId, Page, PageRequest, PaymentId,
    Status, Timestamp, WebhookId, WorkspaceId,
};
use tokio::sync::oneshot;

use super::{PostgresStore, names, names::Kind, payment_list::json_of, writer::Job};
use crate::{
    domain::{
        ApiKey, App, DayTotals, Endpoint, IdempotencyKey, KeyHash, LogPart, Outgoing, PendingEvent, Place, Scope,
        Session, StoredResponse, StoredToken, Totals, Workspace,
    },
    store::{
        Change, Claim, CommitError, Committed, DeliveriesFrom, EventEntry, EventWrite, EventsFrom, Lease, OutboxHead,
        PaymentJson, PaymentSource, PaymentsFrom, Planned, Prunable, Queue, RequestCounts, Result, Store, StoreError,
        TransactionEntry, TransactionsFrom, Write,
    },
};

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        debug_assert!(change.has_one_home(), "{change:?}");
        let changed = change.writes.iter().filter_map(|write| match write {
            Write::ApiKey(hash, _) => Some(hash.clone()),
            _ => None,
        });
        let changed: Vec<_> = changed.collect();
        let adds_endpoint = change.writes.iter().any(|write| matches!(write, Write::EndpointAdded { .. }));
        if !*self.is_open.borrow() {
            return Err(StoreError::unavailable("the database cannot be reached").into());
        }
        let (answer, outcome) = oneshot::channel();
        self.changes.send(Job { change, answer }).await.map_err(|_| StoreError::Stopped)?;
        let committed = outcome.await.map_err(|_| StoreError::Stopped)?;
        changed.iter().for_each(|hash| self.keys.remove(hash));
        if adds_endpoint && committed.is_ok() {
            self.wait_for_earlier_batches().await;
        }
        committed
    }

    async fn prove_readiness(&self) -> Result<()> {
        self.readers.prove_privileges().await
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        Some(self)
    }

    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        self.claim_due(queue, lease, at_most).await
    }

    async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        self.planned_after(queue, after, at_most).await
    }

    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        self.claim_one_lane(endpoint, lease).await
    }

    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        self.renew_claim(claim, lease).await
    }

    async fn release(&self, claims: &[Claim]) -> Result<()> {
        self.release_claims(claims).await
    }

    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        self.prune_older(what, before, at_most).await
    }

    async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>> {
        let now = Instant::now();
        if let Some(key) = self.keys.get(hash, now) {
            return Ok(Some(key));
        }
        let key = self.record(Kind::ApiKey, &names::hash(hash)).await?.map(Arc::new);
        if let Some(key) = &key {
            self.keys.put(hash, key, now);
        }
        Ok(key)
    }

    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        self.key_records().await
    }

    async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        self.key_records_of(workspace).await
    }

    async fn workspace(&self, id: &str) -> Result<Option<Workspace>> {
        self.record(Kind::Workspace, id).await
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>> {
        self.workspace_records().await
    }

    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        self.workspace_record_of(developer).await
    }

    async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        self.totals_of(scope, currency).await
    }

    async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        self.day_totals(scope, currency, &days).await
    }

    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        self.app_record(developer, id).await
    }

    async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>> {
        self.record(Kind::LogPart, &place.key_in(scope)).await
    }
    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>> {
        self.records_of(Kind::App, developer.as_str(), "", usize::MAX).await
    }

    async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        self.response(key).await
    }

    async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        self.session_of(id).await
    }

    async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        let session = self.session_of(id).await?.filter(|session| session.scope() == *scope);
        session.map(|session| json_of(&session.payment)).transpose()
    }

    async fn manual_settlements(&self) -> Result<Vec<Session>> {
        self.sessions_to_settle().await
    }

    async fn manual_reviews(&self) -> Result<Vec<Session>> {
        self.sessions_to_review().await
    }

    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>> {
        self.status_counts().await
    }

    async fn waiting_deliveries(&self) -> Result<u64> {
        self.waiting_count().await
    }

    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        self.oldest_pending().await
    }

    async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>> {
        self.token_record(name).await
    }

    async fn payments(&self, scope: &Scope, status: Option<&Status>, page: PageRequest) -> Result<Page<PaymentJson>> {
        self.payment_page(scope, status, page).await
    }

    async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        self.part_of_payments(scope, source, from, at_most).await
    }

    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>> {
        self.record(Kind::Endpoint, id.as_str()).await
    }

    async fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>, at_most: usize) -> Result<Vec<Endpoint>> {
        self.endpoint_records(scope, after, at_most).await
    }

    async fn pending_event(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        self.pending(id, at_most).await
    }

    async fn events(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Result<Option<Vec<EventEntry>>> {
        self.event_list(scope, from, at_most).await
    }

    async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        self.payment_with_event(scope, id).await
    }

    async fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        self.events_of_payments(scope, payments).await
    }

    async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        self.transaction_list(scope, from, at_most).await
    }

    async fn deliveries_of(&self, scope: &Scope, payment: &PaymentId, at_most: usize) -> Result<Vec<Outgoing>> {
        self.deliveries_of_payment(scope, payment, at_most).await
    }

    async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        self.deliveries_after(scope, to, from, at_most).await
    }
    async fn deliveries(&self, scope: &Scope, to: Option<&WebhookId>, page: PageRequest) -> Result<Page<Delivery>> {
        self.delivery_page(scope, to, page).await
    }

    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        self.outbox_head(endpoint, at_most).await
    }

    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        self.delivery_of(id).await
    }
}
