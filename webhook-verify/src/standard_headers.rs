//! Parses the headers of Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`.

use core::fmt;

use crate::{
    HeaderFault, MAX_HEADER_BYTES, MAX_SIGNATURES,
    base64::{Base64Digest, GivenBase64},
    header::plain_decimal,
    mac::Digest,
};

/// The headers of a webhook by Standard Webhooks. `Debug` omits the signature, which is valid until it is too old.
#[derive(Clone, Copy)]
pub struct StandardHeaders<'h> {
    /// The value of `webhook-id`: the event's id, the same in each of its deliveries.
    pub id: &'h [u8],
    /// The value of `webhook-timestamp`.
    pub timestamp: &'h [u8],
    /// The value of `webhook-signature`: `v1,` and base64, several with spaces between them.
    pub signature: &'h [u8],
}

impl fmt::Debug for StandardHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandardHeaders(..)")
    }
}

/// The parts of well-formed headers.
pub(crate) struct StandardParts<'h> {
    id: &'h [u8],
    timestamp_text: &'h [u8],
    pub(crate) timestamp: u64,
    digests: [&'h GivenBase64; MAX_SIGNATURES],
    count: usize,
}

impl<'h> StandardParts<'h> {
    pub(crate) fn parse(headers: StandardHeaders<'h>) -> Result<Self, HeaderFault> {
        let StandardHeaders { id, timestamp: timestamp_text, signature } = headers;
        if signature.is_empty() {
            return Err(HeaderFault::Missing);
        }
        if id.is_empty() {
            return Err(HeaderFault::NoId);
        }
        if signature.len() > MAX_HEADER_BYTES || id.len() > MAX_HEADER_BYTES {
            return Err(HeaderFault::TooLong);
        }
        let timestamp = plain_decimal(timestamp_text).ok_or(HeaderFault::BadTimestamp)?;
        let (mut digests, mut count, mut signatures) = ([&[0; 44]; MAX_SIGNATURES], 0, 0);
        let mut rest = Some(signature);
        while let Some(text) = rest {
            let (part, after) = split_at_space(text);
            rest = after;
            let Some(digest) = part.strip_prefix(b"v1,") else { continue };
            // A digest of another length matches nothing, but the header has a signature.
            if signatures < MAX_SIGNATURES
                && let Ok(digest) = digest.try_into()
            {
                digests[count] = digest;
                count += 1;
            }
            signatures += 1;
        }
        if signatures == 0 {
            Err(HeaderFault::NoSignature)
        } else {
            Ok(Self { id, timestamp_text, timestamp, digests, count })
        }
    }

    /// The signed text before the body.
    pub(crate) const fn prefix(&self) -> [&'h [u8]; 4] {
        [self.id, b".", self.timestamp_text, b"."]
    }

    /// 1 if a signature is this digest, otherwise 0. Compares all signatures.
    pub(crate) fn matches(&self, expected: &Digest) -> u8 {
        let expected = Base64Digest::new(expected);
        self.digests[..self.count].iter().fold(0, |any, digest| any | expected.ct_eq(digest).unwrap_u8())
    }
}

/// The text before the first space, and the text after it. The usual part needs no search: `v1,` and 44 letters up to a space or
/// the end.
#[inline]
fn split_at_space(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    const PART: usize = 3 + 44;
    let has_space = |part: &[u8]| part.iter().fold(false, |any, byte| any | (*byte == b' '));
    match text.split_at_checked(PART) {
        Some((part, [])) if !has_space(part) => (part, None),
        Some((part, [b' ', after @ ..])) if !has_space(part) => (part, Some(after)),
        _ => match text.iter().position(|byte| *byte == b' ') {
            Some(space) => (&text[..space], Some(&text[space + 1..])),
            None => (text, None),
        },
    }
}
