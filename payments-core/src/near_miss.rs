//! Detects misspelt field names.

/// Whether a name is near a known one: equal, one edit away, or its plural or singular. Both names must be
/// [plain](crate::text::plain_name).
pub(crate) fn is_near_miss(name: &str, known: &str) -> bool {
    name == known || is_one_edit(name, known) || is_plural(name, known) || is_plural(known, name)
}

/// Whether a word is the plural of one that ends with `y`. The plural of any other word is one edit away.
fn is_plural(plural: &str, word: &str) -> bool {
    plural.strip_suffix("ies").is_some_and(|stem| word.strip_suffix('y') == Some(stem))
}

/// Whether two names differ by one inserted, deleted, substituted or transposed letter (a Damerau-Levenshtein distance of 1).
fn is_one_edit(name: &str, known: &str) -> bool {
    if name == known {
        return false;
    }
    // Strip the common prefix and suffix, and compare what remains.
    let (name_chars, known_chars): (Vec<char>, Vec<char>) = (name.chars().collect(), known.chars().collect());
    let begin = name_chars.iter().zip(&known_chars).take_while(|(one, other)| one == other).count();
    let (name_rest, known_rest) = (&name_chars[begin..], &known_chars[begin..]);
    let end = name_rest.iter().rev().zip(known_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    match (&name_rest[..name_rest.len() - end], &known_rest[..known_rest.len() - end]) {
        ([_], []) | ([], [_]) | ([_], [_]) => true,
        ([first, second], [third, fourth]) if first == fourth && second == third => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::plain_name;

    #[test]
    fn a_misspelling_is_a_near_miss_and_another_word_is_not() {
        let is_near = |name: &str, known: &str| is_near_miss(&plain_name(name), &plain_name(known));
        for near in ["curency", "currrency", "currancy", "currnecy", "Currency", "CURRENCY", "urrency", "currencies"] {
            assert!(is_near(near, "currency"), "{near}");
        }
        for far in ["", "curncy", "ycurrenc", "cur", "currents"] {
            assert!(!is_near(far, "currency"), "{far}");
        }
        for near in ["customer-email", "CustomerEmail", "customer[email]", "customer.e_mail", "customeremails"] {
            assert!(is_near(near, "customerEmail"), "{near}");
        }
        assert!(is_near("retry", "retries") && is_near("event", "events") && is_near("redirectURL", "redirectUrl"));
        assert!(!is_near("customerPhone", "customerName") && !is_near("\u{9a8}\u{9be}\u{9ae}", "name"));
    }

    proptest! {
        /// Compares with the textbook algorithm.
        #[test]
        fn one_edit_is_a_damerau_levenshtein_distance_of_one(one in "[abA]{0,5}", other in "[abA]{0,5}") {
            prop_assert_eq!(is_one_edit(&one, &other), distance(&one, &other) == 1);
        }
    }

    fn distance(one: &str, other: &str) -> usize {
        let (one, other) = (one.as_bytes(), other.as_bytes());
        let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
        for i in 0..=one.len() {
            for j in 0..=other.len() {
                table[i][j] = if i == 0 || j == 0 {
                    i + j
                } else {
                    let substituted = table[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                    let mut least = substituted.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                        least = least.min(table[i - 2][j - 2] + 1);
                    }
                    least
                };
            }
        }
        table[one.len()][other.len()]
    }
}
