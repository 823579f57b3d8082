//! Signatures for testing a receiver: a valid one, and one of each kind that the receiver must reject.
//!
//! ```
//! use webhook_verify::{Failure, Secret, Verifier, testing::Sender};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sender = Sender::new("whsec_8f2d1a")?;
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//!
//! // In your tests, send these to your endpoint and check its responses.
//! assert!(verifier.verify(sender.good(b"{}"), b"{}").is_ok());
//! assert_eq!(verifier.verify(sender.forged(b"{}"), b"{}").unwrap_err(), Failure::SignatureMismatch);
//! assert!(verifier.verify(sender.stale(b"{}"), b"{}").is_err());
//! assert!(verifier.verify(sender.from_the_future(b"{}"), b"{}").is_err());
//! # Ok(())
//! # }
//! ```

use crate::{Secret, SecretError, SignatureHeader, Signer};

/// This is outside any sensible tolerance.
const FAR_SECONDS: u64 = 24 * 60 * 60;

/// Creates valid and invalid signatures of a body.
#[derive(Debug, Clone)]
pub struct Sender {
    signer: Signer,
    forger: Signer,
}

impl Sender {
    /// Creates a sender with the secret of the receiver under test.
    ///
    /// # Errors
    /// If the text is not a valid secret.
    pub fn new(secret: &str) -> Result<Self, SecretError> {
        let wrong = std::format!("{secret}_wrong");
        Ok(Self { signer: Signer::new(Secret::new(secret)?), forger: Signer::new(Secret::new(&wrong)?) })
    }

    /// A valid signature with the current time. The receiver must accept it.
    #[must_use]
    pub fn good(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_now(body)
    }

    /// A signature with a wrong secret. The receiver must reject it.
    #[must_use]
    pub fn forged(&self, body: &[u8]) -> SignatureHeader {
        self.forger.sign_now(body)
    }

    /// A valid signature that is a day old, as in a replay. The receiver must reject it.
    #[must_use]
    pub fn stale(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_at(body, crate::unix_time::unix_seconds().saturating_sub(FAR_SECONDS))
    }

    /// A valid signature from a day in the future. The receiver must reject it.
    #[must_use]
    pub fn from_the_future(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_at(body, crate::unix_time::unix_seconds().saturating_add(FAR_SECONDS))
    }
}
