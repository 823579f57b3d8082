//! The server's verdict on a signature.

use crate::aliased::aliased_resource;

aliased_resource! {
    /// The result of a request to verify a signature.
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct Verdict {
        /// Whether the signature is valid.
        valid: bool = "valid",
        /// When the body was signed, in Unix seconds, if the signature is valid.
        timestamp: Option<u64> = "timestamp" (omitted if None),
        /// Why the signature is invalid: `missing_secret`, `malformed_header`, `timestamp_outside_tolerance` or
        /// `signature_mismatch`.
        reason: Option<String> = "reason" (omitted if None),
    }
}
