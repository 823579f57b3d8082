//! Suggests what a misspelt word was meant to be.

use payments_core::text::plain_name;

/// How alike two words must be, from 0 to 1.
const ALIKE: f64 = 0.8;

/// The known word that is most like a word. Only letters and digits count, and case does not. `None` if none is
/// near.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = plain_name(word);
    let alike = known.into_iter().map(|known| (strsim::jaro(&word, &plain_name(known)), known));
    // The first of several that are as near.
    let near =
        alike.filter(|(likeness, _)| *likeness > ALIKE).reduce(|one, other| if other.0 > one.0 { other } else { one });
    near.map(|(_, known)| known)
}

/// A question that ends the message about an unknown word, or nothing if no known word is near.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(word, known).map(|known| format!("; did you mean {known}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_answered_with_the_nearest_known_one() {
        let known = ["listen", "metrics-listen", "base-url", "stripe", "bkash"];
        for (word, meant) in [
            ("lisen", "listen"),
            ("base_url", "base-url"),
            ("BASE_URL", "base-url"),
            ("strip", "stripe"),
            ("bKash", "bkash"),
        ] {
            assert_eq!(did_you_mean(word, known), format!("; did you mean {meant}?"));
        }
        assert_eq!(did_you_mean("hush", known), "");
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("created", ["createdAfter", "createdBefor"]), Some("createdAfter"));
    }
}
