#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "http")]
pub mod adapters;
mod base64;
mod failure;
mod header;
mod hex;
mod mac;
#[cfg(feature = "std")]
pub mod replay;
mod secret;
mod signer;
mod standard;
mod standard_headers;
#[cfg(feature = "std")]
pub mod testing;
mod tolerance;
#[cfg(feature = "std")]
mod unix_time;
mod verifier;

pub use failure::{Failure, HeaderFault};
pub use header::{MAX_HEADER_BYTES, MAX_SIGNATURES};
pub use secret::{Secret, SecretError};
pub use signer::{SignatureHeader, Signer};
pub use standard::StandardSignature;
pub use standard_headers::StandardHeaders;
pub use tolerance::Tolerance;
pub use verifier::{MAX_SECRETS, Verification, Verified, Verifier};
