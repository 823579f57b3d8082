//! The oldest pending deliveries of an endpoint, read from keys alone.

use std::collections::HashSet;

use payments_core::{DeliveryId, WebhookId};

use super::{codec::Records, keys};
use crate::store::{OutboxHead, StoreError};

/// The oldest deliveries of an endpoint's outbox.
pub(super) fn head(records: &impl Records, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead, StoreError> {
    // Deliveries become durable and end while their keys are read. A delivery that only the second reading has may follow
    // one that the second reading passed too early. So the head ends before it, and the next reading takes the rest.
    loop {
        let before: HashSet<DeliveryId> = names(records, endpoint, at_most)?.into_iter().collect();
        let mut ids = names(records, endpoint, at_most)?;
        let found = ids.len();
        ids.truncate(ids.iter().take_while(|id| before.contains(id)).count());
        let is_all = ids.len() == found && found < at_most;
        if is_all || !ids.is_empty() {
            return Ok(OutboxHead { ids, is_all });
        }
    }
}

/// The first `at_most` deliveries of an outbox. A key without a valid name does not count.
fn names(records: &impl Records, endpoint: &WebhookId, at_most: usize) -> Result<Vec<DeliveryId>, StoreError> {
    let prefix = keys::outbox_of(endpoint);
    let named =
        records.prefix(&prefix).filter_map(|entry| entry.map(|(key, _)| keys::id_after(&prefix, &key)).transpose());
    Ok(named.take(at_most).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use journaled_tree::{Options, TreeError};

    use super::{super::layout::Layout, *};

    fn delivery(number: usize) -> DeliveryId {
        format!("del_{number:05}").parse().unwrap()
    }

    #[test]
    fn an_outbox_whose_deliveries_end_while_it_is_read_is_all_named_only_when_nothing_else_is_left() {
        const AT_MOST: usize = 8;
        const ENDED: usize = 1_000;
        let directory = tempfile::tempdir().unwrap();
        let (database, closing) = Options::new(directory.path(), Layout).open().unwrap();
        let endpoint = "wh_1".parse::<WebhookId>().unwrap();
        let key = |number| keys::outbox(&endpoint, &delivery(number));
        let all: Vec<_> = (0..ENDED + 2 * AT_MOST).map(key).collect();
        let added = database.commit_blocking(|view| {
            all.into_iter().for_each(|key| view.put(key, []));
            Ok::<_, TreeError>(())
        });
        added.unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for ended in (0..ENDED).map(key) {
                    let end = database.commit_blocking(|view| {
                        view.remove(ended);
                        Ok::<_, TreeError>(())
                    });
                    end.unwrap();
                }
                is_over.store(true, Ordering::SeqCst);
            });
            while !is_over.load(Ordering::SeqCst) {
                let head = head(&database, &endpoint, AT_MOST).unwrap();
                assert!(!head.is_all, "{} are named and at least {} are pending", head.ids.len(), 2 * AT_MOST);
            }
        });
        let rest = head(&database, &endpoint, 2 * AT_MOST + 1).unwrap();
        assert_eq!(rest, OutboxHead { ids: (ENDED..ENDED + 2 * AT_MOST).map(delivery).collect(), is_all: true });
        drop(database);
        closing.wait();
    }
}
