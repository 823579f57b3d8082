//! The live and test environments.

use crate::short_word::{OtherWord, open_when_read};

/// Live or test. The prefix of the API key that creates a payment decides its environment. `Deserialize` reads environments of
/// later API versions too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Environment {
    /// Keys begin with `sk_live_`. Payments go through a gateway and move real money.
    Live,
    /// Keys begin with `sk_test_`. Payments are simulated.
    Test,
    /// An environment that this version does not know.
    Other(OtherWord),
}

impl Environment {
    /// All environments that this version knows.
    pub const ALL: [Self; 2] = [Self::Live, Self::Test];

    /// The wire format, such as `live` or `test`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
            Self::Other(word) => word.as_str(),
        }
    }

    /// The prefix of this environment's API keys: `sk_live_` or `sk_test_`. Empty for an unknown environment.
    #[must_use]
    pub const fn key_prefix(&self) -> &'static str {
        match self {
            Self::Live => "sk_live_",
            Self::Test => "sk_test_",
            Self::Other(_) => "",
        }
    }

    /// The environment of an API key, or `None` if the key has neither prefix or nothing after it.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|environment| key.strip_prefix(environment.key_prefix()).is_some_and(|rest| !rest.is_empty()))
    }
}

open_when_read!(Environment, "must be live or test", as_str);
