//! Slugs: the names of workspaces in URLs.

use std::collections::HashSet;

/// Turns a workspace's name into a slug that no other has: Latin letters and digits, joined by hyphens. Letters of other
/// scripts become Latin ones.
pub fn unused_slug(name: &str, taken: &HashSet<String>) -> String {
    let slug = match slug(name) {
        empty if empty.is_empty() => "workspace".to_owned(),
        slug => slug,
    };
    let numbered = (2_u64..).map(|nth| format!("{slug}-{nth}"));
    std::iter::once(slug.clone()).chain(numbered).find(|slug| !taken.contains(slug)).unwrap_or(slug)
}

fn slug(name: &str) -> String {
    let latin = deunicode::deunicode(name);
    let words = latin.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_latin_and_unused() {
        let mut taken = HashSet::new();
        for (name, expected) in [
            ("Rahim & Sons", "rahim-sons"),
            ("রহিম অ্যান্ড সন্স", "rhim-ayaandd-sns"),
            ("ঢাকা ক্যাফে", "ddhaakaa-kyaaphe"),
            ("Café Zoë", "cafe-zoe"),
            ("Rahim Sons", "rahim-sons-2"),
            ("Rahim + Sons", "rahim-sons-3"),
            ("!!!", "workspace"),
            ("???", "workspace-2"),
        ] {
            let slug = unused_slug(name, &taken);
            assert_eq!(slug, expected, "{name}");
            taken.insert(slug);
        }
    }
}
