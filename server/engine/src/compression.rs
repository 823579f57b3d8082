//! Compresses the long values of the tree.
//!
//! The tree writes a value three times until its leaf has been split behind it, and a start after a crash reads everything
//! that was written since the last one. LZ4 halves JSON in less time than it takes to write that half. The journal holds
//! values as they are: its closed files are compressed as a whole, to far less.

use lz4_flex::block::{compress_prepend_size, decompress as lz4_decompress, uncompressed_size};

/// The first byte of a compressed value. A value with another first byte is stored as it is.
const COMPRESSED: u8 = 1;
/// LZ4 makes no value smaller than its 255th part; a length beyond that is damage.
const MAX_RATIO: usize = 255;

/// A shorter value is stored as it is, if its first byte allows it: little would be saved.
const SHORT: usize = 512;

pub(crate) fn compress(value: &[u8]) -> Vec<u8> {
    if value.len() < SHORT && value.first() != Some(&COMPRESSED) {
        return value.to_vec();
    }
    [&[COMPRESSED], &*compress_prepend_size(value)].concat()
}

/// Returns the value that was stored; an error says what is wrong with it.
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
        fn any_value_comes_back_as_it_was(
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
        fn damage_is_an_error_or_another_value_of_a_bounded_length(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            bytes.insert(0, COMPRESSED);
            if let Ok(value) = decompress(&bytes) {
                prop_assert!(value.len() <= bytes.len() * (MAX_RATIO + 1));
            }
        }
    }
}
