//! The platform's fee rate.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    amount::Amount,
    hundredths::{self, AmountError},
};

/// The platform's fee rate in basis points (hundredths of a percent): 500 is 5 %. On the wire it is a percentage:
/// `5`, `2.75`.
///
/// ```
/// use payments_core::{Amount, FeeRate};
///
/// let rate = FeeRate::from_basis_points(500)?;
/// assert_eq!(rate.fee_on("750".parse()?).to_string(), "37.5");
/// # Ok::<(), payments_core::AmountError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeeRate(u16);

impl FeeRate {
    const WHOLE: u16 = 10_000;

    /// Creates a rate from basis points.
    ///
    /// # Errors
    /// [`AmountError::TooLarge`] for more than 10 000, since the fee would exceed the payment.
    pub const fn from_basis_points(basis_points: u16) -> Result<Self, AmountError> {
        if basis_points > Self::WHOLE { Err(AmountError::TooLarge) } else { Ok(Self(basis_points)) }
    }

    /// The rate in basis points, at most 10 000.
    #[must_use]
    pub const fn as_basis_points(self) -> u16 {
        self.0
    }

    /// The fee on an amount, rounded half up to the minor unit. It never exceeds the amount.
    #[must_use]
    pub fn fee_on(self, amount: Amount) -> Amount {
        let whole = u128::from(Self::WHOLE);
        let rounded = (u128::from(amount.as_minor()) * u128::from(self.0) + whole / 2) / whole;
        Amount::from_minor(u64::try_from(rounded).unwrap_or(amount.as_minor()))
    }
}

impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hundredths::write(f, self.0.into())
    }
}

impl fmt::Debug for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} %")
    }
}

impl Serialize for FeeRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hundredths::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for FeeRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hundredths = Amount::deserialize(deserializer)?.as_minor();
        let basis_points = u16::try_from(hundredths).map_err(de::Error::custom)?;
        Self::from_basis_points(basis_points).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fee_of_the_specs_example_is_37_5() {
        let rate = FeeRate::from_basis_points(500).unwrap();
        assert_eq!(rate.fee_on("750".parse().unwrap()).to_string(), "37.5");
        assert_eq!(serde_json::to_string(&rate).unwrap(), "5");
    }

    #[test]
    fn a_fee_is_rounded_half_up_to_the_minor_unit() {
        let rate = FeeRate::from_basis_points(500).unwrap();
        for (minor, fee) in [(9, 0), (10, 1), (29, 1), (30, 2), (1, 0)] {
            assert_eq!(rate.fee_on(Amount::from_minor(minor)).as_minor(), fee, "{minor}");
        }
    }

    proptest! {
        #[test]
        fn a_fee_never_exceeds_its_amount(minor in 0..=Amount::MAX.as_minor(), basis_points in 0..=FeeRate::WHOLE) {
            let (amount, rate) = (Amount::from_minor(minor), FeeRate::from_basis_points(basis_points).unwrap());
            prop_assert!(rate.fee_on(amount) <= amount);
        }
    }
}
