//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod body;
mod example;
#[cfg(all(feature = "tower", feature = "axum", feature = "actix-web", feature = "warp"))]
mod frameworks;
mod header;
mod independent;
mod properties;
#[cfg(feature = "http")]
mod receiver;
#[cfg(feature = "std")]
mod replay;
mod secret;
#[cfg(feature = "std")]
mod sender;
mod signature;
mod standard;
mod timestamp;
mod vectors;

use webhook_verify::{Failure, Secret, Signer, Verified, Verifier};

pub(crate) const SECRET: &str = "whsec_test";
pub(crate) const NOW: u64 = 1_700_000_000;
pub(crate) const BODY: &[u8] = br#"{"id":"evt_1","event":"payment.completed"}"#;

pub(crate) fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

pub(crate) fn verifier() -> Verifier {
    Verifier::new(secret())
}

/// The valid signature of a body at a Unix time, as hex.
pub(crate) fn digest_of(body: &[u8], time: u64) -> String {
    let header = Signer::new(secret()).sign_at(body, time);
    header.as_str().split_once(",v1=").unwrap().1.to_owned()
}

/// The valid signature of [`BODY`] at [`NOW`], as hex.
pub(crate) fn digest() -> String {
    digest_of(BODY, NOW)
}

/// Verifies [`BODY`] at [`NOW`].
pub(crate) fn verify(header: impl AsRef<[u8]>) -> Result<Verified<&'static [u8]>, Failure> {
    verifier().verify_at(header, BODY, NOW)
}

/// The code of the failure to verify [`BODY`] at [`NOW`].
pub(crate) fn failure_code(header: impl AsRef<[u8]>) -> &'static str {
    verify(header).unwrap_err().code()
}
