//! Detects misspelt field names.

/// Whether a name is a misspelling of a known one: it differs in case only, or by one inserted, deleted, substituted or
/// transposed letter (a Damerau-Levenshtein distance of 1).
pub(crate) fn is_near_miss(name: &str, known: &str) -> bool {
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
        _ => name.eq_ignore_ascii_case(known),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_misspelling_is_a_near_miss_and_another_word_is_not() {
        for near in ["curency", "currrency", "currancy", "currnecy", "Currency", "CURRENCY", "urrency", "currencyy"] {
            assert!(is_near_miss(near, "currency"), "{near}");
        }
        for far in ["currency", "", "curncy", "currencies", "CUrrenc", "ycurrenc", "cur"] {
            assert!(!is_near_miss(far, "currency"), "{far}");
        }
        // The API uses both names of each pair.
        assert!(!is_near_miss("successUrl", "success_url"));
        assert!(!is_near_miss("customerPhone", "customerName"));
    }

    proptest! {
        /// Compares with the textbook algorithm.
        #[test]
        fn a_near_miss_has_a_damerau_levenshtein_distance_of_one(one in "[abA]{0,5}", other in "[abA]{0,5}") {
            let is_one_edit = distance(&one, &other) == 1;
            prop_assert_eq!(is_near_miss(&one, &other), one != other && (is_one_edit || one.eq_ignore_ascii_case(&other)));
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
