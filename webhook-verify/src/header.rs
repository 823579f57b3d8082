//! The signature header's grammar: `t=<unix-seconds>,v1=<hex hmac>`.
//!
//! Parts are split at commas and the white space around them is dropped. They may stand in any order; what is not
//! known is passed over, so that a later scheme can be announced beside this one. Several `v1` are alternatives (a
//! secret under rotation signs twice). Exactly one `t` must be there, and its text is signed as it stands, leading
//! zeros included.

use crate::HeaderFault;

/// The longest header that is read, in bytes; a longer one is refused as malformed.
pub const MAX_HEADER_BYTES: usize = 4096;

/// How many `v1` signatures of a header are looked at; those after are passed over.
pub const MAX_SIGNATURES: usize = 16;

/// A signature as the header gives it, decoded.
pub(crate) type Digest = [u8; 32];

/// What a well-formed header says.
pub(crate) struct SignatureParts<'h> {
    /// The digits after `t=`, as they stand: this text is what was signed.
    pub(crate) timestamp_text: &'h [u8],
    /// Their value, in seconds since 1970.
    pub(crate) timestamp: u64,
    digests: [Digest; MAX_SIGNATURES],
    count: usize,
}

impl<'h> SignatureParts<'h> {
    pub(crate) fn parse(header: &'h [u8]) -> Result<Self, HeaderFault> {
        if header.is_empty() {
            return Err(HeaderFault::Missing);
        }
        if header.len() > MAX_HEADER_BYTES {
            return Err(HeaderFault::TooLong);
        }
        let mut timestamp = None;
        let mut signatures_named = 0;
        let mut digests = [[0; 32]; MAX_SIGNATURES];
        let mut count = 0;
        for part in header.split(|byte| *byte == b',') {
            let part = part.trim_ascii();
            if let Some(text) = part.strip_prefix(b"t=") {
                if timestamp.is_some() {
                    return Err(HeaderFault::SeveralTimestamps);
                }
                timestamp = Some((text, plain_decimal(text).ok_or(HeaderFault::BadTimestamp)?));
            } else if let Some(hex) = part.strip_prefix(b"v1=") {
                // One that cannot be decoded still says that the request was meant to be signed: it matches nothing.
                if signatures_named < MAX_SIGNATURES
                    && let Some(digest) = digest_from_hex(hex)
                {
                    digests[count] = digest;
                    count += 1;
                }
                signatures_named += 1;
            }
        }
        let (timestamp_text, timestamp) = timestamp.ok_or(HeaderFault::NoTimestamp)?;
        if signatures_named == 0 {
            return Err(HeaderFault::NoSignature);
        }
        Ok(Self { timestamp_text, timestamp, digests, count })
    }

    /// The signatures that could be decoded, any of which may be the right one.
    pub(crate) fn digests(&self) -> &[Digest] {
        &self.digests[..self.count]
    }
}

/// ASCII digits and nothing else, within 64 bits.
fn plain_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Exactly 64 hex digits of either case.
fn digest_from_hex(hex: &[u8]) -> Option<Digest> {
    let (pairs, rest) = hex.as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(digest)
}

/// The value of one hex digit. The digits come from the request, so nothing secret can leak by how long this takes.
const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
