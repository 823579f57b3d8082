//! Money, exact: whole minor units inside, a decimal number of major units on the wire.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// Minor units in one major unit: 100 paisa make a taka, 100 cents a dollar.
const PER_MAJOR: u128 = 100;

/// The currency of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Currency {
    /// Bangladeshi taka, through a mobile financial services gateway. The default of a payment.
    #[default]
    #[serde(rename = "BDT")]
    Bdt,
    /// United States dollar, through a card processor.
    #[serde(rename = "USD")]
    Usd,
}

impl Currency {
    /// Every currency.
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

    fn from_str(code: &str) -> Result<Self, UnknownCurrency> {
        Self::ALL.into_iter().find(|currency| currency.code() == code).ok_or(UnknownCurrency)
    }
}

/// A currency code other than `BDT` and `USD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of BDT, USD")]
pub struct UnknownCurrency;

/// A sum of money without its currency, in whole minor units (paisa, cents). It never passes through a float.
///
/// On the wire it is a JSON number in major units, with no more decimals than it needs: `750`, `37.5`, `0.01`.
///
/// ```
/// use payments_core::Amount;
///
/// let price: Amount = "37.50".parse()?;
/// assert_eq!(price, Amount::from_minor(3750));
/// assert_eq!(price.to_string(), "37.5");
/// # Ok::<(), payments_core::AmountError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount of one payment: 999 999 999 999.99.
    pub const MAX: Self = Self(99_999_999_999_999);

    /// So many paisa or cents.
    #[must_use]
    pub const fn from_minor(minor: u64) -> Self {
        Self(minor)
    }

    /// The number of paisa or cents.
    #[must_use]
    pub const fn as_minor(self) -> u64 {
        self.0
    }

    /// The difference, or `None` if `other` is more.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(minor) => Some(Self(minor)),
            None => None,
        }
    }

    /// Reads a decimal number as JSON writes numbers (RFC 8259, section 6), exponents included: `1e2` is 100.
    fn parse_number(text: &str) -> Result<Self, AmountError> {
        let number = Decimal::parse(text).ok_or(AmountError::NotANumber)?;
        if number.negative && !number.digits_are_zero() {
            return Err(AmountError::Negative);
        }
        number.scaled_by_100().map(Self)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hundredths(f, self.0.into())
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number of hundredths as a plain decimal, without trailing zeros.
pub(crate) fn write_hundredths(f: &mut fmt::Formatter<'_>, hundredths: u128) -> fmt::Result {
    let (whole, rest) = (hundredths / PER_MAJOR, hundredths % PER_MAJOR);
    match rest {
        0 => write!(f, "{whole}"),
        tenths if tenths % 10 == 0 => write!(f, "{whole}.{}", tenths / 10),
        _ => write!(f, "{whole}.{rest:02}"),
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    /// Reads an amount of major units such as `750` or `37.50`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        Self::parse_number(text)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_number(&self.to_string(), serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse_number(number.get()).map_err(de::Error::custom)
    }
}

/// Writes a decimal text as a JSON number, digit for digit.
pub(crate) fn serialize_number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(text.to_owned()).map_err(ser::Error::custom)?.serialize(serializer)
}

/// Why a text or a JSON value is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// It is not a decimal number.
    #[error("must be a positive number")]
    NotANumber,
    /// It is less than zero.
    #[error("must be a positive number")]
    Negative,
    /// It has more decimals than the currency.
    #[error("must have at most 2 decimals")]
    TooPrecise,
    /// It is more than [`Amount::MAX`].
    #[error("must be at most 999999999999.99")]
    TooLarge,
}

