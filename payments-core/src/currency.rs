//! Currencies.

use std::str::FromStr;

use crate::short_word::{OtherWord, open_when_read};

/// The currency of a payment. `Deserialize` reads currencies of later API versions too; `FromStr` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Currency {
    /// Bangladeshi taka, paid through mobile financial services. The API's default.
    Bdt,
    /// United States dollar, paid by card.
    Usd,
    /// A currency that this version does not know.
    Other(OtherWord),
}

impl Currency {
    /// All currencies that this version knows.
    pub const ALL: [Self; 2] = [Self::Bdt, Self::Usd];

    /// The ISO 4217 code, such as `BDT` or `USD`.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Bdt => "BDT",
            Self::Usd => "USD",
            Self::Other(code) => code.as_str(),
        }
    }
}

open_when_read!(Currency, UnknownCurrency, code);

impl FromStr for Currency {
    type Err = UnknownCurrency;

    /// Parses a code in capital or small letters.
    fn from_str(code: &str) -> Result<Self, UnknownCurrency> {
        Self::ALL.into_iter().find(|currency| currency.code().eq_ignore_ascii_case(code)).ok_or(UnknownCurrency)
    }
}

/// A currency code other than `BDT` and `USD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of BDT, USD")]
pub struct UnknownCurrency;
