//! The writes of a batch, and the engine's own three keys.

use std::collections::BTreeMap;

/// The writes of a batch: each key's new value, or `None` if the key is removed.
pub(crate) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The key of the layout's version, as decimal text. Every tree that is not empty has it. The engine writes it when it
/// creates a database; a conversion from an older layout writes it last.
pub const FORMAT: &[u8] = b"meta/format";
/// The key of the number of the last journal entry in the tree.
pub const APPLIED: &[u8] = b"meta/applied";
/// The key of the time of the last commit, in milliseconds since 1970. It is in every journal entry of a commit.
pub const COMMITTED_AT: &[u8] = b"meta/committed-at";

pub(crate) fn set_number(writes: &mut Writes, key: &[u8], number: impl std::fmt::Display) {
    writes.insert(key.to_vec(), Some(number.to_string().into_bytes()));
}

pub(crate) fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The time at which an entry says that it was committed.
pub(crate) fn committed_at(writes: &Writes) -> Option<i64> {
    number(writes.get(COMMITTED_AT)?.as_deref()?)
}

/// The total size of a batch's keys and values.
pub(crate) fn bytes_of(writes: &Writes) -> usize {
    writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_batch_counts_its_keys_and_values() {
        let writes = Writes::from([(b"ab".to_vec(), Some(b"cde".to_vec())), (b"f".to_vec(), None)]);
        assert_eq!(bytes_of(&writes), 6);
        assert_eq!(bytes_of(&Writes::new()), 0);
    }
}
