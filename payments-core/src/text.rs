//! Text from outside that people read in one line: names, phone numbers, rows of tables.

/// Whether a program acts on a character, or hides it, instead of showing it: controls, ends of lines, marks of direction
/// and invisible characters. The joiners of Bangla and other scripts are not among them.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    breaks_line(char)
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
        || matches!(char, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character ends a line, changes its direction from there on, or controls a terminal.
fn breaks_line(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text is one line without control characters and marks of direction.
#[must_use]
pub fn is_one_line(text: &str) -> bool {
    !text.contains(breaks_line)
}

/// Reduces a name to its letters and digits in small letters: `customer-email` and `Customer[Email]` become equal.
#[must_use]
pub fn plain_name(name: &str) -> String {
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A phone number in its stored form: Latin digits, `+`, `-`, `(`, `)`, and single spaces between them. Hidden characters are
/// dropped. All kinds of dashes, digits and spaces become these, and dots and slashes become spaces. `(0)` is dropped after a
/// country code, because nobody dials it there, and is `0` elsewhere. `None` if the text has any other character, such as a
/// letter.
pub(crate) fn phone_number(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        plain.push(match char {
            '+' | '(' | ')' => char,
            '＋' | '﬩' => '+',
            '（' => '(',
            '）' => ')',
            '-' | '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
            '.' | '/' | '·' => ' ',
            char if char.is_whitespace() => ' ',
            '\u{200c}' | '\u{200d}' => continue,
            char if is_hidden(char) => continue,
            char => latin_digit(char)?,
        });
    }
    let has_country = ["+", "(+", "00"].iter().any(|prefix| plain.trim_start().starts_with(prefix));
    // `88` alone is no country code, because Bangladesh's is 880.
    let before =
        plain.split_once("(0)").map_or("", |(before, _)| before.trim_start_matches(['+', '0', ' ', '(']).trim_end());
    let plain = plain.replace("(0)", if has_country && before != "88" { " " } else { "0" });
    Some(plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Converts a decimal digit of a script used in Bangladesh or nearby to a Latin digit.
fn latin_digit(char: char) -> Option<char> {
    let zeros = ['0', '০', '٠', '۰', '०', '０'].map(u32::from);
    let digit = zeros.into_iter().find_map(|zero| u32::from(char).checked_sub(zero).filter(|digit| *digit < 10))?;
    char::from_digit(digit, 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_phone_number_is_stored_in_one_plain_form() {
        for (text, stored) in [
            ("+880 1712-345678", Some("+880 1712-345678")),
            (" 01712\u{a0}345\t678\r\n", Some("01712 345 678")),
            ("\u{202d}+880\u{200b}1712\u{2011}345678\u{202c}", Some("+8801712-345678")),
            ("01712–345—678", Some("01712-345-678")),
            ("+44 (0) 20 7946 0000", Some("+44 20 7946 0000")),
            ("+44(0)20 7946 0000", Some("+44 20 7946 0000")),
            ("(0)1712 345678", Some("01712 345678")),
            ("+880 (0) 1712-345678", Some("+880 1712-345678")),
            ("+88 (0)1712-345678", Some("+88 01712-345678")),
            ("(02) 9876543", Some("(02) 9876543")),
            ("02/9876.543", Some("02 9876 543")),
            ("০১৭১২৩৪৫৬৭৮", Some("01712345678")),
            ("＋８８０ 1712", Some("+880 1712")),
            ("", Some("")),
            ("01712345678\npay_1 750 BDT", None),
            ("\u{1b}[2J01712345678", None),
            ("01712345678 ext. 5", None),
        ] {
            assert_eq!(phone_number(text).as_deref(), stored, "{text:?}");
        }
    }

    #[test]
    fn one_line_has_no_controls_and_keeps_its_direction() {
        for name in ["Asha Rahman", "র\u{200d}্যাব", "عائشة\u{200f}", "O'Neill 🎁", ""] {
            assert!(is_one_line(name), "{name:?}");
        }
        for name in ["Asha\nRahman", "\u{1b}[2J", "a\tb", "a\u{2028}b", "\u{202e}evil", "\u{2066}", "\0", "\u{9b}2J"] {
            assert!(!is_one_line(name) && name.chars().any(is_hidden), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_stored_phone_number_stays_as_it_is(text in "[0-9০-৯+() ./\\-\u{2013}\u{a0}\t\u{200b}]{0,40}") {
            let stored = phone_number(&text).unwrap();
            prop_assert_eq!(phone_number(&stored), Some(stored.clone()));
            prop_assert!(stored.chars().all(|char| char.is_ascii_digit() || "+-() ".contains(char)));
        }
    }
}
