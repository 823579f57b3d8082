//! Ending the sessions whose life is over.

use std::{sync::Arc, time::Duration};

use payments_core::Cause;
use tokio::time::{MissedTickBehavior, interval};

use super::{Refused, Service, payments::EventData};
use crate::store::{Change, Claim, Lease, Queue, StoreError, Work};

/// How often it is looked for sessions whose life is over.
const EVERY: Duration = Duration::from_secs(1);
/// How many sessions are ended at a time; the rest waits for the next look, so that payments never wait behind many.
const AT_A_TIME: usize = 200;
/// How long a server may take for them before another one takes over.
const LEASE_SECONDS: u32 = 60;

impl Service {
    /// Ends sessions when their time has come, for as long as it is polled.
    pub(crate) async fn expire_sessions(self: Arc<Self>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.expire_some().await {
                tracing::error!(%error, "sessions whose life is over could not be ended");
            }
        }
    }

    /// Ends the sessions that have been over for longest.
    async fn expire_some(&self) -> Result<(), Refused> {
        let lease = Lease::new(self.server, self.ambient.now(), LEASE_SECONDS);
        let mut outcome = Ok(());
        for claim in self.store.claim(Queue::Expiry, &lease, AT_A_TIME).await? {
            if outcome.is_ok() {
                outcome = match self.expire(&claim).await {
                    // It stays claimed until its lease is over, so that the others have their turn.
                    Err(Refused::Unavailable(error @ StoreError::Corrupt { .. })) => {
                        tracing::error!(%error, ?claim, "a session cannot be ended; run check");
                        continue;
                    }
                    outcome => outcome,
                };
            }
            self.store.release(&claim).await?;
        }
        outcome
    }

    async fn expire(&self, claim: &Claim) -> Result<(), Refused> {
        let Work::Expiry(id) = &claim.work else { return Ok(()) };
        let session = self.session(id.as_str()).await?;
        // Paid, cancelled or sent to a gateway meanwhile: then there is nothing to end.
        if session.expires_by_itself_at().is_none() {
            return Ok(());
        }
        let decision = payments_core::decide(&session.payment, Cause::SessionEnded, self.ambient.now())?;
        let moved = self.change_for(decision, session.next(), Some(&session), EventData::Payment, None).await?;
        match self.commit(Change { under: vec![claim.clone()], ..moved.change }).await.map_err(Refused::from) {
            // Somebody else moved it. If it is still open, it is claimed again.
            Err(Refused::Moved) => Ok(()),
            outcome => outcome,
        }
    }
}
