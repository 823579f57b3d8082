//! Two stores as one: the sandbox's records are in a disposable store, all others in the lasting one.
//!
//! The sandbox's workspace and key are in the lasting store, so that an operator can revoke the key for good.

use std::sync::Arc;

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Delivery, DeliveryId, DeveloperId, Environment, EventId, Page, PageRequest, Payment, PaymentId,
    Status, Timestamp, WebhookId,
};

use super::{
    Change, Claim, CommitError, Lease, Maintenance, OutboxHead, Prunable, Queue, Store, StoreError, Write,
    disposable::Disposable,
};
use crate::domain::{
    ApiKey, App, Endpoint, Figures, IdempotencyKey, KeptResponse, KeptToken, KeyHash, Outgoing, PendingEvent, Scope,
    Session, Workspace,
};

/// The lasting store and the sandbox's.
pub(crate) struct Sandboxed {
    lasting: Arc<dyn Store>,
    sandbox: Arc<Disposable>,
}

impl Sandboxed {
    pub(crate) fn new(lasting: Arc<dyn Store>, sandbox: Arc<Disposable>) -> Self {
        Self { lasting, sandbox }
    }

    /// Whether a change goes to the sandbox's store. Sandbox records from before it had a store of its own are changed in the
    /// lasting one.
    async fn is_of_sandbox(&self, change: &Change) -> Result<bool, StoreError> {
        if !scope_of(change).is_some_and(|scope| self.is_sandbox(&scope)) {
            return Ok(false);
        }
        for write in &change.writes {
            let is_lasting = match write {
                Write::Payment(write) if write.session.version > 0 => {
                    self.lasting.session(&write.session.payment.id).await?.is_some()
                }
                Write::DeliveryEnded(ended) => self.lasting.outgoing(&ended.delivery.id).await?.is_some(),
                Write::FannedOut { event, .. } => self.lasting.pending_event(event, 0).await?.is_some(),
                Write::EndpointRemoved(removed) => self.lasting.endpoint(&removed.endpoint.id).await?.is_some(),
                _ => false,
            };
            if is_lasting {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_sandbox(&self, scope: &Scope) -> bool {
        scope.environment == Environment::Test && scope.developer_id == self.sandbox.workspace().developer_id
    }
}

/// The scope of a change; `None` if it has none, or if its records stay in the lasting store.
fn scope_of(change: &Change) -> Option<Scope> {
    let of_write = |write: &Write| match write {
        Write::Payment(write) => Some(write.session.scope()),
        Write::Delivery(outgoing) | Write::DeliveryEnded(outgoing) => Some(outgoing.scope()),
        Write::EndpointAdded { endpoint, .. } | Write::EndpointRemoved(endpoint) => Some(endpoint.scope()),
        Write::KeyClaimed(claimed) => Some(claimed.0.scope.clone()),
        Write::KeyReleased(key, _) => Some(key.scope.clone()),
        Write::FannedOut { scope, .. } => Some(scope.clone()),
        Write::Workspace(_) | Write::ApiKey(..) | Write::App(_) | Write::GatewayToken(..) => None,
    };
    let of_key = change.idempotency.as_ref().map(|keep| keep.key.scope.clone());
    of_key.or_else(|| change.writes.iter().find_map(of_write))
}

/// Asks the store that holds a scope's records.
macro_rules! of_scope {
    ($self:ident, $scope:expr, $verb:ident ( $($argument:expr),* )) => {
        match $self.is_sandbox($scope) {
            true => $self.sandbox.store().$verb($($argument),*).await,
            false => $self.lasting.$verb($($argument),*).await,
        }
    };
}

/// Asks the lasting store, then the sandbox's: an id does not tell which store holds its record.
macro_rules! of_either {
    ($self:ident, $verb:ident ( $($argument:expr),* )) => {
        match $self.lasting.$verb($($argument),*).await? {
            Some(found) => Ok(Some(found)),
            None => $self.sandbox.store().$verb($($argument),*).await,
        }
    };
}

/// Joins the lists of both, the lasting store's first.
macro_rules! of_both {
    ($self:ident, $verb:ident ( $($argument:expr),* )) => {{
        let mut all = $self.lasting.$verb($($argument),*).await?;
        all.extend($self.sandbox.store().$verb($($argument),*).await?);
        Ok(all)
    }};
}

#[async_trait]
impl Store for Sandboxed {
    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        match self.is_of_sandbox(&change).await? {
            true => self.sandbox.store().commit(change).await,
            false => self.lasting.commit(change).await,
        }
    }

    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>, StoreError> {
        let mut claims = self.lasting.claim(queue, lease, at_most).await?;
        // The sandbox moves no money, so it has no gateway checks.
        if queue != Queue::GatewayChecks {
            match self.sandbox.store().claim(queue, lease, at_most - claims.len()).await {
                Ok(others) => claims.extend(others),
                // It must not stop the work of the lasting store.
                Err(error) => tracing::error!(%error, "cannot claim work of the sandbox"),
            }
        }
        Ok(claims)
    }

    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>, StoreError> {
        of_either!(self, claim_lane(endpoint, lease))
    }

    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool, StoreError> {
        Ok(self.lasting.renew(claim, lease).await? || self.sandbox.store().renew(claim, lease).await?)
    }

    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        self.lasting.release(claim).await?;
        self.sandbox.store().release(claim).await
    }

    // The sandbox's records are dropped with their store.

    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        self.lasting.prune(what, before, at_most).await
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.lasting.maintenance()
    }

