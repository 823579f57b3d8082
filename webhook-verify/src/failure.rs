//! Why verification failed.

use crate::SecretError;

/// Why verification failed: the four reasons of the API specification's section "Signature", in the order of the
/// checks. No variant contains a secret, a digest or a part of the body, so you can log them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The receiver has no valid secret. The receiver's configuration is wrong, not the request: respond with 500 and check
    /// where you read the secret.
    #[error("no usable webhook secret: {0}")]
    MissingSecret(#[from] SecretError),
    /// The signature header is missing or malformed. Respond with 400.
    #[error("the signature header is malformed: {0}")]
    MalformedHeader(#[from] HeaderFault),
    /// The timestamp is too far from now, in either direction. The signature is not checked. Respond with 400; if this
    /// happens often, check the machine's clock.
    #[error("the timestamp is {off_by_seconds} s from now; the tolerance is {tolerance_seconds} s{}",
        if *.looks_like_milliseconds { "; it looks like milliseconds, but must be seconds" } else { "" })]
    TimestampOutsideTolerance {
        /// How far the timestamp is from now, in seconds.
        off_by_seconds: u64,
        /// Whether the timestamp is in the future.
        in_the_future: bool,
        /// The tolerance, in seconds.
        tolerance_seconds: u64,
        /// Whether the timestamp would be within the tolerance if it were in milliseconds.
        looks_like_milliseconds: bool,
    },
    /// No signature in the header matches this body and a known secret. Respond with 401 and ignore the body.
    #[error("no signature matches: the secret is wrong, or the body is not the raw bytes that were sent")]
    SignatureMismatch,
}

impl Failure {
    /// The reason's code in the API: `missing_secret`, `malformed_header`, `timestamp_outside_tolerance` or
    /// `signature_mismatch`.
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
    /// The request has more than one signature header.
    #[error("it was sent more than once")]
    Repeated,
    /// It is longer than [`MAX_HEADER_BYTES`](crate::MAX_HEADER_BYTES).
    #[error("it is longer than 4096 bytes")]
    TooLong,
    /// It has no `t=`.
    #[error("it has no timestamp (t=)")]
    NoTimestamp,
    /// It has more than one `t=`.
    #[error("it has more than one timestamp (t=)")]
    SeveralTimestamps,
    /// Its `t` is not a plain decimal number of seconds that fits 64 bits.
    #[error("its timestamp (t=) is not a plain decimal number of seconds")]
    BadTimestamp,
    /// It has no `v1=`, or `v1,` by Standard Webhooks.
    #[error("it has no signature (v1=)")]
    NoSignature,
    /// By Standard Webhooks, the request has no `webhook-id`.
    #[error("its header webhook-id is missing")]
    NoId,
}
