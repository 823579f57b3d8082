//! Amounts of money with their currency.

use std::fmt;

use crate::{Amount, Currency};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
}
