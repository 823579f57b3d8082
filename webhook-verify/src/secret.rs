//! The signing secret of a webhook endpoint.

use core::fmt;

use crate::{base64::decode, mac::Key};

/// The signing secret of a webhook endpoint (`whsec_…`), as the API returned it for a new endpoint.
///
/// The whole text is the HMAC key, including its prefix. By Standard Webhooks the key is what follows the prefix, decoded from
/// base64. A `Secret` stores only the prepared HMAC state and wipes it on
/// drop. It has no `Default`, cannot be compared, and `Debug` omits it.
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
    standard: Option<Key>,
}

impl Secret {
    /// Creates a secret and prepares the HMAC state.
    ///
    /// # Errors
    /// If the text is empty, blank, a bare `whsec_`, or has white space or zero bytes around it, such as a trailing
    /// newline from a file.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        // HMAC pads a short key with zeros (RFC 2104, section 2), so a key of zero bytes equals the empty key.
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
                // HMAC accepts keys of any length (RFC 2104, section 2), so this never fails.
                key: Key::new(text.as_bytes()).map_err(|_| SecretError::Empty)?,
                standard: standard_key(text),
            })
        }
    }

    pub(crate) const fn key(&self) -> &Key {
        &self.key
    }

    /// The key of Standard Webhooks. `None` if the secret is not base64.
    pub(crate) const fn standard_key(&self) -> Option<&Key> {
        self.standard.as_ref()
    }
}

fn standard_key(text: &str) -> Option<Key> {
    let mut bytes = [0; 66];
    let length = decode(text.strip_prefix("whsec_").unwrap_or(text).as_bytes(), &mut bytes)?;
    let key = Key::new(&bytes[..length]).ok();
    // Wipe them. Without `black_box` the compiler may leave that out.
    bytes.fill(0);
    core::hint::black_box(&bytes);
    key
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(HMAC-SHA256)")
    }
}

/// Why a text is not a valid signing secret. The error never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The text is empty, usually because a variable is not set.
    #[error("it is empty; set it to the secret that creating the endpoint returned")]
    Empty,
    /// The text has only white space or zero bytes.
    #[error("it is blank; set it to the secret that creating the endpoint returned")]
    Blank,
    /// The text is only the prefix `whsec_`.
    #[error("it is only the prefix whsec_; copy the whole secret")]
    BarePrefix,
    /// The text has white space or a zero byte at its start or end.
    #[error("it has white space at its start or end; trim it where you read it")]
    SurroundedByWhitespace,
    /// A [`Verifier`](crate::Verifier) needs at least one secret.
    #[error("no secret was given")]
    NoneGiven,
    /// No secret is a key of Standard Webhooks: base64 after `whsec_`, of at most 66 bytes.
    #[error("it is not whsec_ and base64, as Standard Webhooks needs")]
    NotBase64,
    /// There are more than [`MAX_SECRETS`](crate::MAX_SECRETS) secrets.
    #[error("there are more than 8 secrets; remove the unused ones")]
    TooMany,
}
