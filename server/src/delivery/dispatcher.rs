//! The dispatcher: runs the lanes of the endpoints whose outboxes are not empty.
//!
//! Each endpoint has its own [lane](super::lane), so a slow or dead endpoint delays no other. A server claims a lane before
//! it works on it, and polls for unclaimed lanes. An attempt is one request of at most 8 seconds (API specification,
//! "Delivery"). A delivery in flight at a crash is still in the outbox and is sent again. A delivery that waits for its next
//! attempt is not in the outbox; [`DueRetries`](super::DueRetries) returns it.

use std::{pin::pin, slice, sync::Arc, time::Duration};

use payments_core::WebhookId;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Sender,
    attempt::Attempts,
    lane::Lane,
    lanes::{LaneEntry, Lanes},
};
use crate::{
    ambient::Ambient,
    metrics::Deliveries,
    process::poll::poll,
    store::{Claim, LEASE_SECONDS, Lease, Queue, Store, Work},
};

/// How often the dispatcher polls for unclaimed lanes. A new delivery of this process starts its lane at once.
const POLL: Duration = Duration::from_secs(1);
const LANES_PER_POLL: usize = 1024;

/// Calls the endpoints whose outboxes are not empty.
pub struct Dispatcher {
    store: Arc<Store>,
    ambient: Arc<dyn Ambient>,
    attempts: Arc<Attempts>,
    lanes: Arc<Lanes>,
    /// One task for each lane.
    tasks: TaskTracker,
    /// Cancelled when the server shuts down: no further request may start.
    closing: CancellationToken,
}

impl Dispatcher {
    /// A dispatcher that has at most `permits` requests in flight.
    pub fn new(
        store: Arc<Store>,
        ambient: Arc<dyn Ambient>,
        sender: Arc<Sender>,
        metrics: Deliveries,
        permits: usize,
    ) -> Arc<Self> {
        let (lanes, tasks, closing) = (Arc::default(), TaskTracker::new(), CancellationToken::new());
        let attempts = Attempts::new(Arc::clone(&store), sender, metrics, permits, closing.clone());
        Arc::new(Self { store, ambient, attempts, lanes, tasks, closing })
    }

    /// Polls for unclaimed lanes with pending deliveries and runs them. Never returns.
    pub async fn run(self: Arc<Self>) {
        poll(POLL, || async {
            match self.store.claim(Queue::Lanes, &self.lease(), LANES_PER_POLL).await {
                Ok(claims) => {
                    for claim in claims {
                        self.start_claimed(claim).await;
                    }
                }
                Err(error) => tracing::error!(%error, "cannot read the outbox; retrying"),
            }
        })
        .await;
    }

    /// Starts an endpoint's lane for a new delivery, or notifies the running one.
    pub(super) async fn start_lane(self: &Arc<Self>, endpoint: &WebhookId) {
        let Some(entry) = self.lanes.notify(endpoint) else { return };
        // If the claim fails, the poll finds the lane later.
        if let Some(claim) = self.claim(endpoint).await {
            self.tasks.spawn(Arc::clone(self).run_lane(entry, claim));
        }
    }

    async fn start_claimed(self: &Arc<Self>, claim: Claim) {
        let Work::Lane(endpoint) = &claim.work else { return };
        match self.lanes.notify(endpoint) {
            Some(entry) => drop(self.tasks.spawn(Arc::clone(self).run_lane(entry, claim))),
            // The running lane has lost its claim and stops soon.
            None => self.release(&claim).await,
        }
    }

    /// Runs a lane until its outbox is empty, the server shuts down, or another server has claimed the lane.
    async fn run_lane(self: Arc<Self>, mut entry: LaneEntry, mut claim: Claim) {
        let stopping = self.closing.child_token();
        // The lane is dropped before the entry, even by a panic. So this lane has no request in flight when another one can
        // start.
        let mut lane = Lane::new(Arc::clone(&self.attempts), entry.endpoint().clone(), stopping.clone());
        loop {
            {
                let mut run = pin!(lane.run(&claim, &entry.notify));
                tokio::select! {
                    biased;
                    () = &mut run => {}
                    () = self.store.renew_until_lost(&claim, || self.lease()) => {
                        stopping.cancel();
                        run.await;
                    }
                }
            }
            // Release the claim first: once this entry is gone, a new lane must find the endpoint unclaimed.
            self.release(&claim).await;
            if stopping.is_cancelled() {
                return;
            }
            let Some(notified) = entry.remove_unless_notified() else { return };
            let Some(next) = self.claim(notified.endpoint()).await else { return };
            (entry, claim) = (notified, next);
        }
    }

    /// Claims an endpoint's lane if it has pending deliveries and nobody else has claimed it.
    async fn claim(&self, endpoint: &WebhookId) -> Option<Claim> {
        let claim = self.store.claim_lane(endpoint, &self.lease()).await;
        claim.inspect_err(|error| tracing::error!(%error, %endpoint, "cannot read the outbox")).ok().flatten()
    }

    /// Releases a claim. If that fails, the claim ends with its lease.
    async fn release(&self, claim: &Claim) {
        if let Err(error) = self.store.release(slice::from_ref(claim)).await {
            tracing::warn!(%error, "cannot release a lane; it stays claimed until its lease expires");
        }
    }

    fn lease(&self) -> Lease {
        Lease::new(self.ambient.now(), LEASE_SECONDS)
    }

    /// Starts no further request and waits for those in flight. Unfinished deliveries stay in the outbox.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
