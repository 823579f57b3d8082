//! A server's connection to the database: a store that is sometimes slow, sometimes away, and sometimes silent about what
//! became of a commit.

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Day, Delivery, DeliveryId, DeveloperId, EventId, Page, PageRequest, PaymentId, Status, Timestamp,
    WebhookId, WorkspaceId,
};
use tokio::select;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Trouble,
    database::Database,
    fate::Fate,
    life::{Life, Way},
};
use crate::{
    domain::{
        ApiKey, App, DayTotals, Endpoint, IdempotencyKey, KeyHash, LogPart, Outgoing, PendingEvent, Place, Scope,
        Session, StoredResponse, StoredToken, Totals, Workspace,
    },
    store::{
        Change, Claim, CommitError, Committed, DeliveriesFrom, EventEntry, EventWrite, EventsFrom, Gauges, Lease,
        OutboxHead, PaymentJson, PaymentSource, PaymentsFrom, Planned, Prunable, Queue, Result, Store, StoreError,
        TransactionEntry, TransactionsFrom, embedded::EmbeddedStore,
    },
};

/// One server's connection.
pub(super) struct Connection {
    pub(super) fate: Arc<Fate>,
    pub(super) database: Arc<Database>,
    pub(super) life: Arc<Life>,
}

impl Connection {
    /// The database, once the request has reached it.
    async fn reach(&self) -> Result<(Arc<EmbeddedStore>, CancellationToken)> {
        self.life.runs().await;
        if !self.fate.may_ask() {
            self.fate.count(|counts| counts.endless += 1);
            std::future::pending::<()>().await;
        }
        if self.is_lost().await {
            return Err(StoreError::unavailable("the database cannot be reached"));
        }
        if self.fate.strikes(Trouble::DatabaseLink, 2_000) {
            self.fate.wait(50..=12_000).await;
        } else if self.fate.strikes(Trouble::DatabaseLink, 4_000) {
            return Err(StoreError::unavailable("the connection to the database broke"));
        }
        self.database.current().ok_or_else(|| StoreError::unavailable("the database is down"))
    }

    /// Whether the server has lost the database, after it has waited for it as long as it does.
    async fn is_lost(&self) -> bool {
        match self.life.way() {
            Way::Open => false,
            Way::Closed => {
                self.fate.wait(20..=3_000).await;
                true
            }
            Way::Silent => {
                self.fate.wait(1_000..=20_000).await;
                // Else it goes on meanwhile, or another host has become the primary.
                self.life.way() != Way::Open
            }
        }
    }

    /// Waits for a change. Without an answer nobody knows what became of it.
    ///
    /// The change is a task of its own: a dead server's tasks are not polled again, and would hold the store for ever.
    async fn change<T, E, F>(&self, change: impl FnOnce(Arc<EmbeddedStore>) -> F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (store, ended) = self.reach().await?;
        self.database.change_waits();
        let change = change(store);
        let outcome = AbortOnDropHandle::new(tokio::spawn(async move {
            select! {
                biased;
                outcome = change => outcome,
                () = ended.cancelled() => Err(StoreError::Unknown.into()),
            }
        }));
        let outcome = outcome.await.unwrap_or_else(|_| Err(StoreError::Unknown.into()));
        self.life.runs().await;
        match self.is_lost().await || self.fate.strikes(Trouble::DatabaseLink, 2_000) {
            true => Err(StoreError::Unknown.into()),
            false => outcome,
        }
    }
}

/// Asks the store, and answers the server.
macro_rules! read {
    ($self:ident.$verb:ident($($argument:expr),*)) => {{
        let (store, _) = $self.reach().await?;
        let outcome = store.$verb($($argument),*).await;
        drop(store);
        $self.life.runs().await;
        match $self.is_lost().await {
            true => Err(StoreError::unavailable("the database cannot be reached")),
            false => outcome,
        }
    }};
}