    async fn api_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.lasting.api_key(hash).await
    }

    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>, StoreError> {
        self.lasting.api_keys().await
    }

    async fn workspace(&self, id: &str) -> Result<Option<Workspace>, StoreError> {
        self.lasting.workspace(id).await
    }

    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>, StoreError> {
        self.lasting.workspace_of(developer).await
    }

    async fn figures(&self, scope: &Scope, currency: Currency) -> Result<Figures, StoreError> {
        of_scope!(self, scope, figures(scope, currency))
    }

    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>, StoreError> {
        self.lasting.app(developer, id).await
    }

    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>, StoreError> {
        self.lasting.apps(developer).await
    }

    async fn kept_response(&self, key: &IdempotencyKey) -> Result<Option<KeptResponse>, StoreError> {
        of_scope!(self, &key.scope, kept_response(key))
    }

    async fn session(&self, id: &PaymentId) -> Result<Option<Session>, StoreError> {
        of_either!(self, session(id))
    }

    // The sandbox moves no money, so nobody has anything to decide.

    async fn unsettled_refunds(&self) -> Result<Vec<Session>, StoreError> {
        self.lasting.unsettled_refunds().await
    }

    async fn reviews(&self) -> Result<Vec<Session>, StoreError> {
        self.lasting.reviews().await
    }

    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>, StoreError> {
        of_both!(self, payments_by_status())
    }

    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>, StoreError> {
        let sandbox = self.sandbox.store().oldest_in_outbox().await?;
        Ok(self.lasting.oldest_in_outbox().await?.into_iter().chain(sandbox).min())
    }

    async fn gateway_token(&self, name: &str) -> Result<Option<KeptToken>, StoreError> {
        self.lasting.gateway_token(name).await
    }

    async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<Payment>, StoreError> {
        of_scope!(self, scope, payments(scope, status, page))
    }

    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>, StoreError> {
        of_either!(self, endpoint(id))
    }

    async fn endpoints(
        &self,
        scope: &Scope,
        after: Option<&WebhookId>,
        at_most: usize,
    ) -> Result<Vec<Endpoint>, StoreError> {
        of_scope!(self, scope, endpoints(scope, after, at_most))
    }

    async fn pending_event(
        &self,
        id: &EventId,
        at_most: usize,
    ) -> Result<Option<(PendingEvent, Vec<Endpoint>)>, StoreError> {
        // An event goes to the endpoints in its payment's store.
        of_either!(self, pending_event(id, at_most))
    }

    async fn deliveries(
        &self,
        scope: &Scope,
        endpoint: Option<&WebhookId>,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        of_scope!(self, scope, deliveries(scope, endpoint, page))
    }

    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead, StoreError> {
        // An endpoint's deliveries are in the endpoint's store.
        let mut head = self.lasting.outbox(endpoint, at_most).await?;
        let other = self.sandbox.store().outbox(endpoint, at_most).await?;
        head.ids.extend(other.ids);
        Ok(OutboxHead { is_all: head.is_all && other.is_all, ..head })
    }

    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
        of_either!(self, outgoing(id))
    }
}
