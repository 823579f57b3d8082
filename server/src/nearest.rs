//! Suggests what a misspelt word was meant to be.

/// How alike two words must be, from 0 to 1.
const ALIKE: f64 = 0.8;

/// A question that ends the message about an unknown word, or nothing if no known word is near.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let alike = known.into_iter().map(|known| (strsim::jaro(word, known), known));
    let nearest = alike.filter(|(likeness, _)| *likeness > ALIKE).max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, known)| format!("; did you mean {known}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_answered_with_the_nearest_known_one() {
        let known = ["listen", "metrics-listen", "base-url", "stripe", "bkash"];
        for (word, meant) in [("lisen", "listen"), ("base_url", "base-url"), ("strip", "stripe"), ("bKash", "bkash")] {
            assert_eq!(did_you_mean(word, known), format!("; did you mean {meant}?"));
        }
        assert_eq!(did_you_mean("hush", known), "");
    }
}
