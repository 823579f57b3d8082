//! Ending the sessions whose life is over.

use std::{sync::Arc, time::Duration};

use payments_core::Cause;
use tokio::time::{MissedTickBehavior, interval};

use super::{Refused, Service};
use crate::store::{Claim, Lease, Queue, Work};

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
        for claim in self.store.claim(Queue::Expiry, &lease, AT_A_TIME).await? {
            let outcome = self.expire(&claim).await;
            self.store.release(&claim).await?;
            outcome?;
        }
        Ok(())
    }

    async fn expire(&self, claim: &Claim) -> Result<(), Refused> {
        let Work::Expiry(id) = &claim.work else { return Ok(()) };
        match self.move_payment(id.as_str(), Cause::SessionEnded).await {
            // Paid or cancelled meanwhile: then there is nothing to end.
            Ok(_) | Err(Refused::Payment(_)) => Ok(()),
            Err(refused) => Err(refused),
        }
    }
}
