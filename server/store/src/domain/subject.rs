//! What an event, a booking or a delivery is about.

use std::fmt;

use payments_core::{IdError, PaymentId, PayoutId, Slot};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Payment(PaymentId),
    Payout(PayoutId),
}

impl Subject {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Payment(id) => id.as_str(),
            Self::Payout(id) => id.as_str(),
        }
    }

    pub fn slot(&self) -> Slot {
        match self {
            Self::Payment(id) => id.slot(),
            Self::Payout(id) => id.slot(),
        }
    }

    pub fn payment(&self) -> Option<&PaymentId> {
        match self {
            Self::Payment(id) => Some(id),
            Self::Payout(_) => None,
        }
    }

    pub fn payout(&self) -> Option<&PayoutId> {
        match self {
            Self::Payment(_) => None,
            Self::Payout(id) => Some(id),
        }
    }
}

/// Reads the id of a payment or a payout. Ids of payments may have any prefix but a payout's.
impl std::str::FromStr for Subject {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text.starts_with(PayoutId::PREFIX) {
            true => text.parse().map(Self::Payout),
            false => text.parse().map(Self::Payment),
        }
    }
}

impl AsRef<str> for Subject {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<PaymentId> for Subject {
    fn from(id: PaymentId) -> Self {
        Self::Payment(id)
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
