//! Two stores as one: the sandbox's records are in a disposable store, all others in the lasting one.
//!
//! The sandbox's workspace and key are in the lasting store, so that an operator can revoke the key for good.

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Day, Delivery, DeliveryId, DeveloperId, Environment, EventId, Page, PageRequest, PaymentId,
    Status, Timestamp, WebhookId, WorkspaceId,
};

use super::{
    Backups, Change, Claim, CommitError, Committed, DeliveriesFrom, EventEntry, EventWrite, EventsFrom, Lease,
    OutboxHead, PaymentJson, PaymentSource, PaymentsFrom, Planned, Prunable, Queue, RequestCounts, Result, Store,
    TransactionEntry, TransactionsFrom, Write, disposable::Disposable, first_planned,
};
use crate::domain::{
    ApiKey, App, DayTotals, Endpoint, IdempotencyKey, KeyHash, LogPart, Outgoing, PendingEvent, Place, Scope, Session,
    StoredResponse, StoredToken, Totals, Workspace,
};

/// The lasting store and the sandbox's.
pub(crate) struct Sandboxed {
    pub(crate) lasting: Arc<dyn Store>,
    pub(crate) sandbox: Arc<Disposable>,
}

impl Sandboxed {
    /// The store of a scope's records.
    fn of(&self, scope: &Scope) -> Arc<dyn Store> {
        if self.sandbox.is_of(scope) { self.sandbox.store() } else { Arc::clone(&self.lasting) }
    }

