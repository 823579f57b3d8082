//! Amounts of money.

use std::{fmt, iter::Sum, ops::Add, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::hundredths::{self, AmountError};

/// An amount of money without its currency, in whole minor units (paisa, cents). It is never converted to a float. With its
/// currency it is [`Money`](crate::Money).
///
/// On the wire it is a JSON number in major units without trailing zeros: `750`, `37.5`, `0.01`.
///
/// ```
/// use payments_core::Amount;
///
/// let price: Amount = "37.50".parse()?;
/// assert_eq!(price, Amount::from_minor(3750));
/// assert_eq!(price.to_string(), "37.5");
/// assert_eq!([price, price].into_iter().sum::<Amount>(), Amount::from_major(75));
/// # Ok::<(), payments_core::AmountError>(())
/// ```
///
/// Sums never wrap, and fit the signed 64-bit integers of databases. [`checked_add`](Self::checked_add) returns `None` above
/// [`i64::MAX`] minor units; `+` and [`Sum`] panic there, in each build. Amounts from the wire are at most
/// [`MAX`](Self::MAX), so that takes 92,233 maximum payments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u64);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The maximum amount of a payment: 999 999 999 999.99.
    pub const MAX: Self = Self(99_999_999_999_999);

    /// Creates an amount from minor units (paisa, cents).
    #[must_use]
    pub const fn from_minor(minor: u64) -> Self {
        Self(minor)
    }

    /// Creates an amount from whole major units (taka, dollars).
    #[must_use]
    pub const fn from_major(major: u32) -> Self {
        Self(major as u64 * 100)
    }

    /// The amount in minor units (paisa, cents).
    #[must_use]
    pub const fn as_minor(self) -> u64 {
        self.0
    }

    /// The amount in minor units, for a database's signed 64-bit integer. It is never negative. Only an amount that
    /// [`from_minor`](Self::from_minor) made can be above [`i64::MAX`], which it then returns. `Amount::try_from` is the way
    /// back.
    #[must_use]
    pub const fn as_minor_i64(self) -> i64 {
        if self.0 > i64::MAX.unsigned_abs() { i64::MAX } else { self.0.cast_signed() }
    }

    /// Adds `other`, or returns `None` if the sum is above [`i64::MAX`] minor units.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(minor) if minor <= i64::MAX.unsigned_abs() => Some(Self(minor)),
            _ => None,
        }
    }

    /// Subtracts `other`, or returns `None` if `other` is greater.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(minor) => Some(Self(minor)),
            None => None,
        }
    }
}

/// Panics if the sum is above [`i64::MAX`] minor units.
impl Add for Amount {
    type Output = Self;

    #[allow(clippy::expect_used, reason = "a wrong sum of money would be worse, as with std::time::Duration")]
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("the sum of amounts is above i64::MAX minor units")
    }
}

/// Panics if the sum is above [`i64::MAX`] minor units.
impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

/// Minor units from a database. Fails if they are negative.
impl TryFrom<i64> for Amount {
    type Error = AmountError;

    fn try_from(minor: i64) -> Result<Self, AmountError> {
        minor.try_into().map(Self).map_err(|_| AmountError::Negative)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hundredths::write(f, self.0.into())
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    /// Parses an amount in major units, such as `750` or `37.50`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        hundredths::parse(text).map(Self)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hundredths::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        number.get().parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Amount, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn an_amount_parses_exactly_from_every_form_of_json_number() {
        for (json, minor) in [
            ("750", 75_000),
            ("37.5", 3_750),
            ("37.50", 3_750),
            ("0.01", 1),
            ("1e2", 10_000),
            ("1E+2", 10_000),
            ("100e-2", 100),
            ("1.5e1", 1_500),
            ("0.0001e4", 100),
            ("1.000000000000000000000000000", 100),
            ("0", 0),
            ("-0", 0),
            ("0e999999999999999999999", 0),
            ("999999999999.99", 99_999_999_999_999),
        ] {
            assert_eq!(read(json).unwrap().as_minor(), minor, "{json}");
        }
    }

    #[test]
    fn an_invalid_amount_fails_with_its_reason() {
        for (text, error) in [
            ("0.001", AmountError::TooPrecise),
            ("1e-3", AmountError::TooPrecise),
            ("1e-99999999999999999999", AmountError::TooPrecise),
            ("0.1000000000000000055511151231257827", AmountError::TooPrecise),
            ("-1", AmountError::Negative),
            ("-0.01", AmountError::Negative),
            ("1000000000000", AmountError::TooLarge),
            ("1e99999999999999999999", AmountError::TooLarge),
            ("\"750\"", AmountError::NotANumber),
            ("NaN", AmountError::NotANumber),
            ("", AmountError::NotANumber),
            ("+1", AmountError::NotANumber),
            ("01", AmountError::NotANumber),
            (".5", AmountError::NotANumber),
            ("5.", AmountError::NotANumber),
            ("1e", AmountError::NotANumber),
            ("1_000", AmountError::NotANumber),
            ("true", AmountError::NotANumber),
            ("null", AmountError::NotANumber),
        ] {
            assert_eq!(text.parse::<Amount>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_sum_fits_a_databases_integer_or_there_is_none() {
        let (most, cent) = (Amount(i64::MAX.unsigned_abs()), Amount(1));
        assert_eq!(most.checked_sub(cent).unwrap() + cent, most);
        assert_eq!(most.as_minor_i64(), i64::MAX);
        assert_eq!((most.checked_add(cent), Amount(u64::MAX).checked_add(cent)), (None, None));
        assert_eq!(Amount(u64::MAX).as_minor_i64(), i64::MAX, "never negative");
        assert!(std::panic::catch_unwind(|| [most, cent].into_iter().sum::<Amount>()).is_err());
        assert_eq!((Amount::try_from(3750), Amount::try_from(-1)), (Ok(Amount(3750)), Err(AmountError::Negative)));
    }

    proptest! {
        #[test]
        fn every_amount_round_trips(minor in 0..=Amount::MAX.0) {
            let amount = Amount(minor);
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(read(&json).unwrap(), amount);
            prop_assert_eq!((format!("{amount}"), format!("{amount:?}")), (json.clone(), json.clone()));
            prop_assert_eq!(json.parse::<f64>().unwrap().to_string().parse::<Amount>().unwrap(), amount);
        }

        #[test]
        fn random_text_parses_without_a_panic(text in "[-+0-9.eE]{0,40}") {
            let _ = text.parse::<Amount>();
        }
    }
}
