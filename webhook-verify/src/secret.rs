//! The signing secret of a webhook endpoint.

use core::fmt;

use crate::mac::Key;

/// The signing secret of one webhook endpoint, as creating the endpoint returned it (`whsec_…`).
///
/// The whole text is the key, its prefix included. The text itself is not kept: what is kept is the prepared state of
/// HMAC, which is wiped when the secret is dropped. A `Secret` has no `Default`, cannot be compared, and shows nothing
/// of itself in `Debug`.
///
/// ```
/// use webhook_verify::{Secret, SecretError};
///
/// assert!(Secret::new("whsec_8f2d1a").is_ok());
/// assert_eq!(Secret::new("").unwrap_err(), SecretError::Empty);
/// assert_eq!(Secret::new("whsec_").unwrap_err(), SecretError::BarePrefix);
/// ```
#[derive(Clone)]
pub struct Secret {
    key: Key,
}

impl Secret {
    /// Takes a secret and prepares HMAC's key state with it.
    ///
    /// # Errors
    /// A text that cannot be a secret: empty, blank, a bare `whsec_`, or one with white space or zero bytes around it,
    /// which is how a newline from a file or a variable sneaks into a key.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        // HMAC fills a short key up with zeros (RFC 2104, section 2), so zeros at its end are no part of it: a secret of
        // nothing else would be the empty key.
        let trimmed = text.trim_matches(|char: char| char.is_whitespace() || char == '\0');
        if text.is_empty() {
            Err(SecretError::Empty)
        } else if trimmed.is_empty() {
            Err(SecretError::Blank)
        } else if trimmed == "whsec_" {
            Err(SecretError::BarePrefix)
        } else if trimmed.len() != text.len() {
            Err(SecretError::SurroundedByWhitespace)
        } else {
            Ok(Self {
                // HMAC takes keys of any length (RFC 2104, section 2); the type says so only by never failing.
                key: Key::new(text.as_bytes()).map_err(|_| SecretError::Empty)?,
            })
        }
    }

    pub(crate) const fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(HMAC-SHA256)")
    }
}

/// Why a text cannot be a signing secret. It never shows the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The text is empty: most often a variable that is not set.
    #[error("it is empty; set it to the secret that creating the endpoint returned")]
    Empty,
    /// The text is nothing but white space or zero bytes.
    #[error("it is blank; set it to the secret that creating the endpoint returned")]
    Blank,
    /// The text is the prefix `whsec_` and nothing after it.
    #[error("it is only the prefix whsec_; the rest was cut off")]
    BarePrefix,
    /// White space or a zero byte stands before or after it; the signer's key has none.
    #[error("white space stands before or after it; trim it where it is read")]
    SurroundedByWhitespace,
    /// A [`Verifier`](crate::Verifier) was asked for with no secret at all.
    #[error("none was given")]
    NoneGiven,
    /// More than [`MAX_SECRETS`](crate::MAX_SECRETS) were given.
    #[error("more than 8 were given; drop those that are out of use")]
    TooMany,
}
