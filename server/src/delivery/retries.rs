//! Returns deliveries to their endpoints' outboxes when their next attempt is due.
//!
//! A waiting delivery is in no outbox. So it costs nothing until it is due, and later events of its payment pass it. A
//! delivery that was claimed before a crash still waits, and is claimed again.

use std::{slice, sync::Arc, time::Duration};

use futures_util::future::join_all;

use super::Dispatcher;
use crate::{
    ambient::Ambient,
    process::poll::poll,
    store::{Change, Claim, CommitError, LEASE_SECONDS, Lease, Queue, Store, StoreError, Work, Write},
};

const POLL: Duration = Duration::from_secs(1);
const AT_A_TIME: usize = 64;

pub struct DueRetries {
    pub store: Arc<Store>,
    pub ambient: Arc<dyn Ambient>,
    pub dispatcher: Arc<Dispatcher>,
}

impl DueRetries {
    /// Returns deliveries that are due. Never returns.
    pub async fn run(self) {
        poll(POLL, || async {
            while self.round().await.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot return deliveries to their outboxes; retrying");
                0
            }) == AT_A_TIME
            {}
        })
        .await;
    }

    /// Returns the deliveries that have been due for longest. It commits them together, so that they share a sync. Returns
    /// how many it claimed.
    async fn round(&self) -> Result<usize, StoreError> {
        let lease = Lease::new(self.ambient.now(), LEASE_SECONDS);
        let claims = self.store.claim(Queue::Retries, &lease, AT_A_TIME).await?;
        let returned = join_all(claims.iter().map(|claim| self.put_back(claim))).await;
        let mut outcome = Ok(claims.len());
        for (claim, returned) in claims.iter().zip(returned) {
            match returned {
                // Keep this delivery's claim until the lease ends, so that it does not block the others.
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(%error, ?claim, "cannot read a delivery that waits for its next attempt; run check");
                    continue;
                }
                Err(error) => outcome = Err(error),
                Ok(()) => {}
            }
            self.store.release(slice::from_ref(claim)).await?;
        }
        outcome
    }

    async fn put_back(&self, claim: &Claim) -> Result<(), StoreError> {
        let Work::Retry(id) = &claim.work else { return Ok(()) };
        let found = self.store.outgoing(id).await?;
        let found = found.ok_or_else(|| StoreError::corrupt(id.as_str().as_bytes(), "its record is missing"))?;
        let Some(due) = found.due() else { return Ok(()) };
        let endpoint = due.delivery.webhook_id.clone();
        let change = Change { under: vec![claim.clone()], ..Change::of(Write::DeliveryChanged(Box::new(due))) };
        match self.store.commit(change).await {
            Ok(_) => {
                self.dispatcher.start_lane(&endpoint).await;
                Ok(())
            }
            // Another server has claimed it and returns it.
            Err(CommitError::Conflict(_)) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}
