//! Requests for a receiver's own tests: a good one, and one of each kind that must be refused.
//!
//! ```
//! use webhook_verify::{Failure, Secret, Verifier, testing::Sender};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sender = Sender::new("whsec_8f2d1a")?;
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//!
//! // In place of `verifier`, send these to your own endpoint and look at what it answers.
//! assert!(verifier.verify(sender.good(b"{}"), b"{}").is_ok());
//! assert_eq!(verifier.verify(sender.forged(b"{}"), b"{}").unwrap_err(), Failure::SignatureMismatch);
//! assert!(verifier.verify(sender.stale(b"{}"), b"{}").is_err());
//! assert!(verifier.verify(sender.from_the_future(b"{}"), b"{}").is_err());
//! # Ok(())
//! # }
//! ```

use crate::{Secret, SecretError, SignatureHeader, Signer};

/// Farther from now than any sensible tolerance, in seconds.
const FAR: u64 = 24 * 60 * 60;

/// Signs bodies as the platform would, and as it never would.
#[derive(Debug, Clone)]
pub struct Sender {
    signer: Signer,
    stranger: Signer,
}

impl Sender {
    /// A sender with the secret that the receiver under test has.
    ///
    /// # Errors
    /// A text that cannot be a secret.
    pub fn new(secret: &str) -> Result<Self, SecretError> {
        // Whatever the secret is, this is another.
        let stranger = std::format!("{secret}_of_somebody_else");
        Ok(Self { signer: Signer::new(Secret::new(secret)?), stranger: Signer::new(Secret::new(&stranger)?) })
    }

    /// A genuine signature, made now. It must be taken.
    #[must_use]
    pub fn good(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_now(body)
    }

    /// A signature by somebody who does not know the secret. It must be refused.
    #[must_use]
    pub fn forged(&self, body: &[u8]) -> SignatureHeader {
        self.stranger.sign_now(body)
    }

    /// A genuine signature of yesterday: a request that was captured and is sent again. It must be refused.
    #[must_use]
    pub fn stale(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_at(body, crate::unix_time::unix_seconds().saturating_sub(FAR))
    }

    /// A genuine signature of tomorrow. It must be refused.
    #[must_use]
    pub fn from_the_future(&self, body: &[u8]) -> SignatureHeader {
        self.signer.sign_at(body, crate::unix_time::unix_seconds().saturating_add(FAR))
    }
}