    /// Whether a change goes to the sandbox's store. Sandbox records from before it had a store of its own are changed in the
    /// lasting one.
    async fn is_of_sandbox(&self, change: &Change) -> Result<bool> {
        if !scope_of(change).is_some_and(|scope| self.sandbox.is_of(&scope)) {
            return Ok(false);
        }
        for write in &change.writes {
            let is_lasting = match write {
                Write::Payment(write) if write.session.version > 0 => {
                    self.lasting.session(&write.session.payment.id).await?.is_some()
                }
                Write::Delivery(outgoing) => match &outgoing.resend_of {
                    Some(first) => self.lasting.outgoing(first).await?.is_some(),
                    None => false,
                },
                Write::DeliveryChanged(it) | Write::DeliveryResent(it) => {
                    self.lasting.outgoing(&it.delivery.id).await?.is_some()
                }
                Write::FannedOut { event, .. } => self.lasting.pending_event(event, 0).await?.is_some(),
                Write::EndpointChanged(endpoint) | Write::EndpointRemoved(endpoint) => {
                    self.lasting.endpoint(&endpoint.endpoint.id).await?.is_some()
                }
                _ => false,
            };
            if is_lasting {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The scope of a change; `None` if it has none, or if its records stay in the lasting store.
fn scope_of(change: &Change) -> Option<Scope> {
    let of_write = |write: &Write| match write {
        Write::Payment(write) => Some(write.session.scope()),
        Write::Delivery(it) | Write::DeliveryChanged(it) | Write::DeliveryResent(it) => Some(it.scope()),
        Write::EndpointAdded { endpoint, .. } | Write::EndpointChanged(endpoint) | Write::EndpointRemoved(endpoint) => {
            Some(endpoint.scope())
        }
        Write::KeyClaimed(claimed) => Some(claimed.0.scope.clone()),
        Write::KeyReleased(key, _) => Some(key.scope.clone()),
        Write::FannedOut { scope, .. } => Some(scope.clone()),
        Write::Workspace(_) | Write::ApiKey(..) | Write::App(_) | Write::GatewayToken(..) => None,
        Write::LogPart(part) => Some(part.scope.clone()),
        Write::Moved(_) | Write::Migration(_) => None,
    };
    let of_key = change.idempotency.as_ref().map(|keep| keep.key.scope.clone());
    of_key.or_else(|| change.writes.iter().find_map(of_write))
}

/// Asks the lasting store, then the sandbox's: an id does not tell which store holds its record.
macro_rules! of_either {
    ($self:ident.$verb:ident($($argument:expr),*)) => {
        match $self.lasting.$verb($($argument),*).await? {
            None => $self.sandbox.store().$verb($($argument),*).await,
            found => Ok(found),
        }
    };
}

#[async_trait]
impl Store for Sandboxed {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        match self.is_of_sandbox(&change).await? {
            true => self.sandbox.store().commit(change).await,
            false => self.lasting.commit(change).await,
        }
    }

    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        let mut claims = self.lasting.claim(queue, lease, at_most).await?;
        // The sandbox moves no money, so it has no gateway checks.
        if queue != Queue::GatewayChecks {
            let others = self.sandbox.store().claim(queue, lease, at_most - claims.len()).await;
            // An error must not stop the work of the lasting store.
            let others = others.inspect_err(|error| tracing::error!(%error, "cannot claim work of the sandbox"));
            claims.extend(others.unwrap_or_default());
        }
        Ok(claims)
    }
    async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        let mut planned = self.lasting.planned(queue, after, at_most).await?;
        let others = self.sandbox.store().planned(queue, after, at_most).await;
        let others = others.inspect_err(|error| tracing::error!(%error, "cannot read the planned work of the sandbox"));
        planned.extend(others.unwrap_or_default());
        planned.sort_by_key(|(time, _)| *time);
        first_planned(planned.into_iter().map(Ok), at_most)
    }
    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        of_either!(self.claim_lane(endpoint, lease))
    }
    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        Ok(self.lasting.renew(claim, lease).await? || self.sandbox.store().renew(claim, lease).await?)
    }
    async fn release(&self, claims: &[Claim]) -> Result<()> {
        self.lasting.release(claims).await?;
        self.sandbox.store().release(claims).await
    }

    // One of both stores, by the scope.

    async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        self.of(scope).totals(scope, currency).await
    }
    async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        self.of(scope).days(scope, currency, days).await
    }
    async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        self.of(&key.scope).stored_response(key).await
    }
    async fn payments(&self, scope: &Scope, status: Option<&Status>, page: PageRequest) -> Result<Page<PaymentJson>> {
        self.of(scope).payments(scope, status, page).await
    }
    async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        self.of(scope).payments_from(scope, source, from, at_most).await
    }
    async fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>, at_most: usize) -> Result<Vec<Endpoint>> {
        self.of(scope).endpoints(scope, after, at_most).await
    }
    async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>> {
        self.of(scope).log_part(scope, place).await
    }
    async fn events(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Result<Option<Vec<EventEntry>>> {
        self.of(scope).events(scope, from, at_most).await
    }
    async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        self.of(scope).payment_of_event(scope, id).await
    }
    async fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        self.of(scope).events_of(scope, payments).await
    }
    async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        self.of(scope).transactions(scope, from, at_most).await
    }
    async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        self.of(scope).deliveries_from(scope, to, from, at_most).await
    }
    async fn deliveries(&self, scope: &Scope, to: Option<&WebhookId>, page: PageRequest) -> Result<Page<Delivery>> {
        self.of(scope).deliveries(scope, to, page).await
    }

    // One of both stores, by trying. An endpoint's deliveries and a payment's pending events are in its own store.

    async fn deliveries_of(&self, scope: &Scope, payment: &PaymentId, at_most: usize) -> Result<Vec<Outgoing>> {
        self.of(scope).deliveries_of(scope, payment, at_most).await
    }
    async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        of_either!(self.session(id))
    }
    async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        of_either!(self.payment_json(scope, id))
    }
    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>> {
        of_either!(self.endpoint(id))
    }
    async fn pending_event(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        of_either!(self.pending_event(id, at_most))
    }
    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        of_either!(self.outgoing(id))
    }

    // Both stores.

    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        let mut head = self.lasting.outbox(endpoint, at_most).await?;
        let other = self.sandbox.store().outbox(endpoint, at_most).await?;
        head.ids.extend(other.ids);
        head.ids.sort();
        Ok(OutboxHead { is_all: head.is_all && other.is_all, ..head })
    }
    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>> {
        let rows = self.lasting.payments_by_status().await?;
        Ok([rows, self.sandbox.store().payments_by_status().await?].concat())
    }
    async fn waiting_deliveries(&self) -> Result<u64> {
        Ok(self.lasting.waiting_deliveries().await? + self.sandbox.store().waiting_deliveries().await?)
    }
    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        let oldest = self.lasting.oldest_in_outbox().await?;
        Ok(oldest.into_iter().chain(self.sandbox.store().oldest_in_outbox().await?).min())
    }

    // The lasting store alone. The sandbox moves no money, and its records are dropped with their store.

    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        self.lasting.prune(what, before, at_most).await
    }
    fn backups(&self) -> Option<&dyn Backups> {
        self.lasting.backups()
    }
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.lasting.request_counts()
    }
    async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>> {
        self.lasting.api_key(hash).await
    }
    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        self.lasting.api_keys().await
    }
    async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        self.lasting.api_keys_of(workspace).await
    }
    async fn workspace(&self, id: &str) -> Result<Option<Workspace>> {
        self.lasting.workspace(id).await
    }
    async fn workspaces(&self) -> Result<Vec<Workspace>> {
        self.lasting.workspaces().await
    }
    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        self.lasting.workspace_of(developer).await
    }
    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        self.lasting.app(developer, id).await
    }
    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>> {
        self.lasting.apps(developer).await
    }
    async fn manual_settlements(&self) -> Result<Vec<Session>> {
        self.lasting.manual_settlements().await
    }
    async fn manual_reviews(&self) -> Result<Vec<Session>> {
        self.lasting.manual_reviews().await
    }
    async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>> {
        self.lasting.gateway_token(name).await
    }
}
