//! Verifies that a webhook came from the payments platform, and that nobody changed it on the way.
//!
//! ```
//! use webhook_verify::{Failure, Secret, Signer, Verifier};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once, at start: the secret is what creating the webhook endpoint returned.
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//!
//! // For each request: the `X-Service-Signature` header and the body's bytes as they arrived.
//! # let body = br#"{"id":"evt_1","event":"test.ping"}"#;
//! # let header = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
//! let verified = verifier.verify(&header, body)?;
//! assert_eq!(verified.body(), body);
//!
//! // One changed byte, and it is refused.
//! let refused = verifier.verify(&header, b"{}");
//! assert_eq!(refused.unwrap_err(), Failure::SignatureMismatch);
//! # Ok(())
//! # }
//! ```
//!
//! Three mistakes this crate is built against:
//!
//! - **Verifying something other than what was signed.** The signature covers the bytes that arrived. JSON that was
//!   parsed and written again has other bytes. Read the raw body, verify it, parse it after.
//! - **A secret that is not there.** An unset variable must not mean "anyone may call". A [`Secret`] cannot be empty,
//!   blank or a bare `whsec_`, so a [`Verifier`] without a real one cannot be built.
//! - **Using what was not verified.** [`Verified`] has no public constructor: a function that takes one can only be
//!   called with a body that passed.
//!
//! The core needs neither `std` nor an allocator. The feature `std` (on by default) adds the clock behind
//! [`Verifier::verify`] and [`Signer::sign_now`], the guard against replays ([`replay`]) and the requests for a
//! receiver's own tests ([`testing`]); `sled` adds claims that survive a restart.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "http")]
pub mod adapters;
mod failure;
mod header;
mod hex;
#[cfg(feature = "std")]
pub mod replay;
mod secret;
mod signer;
#[cfg(feature = "std")]
pub mod testing;
mod tolerance;
mod verifier;

pub use failure::{Failure, HeaderFault};
pub use header::{MAX_HEADER_BYTES, MAX_SIGNATURES};
pub use secret::{Secret, SecretError};
pub use signer::{SignatureHeader, Signer};
pub use tolerance::Tolerance;
pub use verifier::{MAX_SECRETS, Verification, Verified, Verifier};

/// Seconds since 1970 by the system's clock; a clock set before 1970 counts as 1970, where no fresh signature is valid.
#[cfg(feature = "std")]
fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
