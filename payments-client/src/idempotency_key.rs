//! What makes a repeated request one request.

use std::fmt;

/// An `Idempotency-Key`: 1 to 255 visible ASCII characters. The API does what it is asked once for each key and gives
/// everyone after the first answer again, for 24 hours. A key that is used again after that makes a second payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Takes a key of your own, such as an order's number: then a program that crashed and starts again cannot pay
    /// twice either.
    ///
    /// # Errors
    /// A text that is empty, longer than 255 characters, or holds anything but visible ASCII.
    pub fn new(key: impl Into<String>) -> Result<Self, IdempotencyKeyError> {
        let key = key.into();
        let fits = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(key)) } else { Err(IdempotencyKeyError) }
    }

    /// A key that no one else has.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
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

/// A text that cannot be an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key is 1 to 255 visible ASCII characters")]
pub struct IdempotencyKeyError;
