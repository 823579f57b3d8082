//! Compresses the long values of the tree.
//!
//! The tree writes a value up to three times until its leaf has been split, and a start after a crash reads everything
//! written since the last sync. LZ4 halves JSON in less time than writing that half takes. The journal does not compress
//! values: its closed files are compressed as a whole, to much less.

use lz4_flex::block::{compress_prepend_size, decompress as lz4_decompress, uncompressed_size};

/// The first byte of a compressed value. A value with another first byte is not compressed.
const COMPRESSED: u8 = 1;
/// LZ4 makes a value at most 255 times smaller. A length beyond that is damage.
const MAX_RATIO: usize = 255;

/// A shorter value is not compressed unless its first byte requires it: that would save little.
const SHORT: usize = 512;

pub(crate) fn compress(value: &[u8]) -> Vec<u8> {
    if value.len() < SHORT && value.first() != Some(&COMPRESSED) {
        return value.to_vec();
    }
    [&[COMPRESSED], &*compress_prepend_size(value)].concat()
}

/// Returns the original value. An error says what is wrong with the stored one.
pub(crate) fn decompress(stored: &[u8]) -> Result<Vec<u8>, String> {
    let Some(compressed) = stored.strip_prefix(&[COMPRESSED]) else { return Ok(stored.to_vec()) };
    let (length, rest) = uncompressed_size(compressed).map_err(|error| error.to_string())?;
    if length / MAX_RATIO > rest.len() {
        return Err(format!("{} bytes cannot hold {length}", rest.len()));
    }
    lz4_decompress(rest, length).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_value_is_read_back_unchanged(
            text in "[ -~]{0,400}",
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            zeros in 0_usize..100_000,
        ) {
            for value in [text.into_bytes(), [&[COMPRESSED], &*bytes].concat(), bytes, vec![b'0'; zeros]] {
                let stored = compress(&value);
                let again = decompress(&stored).unwrap();
                prop_assert_eq!(&*again, &*value);
                prop_assert_eq!(compress(&again), compress(&value));
            }
        }

        #[test]
        fn a_damaged_value_is_an_error_or_has_a_bounded_length(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            bytes.insert(0, COMPRESSED);
            if let Ok(value) = decompress(&bytes) {
                prop_assert!(value.len() <= bytes.len() * (MAX_RATIO + 1));
            }
        }
    }
}
