//! Idempotency keys.

use std::fmt;

/// An `Idempotency-Key`: 1 to 255 visible ASCII characters. For 24 hours, the API processes a key once and returns the
/// stored response to later requests with it. After that, the same key creates a second payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Creates a key from your own text, such as an order number. The program then cannot pay twice after a crash.
    ///
    /// # Errors
    /// If the text is empty, longer than 255 characters, or has other characters than visible ASCII.
    pub fn new(key: impl Into<String>) -> Result<Self, IdempotencyKeyError> {
        let key = key.into();
        let is_valid = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_valid { Ok(Self(key)) } else { Err(IdempotencyKeyError) }
    }

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

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a valid idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key must be 1 to 255 visible ASCII characters")]
pub struct IdempotencyKeyError;
