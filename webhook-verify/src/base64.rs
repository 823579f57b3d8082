//! Base64 (RFC 4648, section 4, with padding), without a branch or a table lookup that depends on a secret.

use subtle::{Choice, ConstantTimeEq};

/// A signature from a header: 44 bytes that should be base64.
pub(crate) type GivenBase64 = [u8; 44];

/// An expected digest in base64.
pub(crate) struct Base64Digest(GivenBase64);

impl Base64Digest {
    #[inline]
    pub(crate) fn new(digest: &[u8; 32]) -> Self {
        // 33 bytes are 44 sextets, of which the last one is padding.
        let mut padded = [0; 33];
        padded[..32].copy_from_slice(digest);
        let mut text = [0; 44];
        for (four, three) in text.as_chunks_mut::<4>().0.iter_mut().zip(padded.as_chunks::<3>().0) {
            let [a, b, c] = *three;
            *four = [a >> 2, a << 4 | b >> 4, b << 2 | c >> 6, c];
        }
        // A loop of its own, so that it works on many letters at once.
        text.iter_mut().for_each(|sextet| *sextet = letter(*sextet & 0x3f));
        text[43] = b'=';
        Self(text)
    }

    pub(crate) const fn text(&self) -> &GivenBase64 {
        &self.0
    }

    /// Whether a text is this digest. Compares all letters.
    #[inline]
    pub(crate) fn ct_eq(&self, given: &GivenBase64) -> Choice {
        let pairs = self.0.as_chunks::<4>().0.iter().zip(given.as_chunks::<4>().0);
        let differing =
            pairs.fold(0, |any, (expected, given)| any | (u32::from_ne_bytes(*expected) ^ u32::from_ne_bytes(*given)));
        differing.ct_eq(&0)
    }
}

/// Decodes a text of at most 88 letters. Returns how many bytes of `bytes` it fills, or `None` if it is not base64.
pub(crate) fn decode(text: &[u8], bytes: &mut [u8; 66]) -> Option<usize> {
    let (quads, rest) = text.as_chunks::<4>();
    if !rest.is_empty() || quads.is_empty() || quads.len() > 22 {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let (mut invalid, mut last) = (0, 0);
    for (nth, (quad, three)) in quads.iter().zip(bytes.as_chunks_mut::<3>().0).enumerate() {
        let mut bits = 0_u32;
        for (place, byte) in quad.iter().enumerate() {
            let is_padding = nth * 4 + place >= text.len() - padding;
            let sextet = if is_padding { 0 } else { sextet(*byte) };
            invalid |= sextet;
            bits = bits << 6 | u32::from(sextet.cast_unsigned() & 0x3f);
        }
        let [_, a, b, c] = bits.to_be_bytes();
        *three = [a, b, c];
        last = if padding == 2 { b | c } else { c };
    }
    // Negative: not a letter. The bits that padding cuts off must be zero.
    let is_whole = padding == 0 || last == 0;
    (invalid >= 0 && is_whole).then_some(quads.len() * 3 - padding)
}

/// All ones if a value is greater than a limit, otherwise zero.
#[inline]
const fn if_above(value: i16, limit: i16) -> i16 {
    (limit - value) >> 8
}

/// The letter of a value below 64.
#[inline]
const fn letter(sextet: u8) -> u8 {
    // All ones if the value is greater than the limit, otherwise zero.
    const fn above(value: u8, limit: u8) -> u8 {
        (limit.wrapping_sub(value) >> 7).wrapping_neg()
    }
    let letter = sextet + b'A' + (above(sextet, 25) & 6);
    letter - (above(sextet, 51) & 75) - (above(sextet, 61) & 15) + (above(sextet, 62) & 3)
}

/// The value of a letter, or -1.
const fn sextet(letter: u8) -> i16 {
    let value = letter as i16;
    let ranges = [(b'A', b'Z', -64), (b'a', b'z', -70), (b'0', b'9', 5), (b'+', b'+', 20), (b'/', b'/', 17)];
    let (mut sextet, mut nth) = (-1, 0);
    while nth < ranges.len() {
        let (first, last, shift) = ranges[nth];
        let is_in = if_above(value, first as i16 - 1) & !if_above(value, last as i16);
        sextet += is_in & (value + shift);
        nth += 1;
    }
    sextet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_a_letter_with_its_value_or_none() {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (value, byte) in (0..).zip(alphabet) {
            assert_eq!((letter(value), sextet(*byte)), (*byte, value.into()));
        }
        let others = (0..=u8::MAX).filter(|byte| !alphabet.contains(byte));
        assert!(others.into_iter().all(|byte| sextet(byte) == -1));
    }

    #[test]
    fn only_whole_base64_is_decoded() {
        let mut bytes = [0; 66];
        for (text, expected) in [("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")] {
            let length = decode(text.as_bytes(), &mut bytes).unwrap();
            assert_eq!(&bytes[..length], expected.as_bytes(), "{text}");
        }
        for text in ["", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zm=v", "Zm9v\n", "Zm9-", "=m9v"] {
            assert_eq!(decode(text.as_bytes(), &mut bytes), None, "{text:?}");
        }
        assert_eq!((decode(&[b'A'; 88], &mut bytes), decode(&[b'A'; 92], &mut bytes)), (Some(66), None));
    }

    #[test]
    fn a_digest_is_equal_to_its_own_text_only() {
        let digest = Base64Digest::new(&core::array::from_fn(|nth| u8::try_from(nth * 8).unwrap()));
        assert_eq!(digest.text(), b"AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=");
        assert!(bool::from(digest.ct_eq(digest.text())));
        for place in 0..44 {
            let mut given = *digest.text();
            given[place] ^= 1;
            assert!(!bool::from(digest.ct_eq(&given)), "{place}");
        }
    }
}
