//! The live and test environments.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Live or test. The prefix of the API key that creates a payment decides its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Keys begin with `sk_live_`. Payments go through a gateway and move real money.
    Live,
    /// Keys begin with `sk_test_`. Payments are simulated.
    Test,
}

impl Environment {
    /// The wire format: `live` or `test`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// The prefix of this environment's API keys: `sk_live_` or `sk_test_`.
    #[must_use]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Live => "sk_live_",
            Self::Test => "sk_test_",
        }
    }

    /// The environment of an API key, or `None` if the key has neither prefix or nothing after it.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        [Self::Live, Self::Test]
            .into_iter()
            .find(|environment| key.strip_prefix(environment.key_prefix()).is_some_and(|rest| !rest.is_empty()))
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
