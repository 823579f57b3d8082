//! Why a request was not taken as genuine.

use crate::SecretError;

/// Why a webhook was refused: the four reasons of the API specification's section "Signature", in the order in which
/// they are looked for. None of them carries a secret, a digest or any part of the body, so each may be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// There is no secret to verify with. This is a fault of the receiver's configuration, not of the request: answer
    /// 500 and look at where the secret is read from.
    #[error("no usable webhook secret: {0}")]
    MissingSecret(#[from] SecretError),
    /// The signature header is missing or cannot be read. Answer 400.
    #[error("the signature header is malformed: {0}")]
    MalformedHeader(#[from] HeaderFault),
    /// The signature is genuine or not, but its time is too far from now, in either direction. Answer 400; if it
    /// happens often, compare this machine's clock with the world's.
    #[error("the signature's time is {off_by_seconds} s from now and the tolerance is {tolerance_seconds} s{}",
        if *.looks_like_milliseconds { "; it looks like milliseconds where seconds belong" } else { "" })]
    TimestampOutsideTolerance {
        /// How far the signature's time is from now, in seconds, whichever way.
        off_by_seconds: u64,
        /// Whether it lies after now: then a clock is wrong, or someone signs for later.
        in_the_future: bool,
        /// The tolerance in force, in seconds.
        tolerance_seconds: u64,
        /// Whether the same number would be near if it were milliseconds: the usual mistake of a hand-made signature.
        looks_like_milliseconds: bool,
    },
    /// No signature in the header was made with a known secret over this body. Answer 401 and do not read the body.
    #[error("no signature matches: another secret was used, or the body is not the bytes that were sent")]
    SignatureMismatch,
}

impl Failure {
    /// The reason as the API's own verification route names it:
    /// `missing_secret`, `malformed_header`, `timestamp_outside_tolerance` or `signature_mismatch`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingSecret(_) => "missing_secret",
            Self::MalformedHeader(_) => "malformed_header",
            Self::TimestampOutsideTolerance { .. } => "timestamp_outside_tolerance",
            Self::SignatureMismatch => "signature_mismatch",
        }
    }
}

/// What is wrong with the signature header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// The request has no signature header, or an empty one.
    #[error("it is missing")]
    Missing,
    /// The header came more than once. Nobody can say which one counts.
    #[error("it was sent more than once")]
    Repeated,
    /// It is longer than [`MAX_HEADER_BYTES`](crate::MAX_HEADER_BYTES).
    #[error("it is longer than 4096 bytes")]
    TooLong,
    /// It has no `t=`.
    #[error("it has no time (t=)")]
    NoTimestamp,
    /// It has more than one `t=`.
    #[error("it has more than one time (t=)")]
    SeveralTimestamps,
    /// Its `t` is not a plain decimal number of seconds that fits 64 bits.
    #[error("its time (t=) is not a plain decimal number of seconds")]
    BadTimestamp,
    /// It has no `v1=`.
    #[error("it has no signature (v1=)")]
    NoSignature,
}
