//! Expires checkout sessions.

use std::{slice, sync::Arc, time::Duration};

use super::{Result, Service, ServiceError, payments::EventData};
use crate::{
    process::poll::poll,
    store::{Change, Claim, LEASE_SECONDS, Lease, Queue, StoreError, Work, Write},
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum sessions per poll, so that payments do not wait behind many expiries.
const BATCH_SIZE: usize = 200;

impl Service {
    /// Expires sessions when they are due. Runs forever.
    pub async fn expire_sessions(self: Arc<Self>) {
        poll(POLL_INTERVAL, || async {
            if let Err(error) = self.expire_some().await {
                tracing::error!(%error, "could not expire sessions; trying again");
            }
        })
        .await;
    }

    /// Expires the sessions that have been due for longest.
    async fn expire_some(&self) -> Result<()> {
        let lease = Lease::new(self.ambient.now(), LEASE_SECONDS);
        let mut outcome = Ok(());
        for claim in self.store.claim(Queue::Expiry, &lease, BATCH_SIZE).await? {
            if outcome.is_ok() {
                outcome = match self.expire(&claim).await {
                    // Keep this session's claim until its lease ends, so that it does not block the other sessions.
                    Err(ServiceError::Unavailable(error @ StoreError::Corrupt { .. })) => {
                        tracing::error!(%error, ?claim, "could not expire a session; run payments-server check");
                        continue;
                    }
                    outcome => outcome,
                };
            }
            self.store.release(slice::from_ref(&claim)).await?;
        }
        outcome
    }

    async fn expire(&self, claim: &Claim) -> Result<()> {
        let Work::Expiry(id) = &claim.work else { return Ok(()) };
        let session = self.session(id.as_str()).await?;
        // It was paid, cancelled or sent to a gateway meanwhile.
        if session.unattempted_expiry().is_none() {
            return Ok(());
        }
        let decision = payments_core::decide(&session.payment, session.cause_of_end(), self.ambient.now())?;
        let expired = self.records().decided(decision, session.next(), &session, EventData::Payment)?;
        let change = Change { under: vec![claim.clone()], ..Change::of(Write::Payment(Box::new(expired))) };
        match self.commit(change).await.map_err(ServiceError::from) {
            // A concurrent change won. If the session is still open, a later poll claims it again.
            Err(ServiceError::Conflict) => Ok(()),
            outcome => outcome,
        }
    }
}
