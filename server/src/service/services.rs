//! Which service a request is for: the lasting one, or the sandbox's on a public server.

use std::sync::Arc;

use payments_core::{DeveloperId, Environment, PaymentId};
use tokio::sync::watch;

use super::{AdminReply, AdminRequest, Directory, Result, Service};
use crate::{
    domain::{Scope, owner_of},
    metrics::Observed,
    store::StoreError,
};

pub struct Services {
    pub lasting: Arc<Service>,
    /// The sandbox, if it has a store of its own. The channel has `None` while the server starts.
    sandbox: Option<watch::Receiver<Option<Sandbox>>>,
}

/// The service on the present store of a sandbox.
#[derive(Clone)]
pub struct Sandbox {
    /// The developer of the sandbox's workspace.
    pub developer: DeveloperId,
    pub service: Arc<Service>,
}

impl Sandbox {
    fn is_of(&self, scope: &Scope) -> bool {
        scope.environment == Environment::Test && owner_of(&scope.developer_id) == self.developer
    }
}

impl Services {
    pub fn new(lasting: Arc<Service>, sandbox: Option<watch::Receiver<Option<Sandbox>>>) -> Self {
        Self { lasting, sandbox }
    }

    /// The sandbox; `None` if it has no store of its own. Fails while the server starts: nobody knows yet which keys are the
    /// sandbox's.
    fn sandbox(&self) -> Result<Option<Sandbox>> {
        let Some(sandbox) = &self.sandbox else { return Ok(None) };
        let begun = sandbox.borrow().clone();
        begun.map(Some).ok_or_else(|| StoreError::unavailable("the sandbox is being opened").into())
    }

    /// The service of the requests with a key of this scope.
    pub fn of(&self, scope: &Scope) -> Result<Arc<Service>> {
        let sandbox = self.sandbox()?.filter(|sandbox| sandbox.is_of(scope));
        Ok(sandbox.map_or_else(|| Arc::clone(&self.lasting), |sandbox| sandbox.service))
    }

    /// The service of a payment, for requests without a key. Reads a store only for ids in the sandbox's slot.
    pub async fn of_payment(&self, id: &str) -> Arc<Service> {
        if let Ok(Some(Sandbox { developer, service })) = self.sandbox()
            && let Ok(id) = id.parse::<PaymentId>()
            && id.slot() == developer.slot()
        {
            match service.store.session(&id).await {
                Ok(Some(_)) => return service,
                Ok(None) => {}
                // An error must not stop the payments of the lasting store that have this slot.
                Err(error) => tracing::error!(%error, "cannot read a payment of the sandbox"),
            }
        }
        Arc::clone(&self.lasting)
    }

    pub fn of_demo(&self) -> Result<Arc<Service>> {
        Ok(self.sandbox()?.map_or_else(|| Arc::clone(&self.lasting), |sandbox| sandbox.service))
    }

    /// Reads the metrics that the server computes only on request, of both stores.
    pub async fn observe(&self) -> Result<Observed> {
        let observed = self.lasting.observe().await?;
        match self.sandbox() {
            Ok(Some(sandbox)) => Ok(observed.with_sandbox(sandbox.service.observe().await?)),
            _ => Ok(observed),
        }
    }

    /// Runs a command from the command line. Only deliveries are looked for in the sandbox.
    pub async fn administer(&self, request: AdminRequest) -> AdminReply {
        let Ok(Some(Sandbox { service, .. })) = self.sandbox() else { return self.lasting.administer(request).await };
        let (store, ambient) = (Arc::clone(&service.store), Arc::clone(&service.ambient));
        let is_of_sandbox = async {
            Some(match &request {
                AdminRequest::ResendDelivery { delivery } => {
                    store.outgoing(&delivery.parse().ok()?).await.ok()?.is_some()
                }
                AdminRequest::RecoverWebhook { webhook, .. } => {
                    store.endpoint(&webhook.parse().ok()?).await.ok()?.is_some()
                }
                _ => false,
            })
        };
        match is_of_sandbox.await {
            Some(true) => Directory { store, ambient }.administer(&service.gateways, request).await,
            _ => self.lasting.administer(request).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{RawJson, Slot};

    use super::*;
    use crate::{
        domain::new_session,
        metrics::BudgetMetrics,
        service::{Claims, ServiceError, in_memory::service},
        store::{Change, PaymentWrite, Write, layout::MemoryStore},
    };

    /// Commits a payment whose id is in a slot.
    async fn create(service: &Service, slot: Slot) -> String {
        let mut session = new_session();
        session.payment.id = PaymentId::new(slot, service.ambient.now(), service.ambient.id_bytes());
        let (id, json) = (session.payment.id.to_string(), RawJson::of(&session.payment).unwrap());
        let write = PaymentWrite::new(session, json, None, None);
        service.commit(Change::of(Write::Payment(Box::new(write)))).await.unwrap();
        id
    }

    #[tokio::test]
    async fn each_service_finds_its_own_payments_in_a_slot_that_both_use() {
        let (lasting, [slot, other]) = (service(), [[0, 7], [0, 8]].map(Slot::of_random));
        let claims = Arc::new(Claims::new(&BudgetMetrics::default()));
        let sender = Arc::clone(&lasting.sender);
        let sandbox = Arc::new(lasting.of_sandbox(MemoryStore::default().into_store(), sender, claims));
        let (present, receiver) = watch::channel(None);
        let services = Services::new(Arc::clone(&lasting), Some(receiver));
        let developer = DeveloperId::new(slot, lasting.ambient.now(), lasting.ambient.id_bytes());
        let test = Scope { developer_id: developer.clone(), environment: Environment::Test };
        assert!(matches!(services.of(&test), Err(ServiceError::Unavailable(_))), "it is not open yet");
        present.send_replace(Some(Sandbox { developer, service: Arc::clone(&sandbox) }));

        let live = Scope { environment: Environment::Live, ..test.clone() };
        let emptied = Scope { developer_id: format!("{}00000001", test.developer_id).parse().unwrap(), ..test.clone() };
        let strangers = Scope { developer_id: "dev_1".parse().unwrap(), ..test.clone() };
        for (scope, own) in [(&test, &sandbox), (&emptied, &sandbox), (&live, &lasting), (&strangers, &lasting)] {
            assert!(Arc::ptr_eq(&services.of(scope).unwrap(), own), "{scope:?}");
        }
        for (own, slot) in [(&sandbox, slot), (&lasting, slot), (&lasting, other)] {
            let id = create(own, slot).await;
            assert!(Arc::ptr_eq(&services.of_payment(&id).await, own), "{id}");
        }
        for id in ["", "pay_1", "../x"] {
            assert!(Arc::ptr_eq(&services.of_payment(id).await, &lasting));
        }
    }
}
