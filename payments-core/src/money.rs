//! Amounts of money with their currency.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Amount, AmountError, Currency, UnknownCurrency};

/// An amount of money and its currency. Each constructor names the unit of its number, so that nobody charges 1,250 dollars
/// for 12.50:
///
/// ```
/// use payments_core::{Currency, Money};
///
/// assert_eq!(Money::taka(750), Money::paisa(75_000));
/// assert_eq!(Money::cents(1250).to_string(), "12.5 USD");
///
/// // From text, such as a price in a database:
/// let price = Money::new("37.50".parse()?, Currency::Usd);
/// assert_eq!(price, Money::cents(3750));
/// # Ok::<(), payments_core::AmountError>(())
/// ```
///
/// A price can be a constant. A float does not compile, so no decimals get lost:
///
/// ```
/// # use payments_core::Money;
/// const CUP: Money = Money::taka(750);
/// ```
///
/// ```compile_fail
/// # use payments_core::Money;
/// const CUP: Money = Money::dollars(12.50);
/// ```
///
/// As text it is `37.5 USD`, as JSON `{"amount": 37.5, "currency": "USD"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// The amount.
    pub amount: Amount,
    /// The currency of the amount.
    pub currency: Currency,
}

impl Money {
    /// Creates money from an amount and its currency.
    #[must_use]
    pub const fn new(amount: Amount, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// Creates money from whole taka (BDT).
    #[must_use]
    pub const fn taka(taka: u32) -> Self {
        Self::new(Amount::from_major(taka), Currency::Bdt)
    }

    /// Creates money from paisa, hundredths of a taka (BDT).
    #[must_use]
    pub const fn paisa(paisa: u64) -> Self {
        Self::new(Amount::from_minor(paisa), Currency::Bdt)
    }

    /// Creates money from whole US dollars (USD).
    #[must_use]
    pub const fn dollars(dollars: u32) -> Self {
        Self::new(Amount::from_major(dollars), Currency::Usd)
    }

    /// Creates money from cents, hundredths of a US dollar (USD).
    #[must_use]
    pub const fn cents(cents: u64) -> Self {
        Self::new(Amount::from_minor(cents), Currency::Usd)
    }
}

/// Writes the amount and the currency's code, such as `750 BDT`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

/// Parses what `Display` writes: an amount, a space and a currency's code.
impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let (amount, currency) = text.split_once(' ').ok_or(MoneyError::Form)?;
        Ok(Self::new(amount.parse()?, currency.parse()?))
    }
}

impl TryFrom<String> for Money {
    type Error = MoneyError;

    fn try_from(text: String) -> Result<Self, MoneyError> {
        text.parse()
    }
}

/// Why a text is not money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyError {
    /// It is not an amount, a space and a currency.
    #[error("must be an amount and a currency, such as 37.5 USD")]
    Form,
    /// Its amount is invalid.
    #[error("the amount {0}")]
    Amount(#[from] AmountError),
    /// Its currency is unknown.
    #[error("the currency {0}")]
    Currency(#[from] UnknownCurrency),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_constructor_counts_in_its_own_unit() {
        for (money, minor, text) in [
            (Money::taka(750), 75_000, "750 BDT"),
            (Money::paisa(75_050), 75_050, "750.5 BDT"),
            (Money::dollars(12), 1200, "12 USD"),
            (Money::cents(5), 5, "0.05 USD"),
            (Money::taka(u32::MAX), 429_496_729_500, "4294967295 BDT"),
        ] {
            assert_eq!((money.amount.as_minor(), money.to_string().as_str()), (minor, text));
        }
    }

    #[test]
    fn money_round_trips_as_text_and_as_json() {
        let money = Money::cents(3750);
        assert_eq!((money.to_string().parse(), Money::try_from("37.50 usd".to_owned())), (Ok(money), Ok(money)));
        let json = serde_json::to_string(&money).unwrap();
        assert_eq!(
            (json.as_str(), serde_json::from_str(&json).unwrap()),
            (r#"{"amount":37.5,"currency":"USD"}"#, money)
        );
        for (text, error) in [
            ("37.5", MoneyError::Form),
            ("-1 USD", AmountError::Negative.into()),
            ("1 EUR", UnknownCurrency.into()),
            ("1  USD", UnknownCurrency.into()),
        ] {
            assert_eq!(text.parse::<Money>(), Err(error), "{text}");
        }
    }
}
