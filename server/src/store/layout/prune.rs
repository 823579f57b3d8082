//! Drops or redacts old records.

use payments_core::{DeliveryId, Timestamp};

use super::{
    LayoutStore, delivery,
    entry::owners_at,
    keys::{BODIES, CLAIMS, RESPONSES},
    reads::{Reads, Scan},
};
use crate::store::{CommitError, Prunable, Result, StoreError, bytes::Bytes};

impl<B: Bytes> LayoutStore<B> {
    /// Drops at most `at_most` records that are older than a time, the oldest first. Returns how many it handled.
    pub(super) async fn prune_index(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        let index = match what {
            Prunable::StoredResponses => RESPONSES,
            Prunable::KeyClaims => CLAIMS,
            Prunable::DeliveryBodies => BODIES,
        };
        for cell in self.bytes.cells() {
            let reads = Reads::new(&self.bytes, cell);
            let mut owners = Vec::new();
            let mut scan = Scan::new(reads, index.before(before));
            while owners.len() < at_most
                && let Some((key, value)) = scan.next().await?
            {
                owners.extend(owners_at(index, &key, &value));
            }
            owners.truncate(at_most);
            if owners.is_empty() {
                continue;
            }
            let handled = owners.len();
            if what == Prunable::DeliveryBodies {
                let ids =
                    owners.iter().filter_map(|id| str::from_utf8(id).ok()?.parse().ok()).collect::<Vec<DeliveryId>>();
                let whole = delivery::read(reads, &ids).await?;
                let last = ids.into_iter().max();
                self.decide(cell, move |draft| {
                    whole.iter().try_for_each(|it| draft.redact(it, before))?;
                    last.iter().try_for_each(|last| draft.redacted_up_to(last))
                })
                .await
            } else {
                self.decide(cell, move |draft| owners.iter().try_for_each(|at| draft.drop_if_older(at, before))).await
            }
            .map_err(store_error)?;
            return Ok(handled);
        }
        Ok(0)
    }
}

/// The error of a change that has no condition.
fn store_error(error: CommitError) -> StoreError {
    match error {
        CommitError::Store(error) => error,
        CommitError::Conflict(conflict) => StoreError::unavailable(conflict),
    }
}
