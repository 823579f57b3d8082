//! Secret API keys.

use std::fmt;

use payments_core::Environment;
use reqwest::header::HeaderValue;

/// A secret API key. `Debug` omits it, and its header is marked as sensitive.
#[derive(Clone)]
pub struct SecretKey {
    environment: Environment,
    bearer: HeaderValue,
    plain: HeaderValue,
}

impl SecretKey {
    /// Creates a key.
    ///
    /// # Errors
    /// If the text does not begin with `sk_live_` or `sk_test_`, or has other characters than visible ASCII.
    pub fn new(key: &str) -> Result<Self, SecretKeyError> {
        let environment = Environment::of_key(key).ok_or(SecretKeyError)?;
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretKeyError);
        }
        let sensitive = |text: &str| {
            let mut header = HeaderValue::from_str(text).map_err(|_| SecretKeyError)?;
            header.set_sensitive(true);
            Ok(header)
        };
        Ok(Self { environment, bearer: sensitive(&format!("Bearer {key}"))?, plain: sensitive(key)? })
    }

    /// The environment of the key.
    #[must_use]
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    pub(crate) fn bearer(&self) -> HeaderValue {
        self.bearer.clone()
    }

    pub(crate) fn plain(&self) -> HeaderValue {
        self.plain.clone()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}...)", self.environment.key_prefix())
    }
}

/// The text is not a valid API key. The error never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key must begin with sk_live_ or sk_test_ and have no white space; check where you read it")]
pub struct SecretKeyError;
