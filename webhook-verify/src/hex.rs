//! Encodes a digest as hex and compares it, without a branch or a table lookup that depends on the digest.
//!
//! Encoding the expected digest once is cheaper than decoding each signature of the header.

use subtle::{Choice, ConstantTimeEq};

/// A signature from the header: 64 bytes that should be hex digits.
pub(crate) type GivenDigest = [u8; 64];

/// An expected digest in hex, lower case.
pub(crate) struct HexDigest([u8; 64]);

impl HexDigest {
    #[inline]
    pub(crate) fn new(digest: &[u8; 32]) -> Self {
        let mut digits = [0; 64];
        let (pairs, _) = digits.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(digest) {
            *pair = [digit(byte >> 4), digit(byte & 0x0f)];
        }
        Self(digits)
    }

    pub(crate) const fn digits(&self) -> &[u8; 64] {
        &self.0
    }

    /// Whether a text is this digest in hex of either case. Compares all digits.
    #[inline]
    pub(crate) fn ct_eq(&self, given: &GivenDigest) -> Choice {
        let (expected, _) = self.0.as_chunks::<8>();
        let (given, _) = given.as_chunks::<8>();
        let mut differing = 0;
        for (expected, given) in expected.iter().zip(given) {
            let expected = u64::from_ne_bytes(*expected);
            // Only letters have the bit 0x40; 0x20 is their case, which is ignored.
            let case = (expected & 0x4040_4040_4040_4040) >> 1;
            differing |= (expected ^ u64::from_ne_bytes(*given)) & !case;
        }
        differing.ct_eq(&0)
    }
}

#[inline]
const fn digit(nibble: u8) -> u8 {
    // 0xff for a letter, 0 for a digit: 9 minus the nibble underflows only for a letter.
    let letter = (9_u8.wrapping_sub(nibble) >> 7).wrapping_neg();
    b'0' + nibble + (letter & (b'a' - b'0' - 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_comparison_accepts_either_case_and_rejects_every_other_byte() {
        for nibble in 0..16_u8 {
            let hex = HexDigest::new(&[nibble << 4 | nibble; 32]);
            let digit = char::from_digit(nibble.into(), 16).unwrap();
            assert!(hex.digits().iter().all(|byte| char::from(*byte) == digit));
            for place in [0, 1, 31, 63] {
                for byte in 0..=u8::MAX {
                    let mut given = *hex.digits();
                    given[place] = byte;
                    let equal = char::from(byte).eq_ignore_ascii_case(&digit);
                    assert_eq!(bool::from(hex.ct_eq(&given)), equal, "{digit} {byte:#x} at {place}");
                }
            }
        }
    }
}
