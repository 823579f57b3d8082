//! A digest as hex digits, made and compared without a branch or a table that depends on it.
//!
//! The header gives signatures in hex. Decoding each of them would cost more than writing the expected digest in hex
//! once and comparing texts, so that is what is done.

use subtle::{Choice, ConstantTimeEq};

/// A signature as the header gives it: 64 bytes that should be hex digits.
pub(crate) type GivenDigest = [u8; 64];

/// An expected digest in hex.
pub(crate) struct HexDigest {
    /// Lower case.
    digits: [u8; 64],
    /// The bits of each digit that count: all, but for a letter the one that tells its case.
    significant: [u8; 64],
}

impl HexDigest {
    #[inline]
    pub(crate) fn new(digest: &[u8; 32]) -> Self {
        let mut hex = Self { digits: [0; 64], significant: [0; 64] };
        let (digits, _) = hex.digits.as_chunks_mut::<2>();
        let (significant, _) = hex.significant.as_chunks_mut::<2>();
        for ((digits, significant), byte) in digits.iter_mut().zip(significant).zip(digest) {
            for (place, nibble) in [byte >> 4, byte & 0x0f].into_iter().enumerate() {
                // 0xff for a letter, 0 for a digit: 9 less the nibble borrows from above only for a letter.
                let letter = (9_u8.wrapping_sub(nibble) >> 7).wrapping_neg();
                digits[place] = b'0' + nibble + (letter & (b'a' - b'0' - 10));
                significant[place] = !(letter & 0x20);
            }
        }
        hex
    }

    pub(crate) const fn digits(&self) -> &[u8; 64] {
        &self.digits
    }

    /// Whether a text is this digest in hex of either case. Every digit is looked at, whatever the others are.
    #[inline]
    pub(crate) fn ct_eq(&self, given: &GivenDigest) -> Choice {
        let (digits, _) = self.digits.as_chunks::<8>();
        let (significant, _) = self.significant.as_chunks::<8>();
        let (given, _) = given.as_chunks::<8>();
        let mut differing = 0;
        for ((digits, significant), given) in digits.iter().zip(significant).zip(given) {
            let difference = u64::from_ne_bytes(*digits) ^ u64::from_ne_bytes(*given);
            differing |= difference & u64::from_ne_bytes(*significant);
        }
        differing.ct_eq(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_digit_equals_itself_in_either_case_and_no_other_byte() {
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
