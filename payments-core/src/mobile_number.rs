//! Bangladeshi mobile numbers, which identify mobile wallets.

use std::{fmt, str::FromStr};

use crate::text::phone_number;

/// A Bangladeshi mobile number in eleven digits: `01`, a digit from 3 to 9 for the operator, and eight more.
///
/// Parsing accepts the prefixes `+88`, `0088` and `88`, all kinds of spaces and dashes, dots and brackets, `(0)`, and Latin or
/// Bangla digits. It does not check that the number is in use.
///
/// ```
/// use payments_core::MobileNumber;
///
/// let number: MobileNumber = "+880 1770-618575".parse()?;
/// assert_eq!(number.as_str(), "01770618575");
/// assert_eq!("০১৭৭০৬১৮৫৭৫".parse(), Ok(number));
/// # Ok::<(), payments_core::MobileNumberError>(())
/// ```
///
/// `Debug` omits the number, which is customer data.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MobileNumber(String);

/// The text is not a Bangladeshi mobile number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a Bangladeshi mobile number, such as 01712345678")]
pub struct MobileNumberError;

impl MobileNumber {
    /// The eleven digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MobileNumber {
    type Err = MobileNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = phone_number(text).ok_or(MobileNumberError)?;
        let plain = plain.trim_start_matches('(');
        let plain = plain.strip_prefix('+').unwrap_or(plain);
        if plain.contains('+') {
            return Err(MobileNumberError);
        }
        let digits: String = plain.chars().filter(char::is_ascii_digit).collect();
        let national = ["0088", "88"].iter().find_map(|prefix| digits.strip_prefix(prefix)).unwrap_or(&digits);
        let is_valid = national.len() == 11
            && national.starts_with("01")
            && national.as_bytes().get(2).is_some_and(|operator| (b'3'..=b'9').contains(operator));
        if is_valid { Ok(Self(national.to_owned())) } else { Err(MobileNumberError) }
    }
}

impl fmt::Debug for MobileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MobileNumber(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_parse_in_common_formats() {
        for text in [
            "01712345678",
            " 01712345678 ",
            "+8801712345678",
            "8801712345678",
            "008801712345678",
            "01712-345678",
            "+880 1712 345678",
            "(01712) 345.678",
            "০১৭১২৩৪৫৬৭৮",
            "+৮৮০১৭১২৩৪৫৬৭৮",
            "(+880) 1712 345678",
            "+88 (0) 1712\u{2011}345678\t",
            "\u{202d}01712\u{200b}345678\u{202c}",
        ] {
            assert_eq!(text.parse::<MobileNumber>().unwrap().as_str(), "01712345678", "{text}");
        }
    }

    #[test]
    fn invalid_numbers_fail() {
        for text in [
            "",
            "0171234567",
            "017123456789",
            "01212345678",
            "02712345678",
            "1712345678",
            "+1 212 555 0100",
            "01712345678x",
            "017+12345678",
            "<script>",
        ] {
            assert_eq!(text.parse::<MobileNumber>(), Err(MobileNumberError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_is_idempotent_and_does_not_panic(text in "\\PC{0,40}") {
            if let Ok(number) = text.parse::<MobileNumber>() {
                prop_assert_eq!(number.as_str().parse(), Ok(number.clone()));
            }
        }
    }
}
