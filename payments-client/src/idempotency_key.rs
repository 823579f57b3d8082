//! Idempotency keys.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An `Idempotency-Key`: 1 to 255 visible ASCII characters. For 24 hours, the API processes a key once and returns the
/// stored response to later requests with it. After that, the same key creates a second payment.
///
/// Create one from your own text, such as an order number. Then the program cannot pay twice after a crash:
///
/// ```
/// use payments_client::IdempotencyKey;
///
/// let key = IdempotencyKey::try_from("order-1017")?;
/// assert_eq!(key.as_str(), "order-1017");
/// assert!(IdempotencyKey::try_from("order 1017").is_err());
/// # Ok::<(), payments_client::IdempotencyKeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// If the operating system provides no random bytes.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        Ok(Self(uuid::Builder::from_random_bytes(random).into_uuid().to_string()))
    }

    /// The key's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = IdempotencyKeyError;

    fn try_from(key: String) -> Result<Self, IdempotencyKeyError> {
        let is_valid = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_valid { Ok(Self(key)) } else { Err(IdempotencyKeyError) }
    }
}

impl TryFrom<&str> for IdempotencyKey {
    type Error = IdempotencyKeyError;

    fn try_from(key: &str) -> Result<Self, IdempotencyKeyError> {
        Self::try_from(key.to_owned())
    }
}

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(key: &str) -> Result<Self, IdempotencyKeyError> {
        key.try_into()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a valid idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key must be 1 to 255 visible ASCII characters")]
pub struct IdempotencyKeyError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_to_255_visible_characters() {
        for (text, is_valid) in [
            ("order-1017".to_owned(), true),
            ("x".repeat(255), true),
            ("x".repeat(256), false),
            (String::new(), false),
            ("order 1017".to_owned(), false),
            ("অর্ডার".to_owned(), false),
            ("order\n".to_owned(), false),
        ] {
            assert_eq!(IdempotencyKey::try_from(text.as_str()).is_ok(), is_valid, "{text:?}");
            let json = serde_json::to_string(&text).unwrap();
            let read = serde_json::from_str::<IdempotencyKey>(&json);
            assert_eq!(read.as_ref().ok().map(|key| serde_json::to_string(key).unwrap()), is_valid.then_some(json));
            assert_eq!(
                (text.parse().ok(), IdempotencyKey::try_from(text).ok()),
                (read.as_ref().ok().cloned(), read.ok())
            );
        }
    }
}
