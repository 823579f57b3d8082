//! Currencies.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The currency of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Currency {
    /// Bangladeshi taka, paid through mobile financial services. The API's default.
    #[serde(rename = "BDT")]
    Bdt,
    /// United States dollar, paid by card.
    #[serde(rename = "USD")]
    Usd,
}

impl Currency {
    /// All currencies.
    pub const ALL: [Self; 2] = [Self::Bdt, Self::Usd];

    /// The ISO 4217 code: `BDT` or `USD`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Bdt => "BDT",
            Self::Usd => "USD",
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

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
