//! The long records of the tree, squeezed.
//!
//! sled writes a record three times until its leaf has been split behind it, and a start after a crash reads all that was
//! written since the last one. JSON squeezes to about a half, in less time than it takes to write that half. The
//! journal has records as they are: its closed files are compressed as a whole, to far less.

use std::borrow::Cow;

use lz4_flex::block::{DecompressError, compress_prepend_size, decompress, uncompressed_size};

use super::keys;

/// No record of ours is longer; a length beyond is damage.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What the tree holds for a value under a key.
pub(super) fn squeeze<'v>(key: &[u8], value: &'v [u8]) -> Cow<'v, [u8]> {
    // A backup's records are squeezed when they come back.
    if is_json(key) && value.first() == Some(&b'{') {
        Cow::Owned([&[SQUEEZED], &*compress_prepend_size(value)].concat())
    } else {
        Cow::Borrowed(value)
    }
}

/// The value under a key that the tree holds.
pub(super) fn open<'v>(key: &[u8], value: &'v [u8]) -> Result<Cow<'v, [u8]>, DecompressError> {
    match value.strip_prefix(&[SQUEEZED]) {
        Some(squeezed) if is_json(key) => {
            let (bytes, rest) = uncompressed_size(squeezed)?;
            if bytes > MAX_BYTES {
                return Err(DecompressError::OutputTooSmall { expected: bytes, actual: MAX_BYTES });
            }
            decompress(rest, bytes).map(Cow::Owned)
        }
        _ => Ok(Cow::Borrowed(value)),
    }
}

/// What a squeezed value begins with; JSON never does.
const SQUEEZED: u8 = 1;

/// Whether the records under such keys are JSON, and long.
fn is_json(key: &[u8]) -> bool {
    [keys::SESSIONS, keys::DELIVERIES, keys::RESPONSES].iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_squeezed_opens_as_it_was(json in "\\{[ -~]{0,400}\\}", other in prop::collection::vec(any::<u8>(), 0..80)) {
            let value = json.into_bytes();
            let squeezed = squeeze(b"payment/pay_1", &value);
            prop_assert_ne!(&*squeezed, &*value);
            prop_assert_eq!(&squeeze(b"payment/pay_1", &squeezed), &squeezed);
            prop_assert_eq!(&*open(b"payment/pay_1", &squeezed).unwrap(), &*value);
            prop_assert_eq!(&*squeeze(b"marks/a", &other), &*other);
            prop_assert_eq!(&*open(b"marks/a", &other).unwrap(), &*other);
        }

        #[test]
        fn damage_is_an_error_or_another_value_and_never_more(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            bytes.insert(0, SQUEEZED);
            if let Ok(value) = open(b"payment/pay_1", &bytes) {
                prop_assert!(value.len() <= MAX_BYTES);
            }
        }
    }
}
