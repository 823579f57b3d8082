//! Drops or redacts old records.

use payments_core::{DeliveryId, Timestamp};

use super::{
    Store, delivery,
    entry::{Entry, owners_at},
    keys::{AUDIT, BODIES, CLAIMS, RESPONSES},
    reads::Scan,
    store_error,
};
use crate::{Prunable, Result};

impl Store {
    /// Drops at most `at_most` records that are older than a time, oldest first. Returns how many it handled.
    pub async fn prune(&self, what: Prunable, before: Timestamp, at_most: usize) -> Result<usize> {
        if what == Prunable::KeyClaims {
            self.drop_ended_leases(before, at_most).await?;
        }
        let index = match what {
            Prunable::StoredResponses => RESPONSES,
            Prunable::KeyClaims => CLAIMS,
            Prunable::DeliveryBodies => BODIES,
            Prunable::Audit => AUDIT,
        };
        for cell in self.bytes.cells()? {
            let reads = self.in_cell(cell);
            let mut entries = Vec::new();
            let mut scan = Scan::new(reads, index.before(before));
            while entries.len() < at_most
                && let Some((key, value)) = scan.next().await?
            {
                let Some(time) = index.time_of(&key) else { continue };
                entries.extend(owners_at(index, &key, &value).into_iter().map(|owner| (time, owner)));
            }
            entries.truncate(at_most);
            if entries.is_empty() {
                continue;
            }
            let handled = entries.len();
            let ids: Vec<DeliveryId> = match what {
                Prunable::DeliveryBodies => {
                    entries.iter().filter_map(|(_, id)| str::from_utf8(id).ok()?.parse().ok()).collect()
                }
                _ => Vec::new(),
            };
            let whole = delivery::read(reads, &ids).await?;
            self.decide(cell, true, move |draft| {
                whole.iter().try_for_each(|it| draft.redact(it, Some(before)).map(drop))?;
                for (time, owner) in &entries {
                    if index == AUDIT {
                        draft.drop_audit(owner)?;
                    } else if index != BODIES {
                        draft.drop_if_older(owner, before)?;
                    }
                    // Remove an entry that follows from no record too. Otherwise it would be found again and again.
                    draft.take(Entry::At { index, time: *time, owner: owner.clone() })?;
                }
                Ok(())
            })
            .await
            .map_err(store_error)?;
            return Ok(handled);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::entry::key_at, *};
    use crate::layout::MemoryStore;

    #[tokio::test]
    async fn an_entry_that_follows_from_no_record_is_pruned_once() {
        let store = MemoryStore::default();
        let (made, now) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH.plus_seconds(60));
        for (what, index, owner) in [
            (Prunable::DeliveryBodies, BODIES, &b"del_1"[..]),
            (Prunable::StoredResponses, RESPONSES, b"000/response/surprise"),
            (Prunable::KeyClaims, CLAIMS, b"000/claim/surprise"),
        ] {
            store.bytes.set(&key_at(index, made, owner, false), Vec::new());
            assert_eq!(store.prune(what, now, 9).await.unwrap(), 1, "{what:?}");
            assert_eq!(store.prune(what, now, 9).await.unwrap(), 0, "{what:?}");
        }
    }
}