/// The platform's share of a payment, in basis points (hundredths of a percent): 500 are 5 %.
///
/// On the wire it is a percentage: `5`, `2.75`.
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

    /// A rate of so many basis points.
    ///
    /// # Errors
    /// [`AmountError::TooLarge`] for more than 10 000: a fee cannot exceed the payment.
    pub const fn from_basis_points(basis_points: u16) -> Result<Self, AmountError> {
        if basis_points > Self::WHOLE { Err(AmountError::TooLarge) } else { Ok(Self(basis_points)) }
    }

    /// The number of basis points, at most 10 000.
    #[must_use]
    pub const fn as_basis_points(self) -> u16 {
        self.0
    }

    /// The fee on an amount, rounded half up to the minor unit. It is never more than the amount.
    #[must_use]
    pub fn fee_on(self, amount: Amount) -> Amount {
        let whole = u128::from(Self::WHOLE);
        let rounded = (u128::from(amount.0) * u128::from(self.0) + whole / 2) / whole;
        Amount(u64::try_from(rounded).unwrap_or(amount.0))
    }
}

impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hundredths(f, self.0.into())
    }
}

impl fmt::Debug for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} %")
    }
}

impl Serialize for FeeRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_number(&self.to_string(), serializer)
    }
}

impl<'de> Deserialize<'de> for FeeRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hundredths = Amount::deserialize(deserializer)?.as_minor();
        let basis_points = u16::try_from(hundredths).map_err(de::Error::custom)?;
        Self::from_basis_points(basis_points).map_err(de::Error::custom)
    }
}

/// A decimal number as text, taken apart and not yet evaluated: value = digits × 10^exponent.
struct Decimal<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    exponent: i64,
}

impl<'t> Decimal<'t> {
    /// The grammar of RFC 8259, section 6.
    fn parse(text: &'t str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let whole_fits = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let fraction_fits = fraction.is_none_or(is_digits);
        (whole_fits && fraction_fits).then(|| Self {
            negative,
            whole: whole.as_bytes(),
            fraction: fraction.unwrap_or_default().as_bytes(),
            exponent,
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).map(|digit| digit - b'0')
    }

    fn digits_are_zero(&self) -> bool {
        self.digits().all(|digit| digit == 0)
    }

    /// The number of hundredths, where it is whole and at most [`Amount::MAX`].
    fn scaled_by_100(&self) -> Result<u64, AmountError> {
        if self.digits_are_zero() {
            return Ok(0);
        }
        // The digits as one integer, times ten to this power, are the hundredths.
        let fraction_digits = i64::try_from(self.fraction.len()).unwrap_or(i64::MAX);
        let mut power = self.exponent.saturating_sub(fraction_digits).saturating_add(2);
        let mut digits: Vec<u8> = self.digits().skip_while(|digit| *digit == 0).collect();
        while digits.last() == Some(&0) {
            digits.pop();
            power = power.saturating_add(1);
        }
        if power < 0 {
            return Err(AmountError::TooPrecise);
        }
        let zeros = usize::try_from(power).unwrap_or(usize::MAX);
        // The maximum has 14 digits: whatever has more cannot fit, and what has not cannot overflow 64 bits.
        if digits.len().saturating_add(zeros) > 14 {
            return Err(AmountError::TooLarge);
        }
        Ok(digits.into_iter().chain(std::iter::repeat_n(0, zeros)).fold(0, |sum, digit| sum * 10 + u64::from(digit)))
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An optional sign and digits. What does not fit 64 bits is as far away as makes no difference.
fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    is_digits(digits).then(|| digits.parse().map_or(i64::MAX / 2, |size: i64| size.min(i64::MAX / 2)) * sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Amount, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn an_amount_is_read_exactly_from_every_form_of_a_json_number() {
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
    fn what_is_not_an_exact_amount_is_refused_with_the_reason() {
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
        fn every_amount_comes_back_from_the_wire_as_it_went(minor in 0..=Amount::MAX.0) {
            let amount = Amount(minor);
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(read(&json).unwrap(), amount);
            prop_assert_eq!(json.parse::<f64>().unwrap().to_string().parse::<Amount>().unwrap(), amount);
        }

        #[test]
        fn a_fee_never_exceeds_its_amount(minor in 0..=Amount::MAX.0, basis_points in 0..=FeeRate::WHOLE) {
            let (amount, rate) = (Amount(minor), FeeRate::from_basis_points(basis_points).unwrap());
            prop_assert!(rate.fee_on(amount) <= amount);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[-+0-9.eE]{0,40}") {
            let _ = text.parse::<Amount>();
        }
    }
}
