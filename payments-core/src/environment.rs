//! Live or test: two worlds that never see each other.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether real money moves. It follows from the prefix of the API key that made the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Keys begin with `sk_live_`; payments go through a gateway and move real money.
    Live,
    /// Keys begin with `sk_test_`; payments are simulated and move none.
    Test,
}

impl Environment {
    /// The word on the wire: `live` or `test`.
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

    /// The environment that an API key belongs to, or `None` if it has neither prefix or nothing after it.
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
