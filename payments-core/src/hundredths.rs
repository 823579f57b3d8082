//! Exact decimals with two decimal places: stored as whole hundredths, a JSON number on the wire.

use std::fmt;

use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

/// 100 paisa in a taka, 100 cents in a dollar, 100 basis points in a percent.
const PER_UNIT: u128 = 100;

/// Parses a JSON number (RFC 8259, section 6), including exponents: `1e2` is 10 000 hundredths.
pub(crate) fn parse(text: &str) -> Result<u64, AmountError> {
    let number = Decimal::parse(text).ok_or(AmountError::NotANumber)?;
    if number.negative && !number.digits_are_zero() {
        return Err(AmountError::Negative);
    }
    number.scaled_by_100()
}

/// Writes a number of hundredths as a plain decimal, without trailing zeros.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, hundredths: u128) -> fmt::Result {
    let (whole, rest) = (hundredths / PER_UNIT, hundredths % PER_UNIT);
    match rest {
        0 => write!(f, "{whole}"),
        tenths if tenths % 10 == 0 => write!(f, "{whole}.{}", tenths / 10),
        _ => write!(f, "{whole}.{rest:02}"),
    }
}

/// Serializes a decimal as a JSON number with these digits.
pub(crate) fn serialize<S: Serializer>(decimal: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(decimal.to_string()).map_err(ser::Error::custom)?.serialize(serializer)
}

/// Why a text or JSON value is not a valid amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// It is not a decimal number.
    #[error("must be a positive number")]
    NotANumber,
    /// It is negative.
    #[error("must be a positive number")]
    Negative,
    /// It has more than 2 decimals.
    #[error("must have at most 2 decimals")]
    TooPrecise,
    /// It exceeds [`Amount::MAX`](crate::Amount::MAX).
    #[error("must be at most 999999999999.99")]
    TooLarge,
}

/// The parts of a decimal number's text.
struct Decimal<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    exponent: i64,
}

impl<'t> Decimal<'t> {
    /// Splits a number by the grammar of RFC 8259, section 6.
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
        let is_whole_valid = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let is_fraction_valid = fraction.is_none_or(is_digits);
        (is_whole_valid && is_fraction_valid).then(|| Self {
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

    /// The number of hundredths, if it is whole and at most [`Amount::MAX`](crate::Amount::MAX).
    fn scaled_by_100(&self) -> Result<u64, AmountError> {
        if self.digits_are_zero() {
            return Ok(0);
        }
        // hundredths = digits × 10^power
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
        // The maximum has 14 digits, which fit in 64 bits.
        if digits.len().saturating_add(zeros) > 14 {
            return Err(AmountError::TooLarge);
        }
        Ok(digits.into_iter().chain(std::iter::repeat_n(0, zeros)).fold(0, |sum, digit| sum * 10 + u64::from(digit)))
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses an optional sign and digits, and clamps the value to 63 bits.
fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    is_digits(digits).then(|| digits.parse().map_or(i64::MAX / 2, |size: i64| size.min(i64::MAX / 2)) * sign)
}
