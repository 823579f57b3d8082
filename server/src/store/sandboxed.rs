//! A store whose sandbox is kept apart: what the public key and the demo route cause lies in a store that begins anew.
//!
//! The sandbox's workspace and key are ordinary records of the lasting store, so an operator can revoke the key for good.
//! Its payments, endpoints, deliveries, lists, totals and ledger are the other store's.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Delivery, DeliveryId, DeveloperApp, DeveloperId, Environment, Page, PageRequest, Payment,
    PaymentId, Status, Timestamp, WebhookEndpoint, WebhookId,
};

use super::{BackedUp, Change, CommitError, OutboxHead, Store, StoreError, Write, disposable::Disposable};
use crate::domain::{
    ApiKey, Endpoint, Figures, IdempotencyKey, KeptResponse, KeptToken, KeyHash, Outgoing, Scope, Session, Workspace,
};

/// Two stores as one.
pub(crate) struct Sandboxed {
    lasting: Arc<dyn Store>,
    sandbox: Arc<Disposable>,
}

impl Sandboxed {
    pub(crate) fn new(lasting: Arc<dyn Store>, sandbox: Arc<Disposable>) -> Self {
        Self { lasting, sandbox }
    }

    /// Whether a change is one of the sandbox's store. What the sandbox had before it had a store of its own is in the lasting
    /// one, and is changed there.
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

/// Whose records a change is about; `None` where it is about no developer's, or about what stays in the lasting store.
fn scope_of(change: &Change) -> Option<Scope> {
    let of_write = |write: &Write| match write {
        Write::Payment(write) => Some(write.session.scope()),
        Write::Delivery(outgoing) | Write::DeliveryEnded(outgoing) => Some(outgoing.scope()),
        Write::EndpointAdded { endpoint, .. } | Write::EndpointRemoved(endpoint) => Some(endpoint.scope()),
        Write::KeyClaimed(claimed) => Some(claimed.0.scope.clone()),
        Write::KeyReleased(key, _) => Some(key.scope.clone()),
        Write::Workspace(_)
        | Write::ApiKey(..)
        | Write::App(_)
        | Write::GatewayToken(..)
        | Write::ClaimsPruned { .. }
        | Write::ResponsesForgotten { .. }
        | Write::DeliveryBodiesForgotten { .. } => None,
    };
    let of_key = change.idempotency.as_ref().map(|keep| keep.key.scope.clone());
    of_key.or_else(|| change.writes.iter().find_map(of_write))
}

/// Asks the store that a scope's records are in.
macro_rules! of_scope {
    ($self:ident, $scope:expr, $verb:ident ( $($argument:expr),* )) => {
        match $self.is_sandbox($scope) {
            true => $self.sandbox.store().$verb($($argument),*).await,
            false => $self.lasting.$verb($($argument),*).await,
        }
    };
}

/// Asks the lasting store, then the sandbox's: of an id nobody can tell where its record is.
macro_rules! of_either {
    ($self:ident, $verb:ident ( $($argument:expr),* )) => {
        match $self.lasting.$verb($($argument),*).await? {
            Some(found) => Ok(Some(found)),
            None => $self.sandbox.store().$verb($($argument),*).await,
        }
    };
}

/// Asks both for lists, the lasting store's first.
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

    async fn settled(&self) -> Result<(), StoreError> {
        self.lasting.settled().await?;
        self.sandbox.store().settled().await
    }

    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, StoreError> {
        self.lasting.back_up(directory).await
    }

    fn keep_journal_after(&self, number: u64) {
        self.lasting.keep_journal_after(number);
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

    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<DeveloperApp>, StoreError> {
        self.lasting.app(developer, id).await
    }

    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<DeveloperApp>, StoreError> {
        self.lasting.apps(developer).await
    }

    async fn kept_response(&self, key: &IdempotencyKey) -> Result<Option<KeptResponse>, StoreError> {
        of_scope!(self, &key.scope, kept_response(key))
    }

    // What is pruned by its age goes with the sandbox's whole store there.

    async fn has_response_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        self.lasting.has_response_before(time).await
    }

    async fn has_claim_ended_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        self.lasting.has_claim_ended_before(time).await
    }

    async fn has_delivery_body_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        self.lasting.has_delivery_body_before(time).await
    }

    async fn session(&self, id: &PaymentId) -> Result<Option<Session>, StoreError> {
        of_either!(self, session(id))
    }

    async fn sessions_over(&self, now: Timestamp, at_most: usize) -> Result<Vec<PaymentId>, StoreError> {
        of_both!(self, sessions_over(now, at_most))
    }

    // The sandbox moves no money: no gateway is asked, and nobody has anything to decide.

    async fn checks_due(&self, now: Timestamp, at_most: usize) -> Result<Vec<PaymentId>, StoreError> {
        self.lasting.checks_due(now, at_most).await
    }

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

    async fn endpoints(&self, scope: &Scope) -> Result<Vec<WebhookEndpoint>, StoreError> {
        of_scope!(self, scope, endpoints(scope))
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
        // An endpoint's deliveries are where the endpoint is.
        let mut head = self.lasting.outbox(endpoint, at_most).await?;
        let other = self.sandbox.store().outbox(endpoint, at_most).await?;
        head.ids.extend(other.ids);
        Ok(OutboxHead { is_all: head.is_all && other.is_all, ..head })
    }

    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
        of_either!(self, outgoing(id))
    }

    async fn endpoints_with_outbox(&self) -> Result<Vec<WebhookId>, StoreError> {
        of_both!(self, endpoints_with_outbox())
    }
}
