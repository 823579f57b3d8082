//! The secret API key.

use std::fmt;

use payments_core::Environment;
use reqwest::header::HeaderValue;

/// A secret API key. It is shown by no `Debug`, and its header is marked as sensitive.
#[derive(Clone)]
pub struct SecretKey {
    environment: Environment,
    bearer: HeaderValue,
    plain: HeaderValue,
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
        let sensitive = |text: &str| {
            let mut header = HeaderValue::from_str(text).map_err(|_| SecretKeyError)?;
            header.set_sensitive(true);
            Ok(header)
        };
        Ok(Self { environment, bearer: sensitive(&format!("Bearer {key}"))?, plain: sensitive(key)? })
    }

    /// The environment that the key belongs to.
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

/// A text that cannot be an API key. It is not shown: it may be most of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key begins with sk_live_ or sk_test_ and holds no white space; check where it is read from")]
pub struct SecretKeyError;