#[async_trait]
impl Store for Connection {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let outcome = self.change(|store| async move { store.commit(change).await }).await;
        match outcome {
            // Only its next opening knows.
            Err(CommitError::Store(StoreError::Stopped)) => Err(StoreError::Unknown.into()),
            outcome => outcome,
        }
    }
    async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        self.change(move |store| async move { store.prune(what, before, at_most).await }).await
    }
    async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        read!(self.claim(queue, lease, at_most))
    }
    async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        read!(self.planned(queue, after, at_most))
    }
    async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        read!(self.claim_lane(endpoint, lease))
    }
    async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        read!(self.renew(claim, lease))
    }
    async fn release(&self, claims: &[Claim]) -> Result<()> {
        read!(self.release(claims))
    }
    async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>> {
        read!(self.api_key(hash))
    }
    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        read!(self.api_keys())
    }
    async fn workspace(&self, id: &str) -> Result<Option<Workspace>> {
        read!(self.workspace(id))
    }
    async fn workspaces(&self) -> Result<Vec<Workspace>> {
        read!(self.workspaces())
    }
    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        read!(self.workspace_of(developer))
    }
    async fn totals(&self, scope: &Scope, currency: Currency) -> Result<Totals> {
        read!(self.totals(scope, currency))
    }
    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        read!(self.app(developer, id))
    }
    async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>> {
        read!(self.log_part(scope, place))
    }
    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>> {
        read!(self.apps(developer))
    }
    async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
        read!(self.stored_response(key))
    }
    async fn session(&self, id: &PaymentId) -> Result<Option<Session>> {
        read!(self.session(id))
    }
    async fn manual_settlements(&self) -> Result<Vec<Session>> {
        read!(self.manual_settlements())
    }
    async fn manual_reviews(&self) -> Result<Vec<Session>> {
        read!(self.manual_reviews())
    }
    async fn gauges(&self) -> Result<Gauges> {
        read!(self.gauges())
    }
    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        read!(self.oldest_in_outbox())
    }
    async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>> {
        read!(self.gateway_token(name))
    }
    async fn payment_json(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>> {
        read!(self.payment_json(scope, id))
    }
    async fn payments(&self, scope: &Scope, status: Option<&Status>, page: PageRequest) -> Result<Page<PaymentJson>> {
        read!(self.payments(scope, status, page))
    }
    async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        read!(self.payments_from(scope, source, from, at_most))
    }
    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>> {
        read!(self.endpoint(id))
    }
    async fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>, at_most: usize) -> Result<Vec<Endpoint>> {
        read!(self.endpoints(scope, after, at_most))
    }
    async fn pending_event(&self, id: &EventId, at_most: usize) -> Result<Option<(PendingEvent, Vec<Endpoint>)>> {
        read!(self.pending_event(id, at_most))
    }
    async fn events(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Result<Option<Vec<EventEntry>>> {
        read!(self.events(scope, from, at_most))
    }
    async fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Result<Option<PaymentId>> {
        read!(self.payment_of_event(scope, id))
    }
    async fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Result<Vec<(PaymentId, Vec<EventWrite>)>> {
        read!(self.events_of(scope, payments))
    }
    async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        read!(self.transactions(scope, from, at_most))
    }
    async fn deliveries_of(&self, scope: &Scope, payment: &PaymentId, at_most: usize) -> Result<Vec<Outgoing>> {
        read!(self.deliveries_of(scope, payment, at_most))
    }
    async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        read!(self.deliveries_from(scope, to, from, at_most))
    }
    async fn deliveries(&self, scope: &Scope, to: Option<&WebhookId>, page: PageRequest) -> Result<Page<Delivery>> {
        read!(self.deliveries(scope, to, page))
    }
    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        read!(self.outbox(endpoint, at_most))
    }
    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>> {
        read!(self.outgoing(id))
    }
    async fn days(
        &self,
        scope: &Scope,
        currency: Currency,
        days: RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        read!(self.days(scope, currency, days))
    }
    async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        read!(self.api_keys_of(workspace))
    }
}
