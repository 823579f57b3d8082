//! What a verifier must do, seen from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod body;
mod header;
mod independent;
mod properties;
#[cfg(feature = "std")]
mod replay;
mod secret;
mod signature;
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

/// The genuine signature of a body at a time, as hex.
pub(crate) fn digest_of(body: &[u8], time: u64) -> String {
    let header = Signer::new(secret()).sign_at(body, time);
    header.as_str().split_once(",v1=").unwrap().1.to_owned()
}

/// The genuine signature of [`BODY`] now, as hex.
pub(crate) fn digest() -> String {
    digest_of(BODY, NOW)
}

/// Verifies [`BODY`] now.
pub(crate) fn verify(header: impl AsRef<[u8]>) -> Result<Verified<&'static [u8]>, Failure> {
    verifier().verify_at(header, BODY, NOW)
}

/// Why [`BODY`] is refused now, by the reason's code.
pub(crate) fn refusal(header: impl AsRef<[u8]>) -> &'static str {
    verify(header).unwrap_err().code()
}
