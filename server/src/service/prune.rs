//! Prunes idempotency records and the audit log, and redacts old deliveries.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;

use super::Service;
use crate::{domain::StoredResponse, process::poll::poll, store::Prunable};

const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum records per change, so that payments do not wait long behind it.
const BATCH_SIZE: usize = 256;
/// Maximum deliveries per change. Deliveries are longer.
const DELIVERY_BATCH_SIZE: usize = 32;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl Service {
    /// Prunes stored responses after 24 hours and key claims after their lease, and redacts deliveries after
    /// `delivery_body_days`, and drops the audit log's entries after `audit_days`. Runs forever.
    pub async fn prune(self: Arc<Self>) {
        poll(POLL_INTERVAL, || async {
            let now = self.ambient.now();
            self.prune_older(Prunable::StoredResponses, StoredResponse::stale_before(now), BATCH_SIZE).await;
            self.prune_older(Prunable::KeyClaims, now, BATCH_SIZE).await;
            let before =
                |days: Option<u16>| Timestamp::from_millis(now.as_millis() - i64::from(days?) * DAY_MILLIS).ok();
            if let Some(before) = before(self.settings.delivery_body_days) {
                self.prune_older(Prunable::DeliveryBodies, before, DELIVERY_BATCH_SIZE).await;
            }
            if let Some(before) = before(self.settings.audit_days) {
                self.prune_older(Prunable::Audit, before, BATCH_SIZE).await;
            }
        })
        .await;
    }

    /// Prunes all records older than `before`, in batches.
    async fn prune_older(&self, what: Prunable, before: Timestamp, batch_size: usize) {
        loop {
            match self.store.prune(what, before, batch_size).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, ?what, "could not prune old records; trying again"),
            }
        }
    }
}
