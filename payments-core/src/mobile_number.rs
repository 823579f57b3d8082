//! Bangladeshi mobile numbers: what a mobile wallet is known by.

use std::{fmt, str::FromStr};

/// A Bangladeshi mobile number, as eleven digits: `01`, a digit from 3 to 9 for the operator, and eight more.
///
/// It is read as people write it: with or without `+88`, `0088` or `88` in front, with spaces, hyphens, dots and
/// brackets, in Latin or Bangla digits. Which of them belong to somebody, only the operator knows.
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
/// It is a customer's, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MobileNumber(String);

/// A text is no Bangladeshi mobile number.
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
        let mut digits = String::with_capacity(14);
        for (place, char) in text.trim().chars().enumerate() {
            match char {
                '0'..='9' => digits.push(char),
                // The ten Bangla digits stand in a row, as the Latin ones do.
                '০'..='৯' => digits.extend(char::from_digit(u32::from(char) - u32::from('০'), 10)),
                ' ' | '-' | '.' | '(' | ')' | '\u{a0}' => {}
                '+' if place == 0 => {}
                _ => return Err(MobileNumberError),
            }
            if digits.len() > 15 {
                return Err(MobileNumberError);
            }
        }
        let national = ["0088", "88"].iter().find_map(|prefix| digits.strip_prefix(prefix)).unwrap_or(&digits);
        let fits = national.len() == 11
            && national.starts_with("01")
            && national.as_bytes().get(2).is_some_and(|operator| (b'3'..=b'9').contains(operator));
        if fits { Ok(Self(national.to_owned())) } else { Err(MobileNumberError) }
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
    fn numbers_are_read_as_people_write_them() {
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
        ] {
            assert_eq!(text.parse::<MobileNumber>().unwrap().as_str(), "01712345678", "{text}");
        }
    }

    #[test]
    fn what_is_no_mobile_number_is_refused() {
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
        fn any_text_is_read_or_refused_and_what_is_read_reads_again(text in "\\PC{0,40}") {
            if let Ok(number) = text.parse::<MobileNumber>() {
                prop_assert_eq!(number.as_str().parse(), Ok(number.clone()));
            }
        }
    }
}
