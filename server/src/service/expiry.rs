//! Ending the sessions whose life is over.

use std::{sync::Arc, time::Duration};

use payments_core::Cause;
use tokio::time::{MissedTickBehavior, interval};

use super::{Refused, Service};

/// How often it is looked for sessions whose life is over.
const EVERY: Duration = Duration::from_secs(1);
/// How many sessions are ended at a time; the rest waits for the next look, so that payments never wait behind many.
const AT_A_TIME: usize = 200;

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
        for id in self.store.sessions_over(self.ambient.now(), AT_A_TIME).await? {
            match self.move_payment(id.as_str(), Cause::SessionEnded).await {
                // Paid or cancelled meanwhile: then there is nothing to end.
                Ok(_) | Err(Refused::Payment(_)) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }
}
