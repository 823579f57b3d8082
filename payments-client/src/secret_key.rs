//! The secret API key.

use std::fmt;

use payments_core::Environment;
use reqwest::header::HeaderValue;

/// A secret API key. It is shown by no `Debug`, and its header is marked as sensitive.
#[derive(Clone)]
pub struct SecretKey {
    environment: Environment,
    header: HeaderValue,
}

impl SecretKey {
    /// Takes a key.
    ///
    /// # Errors
    /// A text that does not begin with `sk_live_` or `sk_test_`, or that holds anything but visible ASCII.
    pub fn new(key: &str) -> Result<Self, SecretKeyError> {
        let environment = Environment::of_key(key).ok_or(SecretKeyError)?;
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretKeyError);
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| SecretKeyError)?;
        header.set_sensitive(true);
        Ok(Self { environment, header })
    }

    /// The environment that the key belongs to.
    #[must_use]
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}...)", self.environment.key_prefix())
    }
}

/// A text that cannot be an API key. It is not shown: it may be most of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key begins with sk_live_ or sk_test_ and holds no white space; check where it is read from")]
pub struct SecretKeyError;
