//! The signature header's grammar: `t=<unix-seconds>,v1=<hex hmac>`.
//!
//! Parts are split at commas and the white space around them is dropped. They may stand in any order; what is not
//! known is passed over, so that a later scheme can be announced beside this one. Several `v1` are alternatives (a
//! secret under rotation signs twice). Exactly one `t` must be there, and its text is signed as it stands, leading
//! zeros included.

use crate::{HeaderFault, hex::GivenDigest};

/// The longest header that is read, in bytes; a longer one is refused as malformed.
pub const MAX_HEADER_BYTES: usize = 4096;

/// How many `v1` signatures of a header are looked at; those after are passed over.
pub const MAX_SIGNATURES: usize = 16;

/// What a well-formed header says.
pub(crate) struct SignatureParts<'h> {
    /// The digits after `t=`, as they stand: this text is what was signed.
    pub(crate) timestamp_text: &'h [u8],
    /// Their value, in seconds since 1970.
    pub(crate) timestamp: u64,
    digests: [&'h GivenDigest; MAX_SIGNATURES],
    count: usize,
}

impl<'h> SignatureParts<'h> {
    #[inline]
    pub(crate) fn parse(header: &'h [u8]) -> Result<Self, HeaderFault> {
        if header.is_empty() {
            return Err(HeaderFault::Missing);
        }
        if header.len() > MAX_HEADER_BYTES {
            return Err(HeaderFault::TooLong);
        }
        let mut timestamp = None;
        let mut signatures_named = 0;
        let mut digests = [&[0; 64]; MAX_SIGNATURES];
        let mut count = 0;
        let mut note = |digest: Option<&'h GivenDigest>| {
            // One of another length still says that the request was meant to be signed: it matches nothing.
            if signatures_named < MAX_SIGNATURES
                && let Some(digest) = digest
            {
                digests[count] = digest;
                count += 1;
            }
            signatures_named += 1;
        };
        let mut rest = Some(header);
        while let Some(text) = rest {
            if let Some((digest, after)) = plain_signature(text) {
                note(Some(digest));
                rest = after;
                continue;
            }
            let (part, after) = split_at_comma(text);
            rest = after;
            let part = part.trim_ascii();
            if let Some(text) = part.strip_prefix(b"t=") {
                if timestamp.is_some() {
                    return Err(HeaderFault::SeveralTimestamps);
                }
                timestamp = Some((text, plain_decimal(text).ok_or(HeaderFault::BadTimestamp)?));
            } else if let Some(hex) = part.strip_prefix(b"v1=") {
                note(hex.try_into().ok());
            }
        }
        let (timestamp_text, timestamp) = timestamp.ok_or(HeaderFault::NoTimestamp)?;
        if signatures_named == 0 {
            return Err(HeaderFault::NoSignature);
        }
        Ok(Self { timestamp_text, timestamp, digests, count })
    }

    /// The signatures of the right length, any of which may be the right one.
    pub(crate) fn digests(&self) -> &[&'h GivenDigest] {
        &self.digests[..self.count]
    }
}

/// The usual part, `v1=` and 64 bytes up to a comma or the end, without looking for the comma byte by byte; and what
/// follows. Any other form goes the long way.
#[inline]
fn plain_signature(text: &[u8]) -> Option<(&GivenDigest, Option<&[u8]>)> {
    let (digest, after) = text.strip_prefix(b"v1=")?.split_first_chunk()?;
    let rest = match after {
        [] => None,
        [b',', rest @ ..] => Some(rest),
        _ => return None,
    };
    // A comma within means that these are several short parts, and white space at the end belongs to none. Neither they
    // nor anything below them is a hex digit.
    let is_one_part = digest.iter().fold(true, |one, byte| one & (*byte > b','));
    is_one_part.then_some((digest, rest))
}

/// The text up to the first comma, and what follows the comma.
fn split_at_comma(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b',') {
        Some(comma) => (&text[..comma], Some(&text[comma + 1..])),
        None => (text, None),
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
