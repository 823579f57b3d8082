//! What the engine must know about the keys.

use super::keys;

/// The format number of this layout. A store of another one is not opened.
pub(super) const FORMAT: u32 = 1;

/// Compression and apply order, by key.
pub(super) struct Layout;

impl journaled_tree::Layout for Layout {
    fn format(&self) -> u32 {
        FORMAT
    }

    /// Compresses long JSON.
    fn compresses(&self, key: &[u8]) -> bool {
        [keys::SESSIONS, keys::DELIVERIES, keys::RESPONSES].iter().any(|prefix| key.starts_with(prefix))
    }

    /// A reader may see a part of a batch. So a record is written before the entry that names it, and removed after it.
    fn apply_order(&self, key: &[u8], is_put: bool) -> u8 {
        match (names_others(key), is_put) {
            (true, false) => 0,
            (false, true) => 1,
            // A status bitmap refers to positions of a list, and a count to entries.
            (true, true) if key.starts_with(keys::LISTS) => 2,
            (true, true) if !key.starts_with(keys::COUNTS) => 3,
            (true, true) => 4,
            (false, false) => 5,
        }
    }
}

/// Whether a record names or counts others.
fn names_others(key: &[u8]) -> bool {
    let indexes: [&[u8]; 10] = [
        keys::COUNTS,
        keys::BITMAPS,
        keys::OUTBOX,
        keys::RETRIES,
        keys::PENDING_EVENTS,
        keys::LISTS,
        keys::KEYS_USED,
        keys::EVENT_PLACES,
        keys::FOUND,
        keys::DELIVERIES_OF_PAYMENTS,
    ];
    indexes.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use journaled_tree::Layout as _;

    use super::*;

    #[test]
    fn only_records_with_long_json_are_compressed() {
        for (prefix, is_compressed) in [
            (keys::SESSIONS, true),
            (keys::DELIVERIES, true),
            (keys::RESPONSES, true),
            (keys::ENDPOINTS, false),
            (keys::COUNTS, false),
        ] {
            let key = [prefix, b"1"].concat();
            assert_eq!(Layout.compresses(&key), is_compressed, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn a_record_is_there_before_what_names_it_and_goes_after_it() {
        let order = |prefix: &[u8], is_put| Layout.apply_order(prefix, is_put);
        assert!(order(keys::OUTBOX, false) < order(keys::DELIVERIES, true), "a place is free before it is taken again");
        for names in [keys::OUTBOX, keys::RETRIES, keys::PENDING_EVENTS, keys::KEYS_USED, keys::FOUND, keys::LISTS] {
            assert!(order(keys::SESSIONS, true) < order(names, true), "{}", names.escape_ascii());
            assert!(order(names, false) < order(keys::SESSIONS, false), "{}", names.escape_ascii());
        }
        assert!(order(keys::LISTS, true) < order(keys::BITMAPS, true));
        assert!(order(keys::BITMAPS, true) < order(keys::COUNTS, true));
    }
}
