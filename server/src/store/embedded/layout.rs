//! What the engine knows about our keys.

use super::keys;

/// The version of the layout of `keys`. A store of a later one is not opened.
pub(super) const FORMAT: u32 = 6;

/// The layout of `keys`.
pub(super) struct Layout;

impl journaled_tree::Layout for Layout {
    fn format(&self) -> u32 {
        FORMAT
    }

    /// Long JSON.
    fn compresses(&self, key: &[u8]) -> bool {
        [keys::SESSIONS, keys::DELIVERIES, keys::RESPONSES].iter().any(|prefix| key.starts_with(prefix))
    }

    /// A reader may see a part of a batch; so an entry that names a record is there only while the record is.
    fn apply_order(&self, key: &[u8], is_put: bool) -> u8 {
        match (names_others(key), is_put) {
            (true, false) => 0,
            (false, true) => 1,
            // Bits of a status are on places of a list, and a count is of what is there.
            (true, true) if key.starts_with(keys::LISTS) => 2,
            (true, true) if !key.starts_with(keys::COUNTS) => 3,
            (true, true) => 4,
            (false, false) => 5,
        }
    }
}

/// Whether the record under a key names others, or counts them.
fn names_others(key: &[u8]) -> bool {
    [keys::COUNTS, keys::MARKS, keys::OUTBOX, keys::UNTOLD, keys::LISTS, keys::KEYS_USED]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}
