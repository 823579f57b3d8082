//! Sends an event to an endpoint once more.

use payments_core::{DeliveryId, RawJson};

use super::{
    Answer, Caller, Directory, IdempotentRequest, Record, Result, Service, ServiceError, records::Records,
    retry_on_conflict,
};
use crate::{
    domain::Outgoing,
    store::{Change, Write},
};

impl Service {
    /// Creates another delivery of a delivery's event to the same endpoint. The answer shows it as pending.
    pub async fn resend_delivery(
        &self,
        caller: &Caller,
        id: &str,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        retry_on_conflict(|| async {
            let known = self.records().outgoing(id).await?;
            let known = known.filter(|outgoing| outgoing.scope() == caller.scope).ok_or(NO_DELIVERY)?;
            self.records().resend(known, request).await
        })
        .await
    }
}

impl Directory {
    /// Does the same as [`resend_delivery`](Service::resend_delivery) for an operator. Returns the id of the new delivery.
    pub(super) async fn resend_any_delivery(&self, id: &str) -> Result<DeliveryId> {
        retry_on_conflict(|| async {
            let known = self.records().outgoing(id).await?.ok_or(NO_DELIVERY)?;
            let again = self.records().again(&known).await?;
            let id = again.delivery.id.clone();
            self.commit(Change { writes: writes(known, again), ..Change::default() }).await?;
            Ok(id)
        })
        .await
    }
}

impl Records<'_> {
    pub(super) async fn resend(self, known: Outgoing, request: Option<&IdempotentRequest>) -> Result<Answer> {
        let again = self.again(&known).await?;
        let body = RawJson::of(&again.delivery)?;
        // The dispatcher finds it within a second.
        self.commit_once(writes(known, again), body, request).await
    }

    async fn outgoing(self, id: &str) -> Result<Option<Outgoing>> {
        let id = id.parse().map_err(|_| NO_DELIVERY)?;
        Ok(self.store.outgoing(&id).await?)
    }

    /// The new delivery, not yet committed.
    async fn again(self, known: &Outgoing) -> Result<Outgoing> {
        if known.is_pending() {
            return Err(ServiceError::NotResent("it is still pending"));
        }
        match self.store.endpoint(&known.delivery.webhook_id).await? {
            None => return Err(ServiceError::NotResent("its webhook endpoint was removed")),
            Some(endpoint) if !endpoint.endpoint.is_active => {
                return Err(ServiceError::NotResent("its webhook endpoint is not active"));
            }
            Some(_) => {}
        }
        let now = self.ambient.now();
        let again = known.again(DeliveryId::new(known.scope().developer_id.slot(), now, self.ambient.id_bytes()), now);
        again.ok_or(ServiceError::NotResent("its payload has been deleted, because it is old"))
    }
}

/// Adds the new delivery, and names it in the old one. The old one's version orders concurrent requests.
fn writes(known: Outgoing, again: Outgoing) -> Vec<Write> {
    let resent = Outgoing { version: known.version + 1, resent_as: Some(again.delivery.id.clone()), ..known };
    vec![Write::Delivery(Box::new(again)), Write::DeliveryResent(Box::new(resent))]
}

const NO_DELIVERY: ServiceError = ServiceError::NotFound { what: Record::Delivery };
