//! The languages of the pages, English and Bangla, and how a visitor chooses one.

use warp::{
    http::{HeaderMap, HeaderValue, header},
    reply::Response,
};

use super::people::cookie;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Bangla,
}

impl Language {
    /// Returns the language chosen in this request or an earlier one; otherwise the browser's preference.
    pub(super) fn of(chosen: Option<&str>, headers: &HeaderMap) -> Self {
        chosen.and_then(Self::named).or_else(|| stored(headers)).unwrap_or_else(|| preferred(headers))
    }

    /// Stores this language in a cookie for the pages below a path.
    pub(super) fn remember(self, path: &str, response: &mut Response) {
        let cookie = format!("{COOKIE}={}; Path={path}; Max-Age=31536000; SameSite=Lax", self.code());
        response.headers_mut().extend(HeaderValue::from_str(&cookie).ok().map(|cookie| (header::SET_COOKIE, cookie)));
    }

    fn named(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "bn" => Some(Self::Bangla),
            _ => None,
        }
    }

    pub(super) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Bangla => "bn",
        }
    }

    pub(super) fn say(self, [english, bangla]: Text) -> &'static str {
        self.text(english, bangla)
    }

    pub(super) fn text(self, english: &'static str, bangla: &'static str) -> &'static str {
        match self {
            Self::English => english,
            Self::Bangla => bangla,
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::English => Self::Bangla,
            Self::Bangla => Self::English,
        }
    }
}

const COOKIE: &str = "lang";

fn stored(headers: &HeaderMap) -> Option<Language> {
    cookie(headers, COOKIE).and_then(Language::named)
}

/// Reads the weights of `Accept-Language` (RFC 9110, section 12.5.4). English by default.
fn preferred(headers: &HeaderMap) -> Language {
    let text = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best = (0.0, Language::English);
    for part in text.split(',') {
        let mut fields = part.split(';').map(str::trim);
        let tag = fields.next().unwrap_or_default().to_ascii_lowercase();
        let weight = fields.find_map(|field| field.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
        let language = Language::named(tag.split('-').next().unwrap_or_default());
        if let Some(language) = language.filter(|_| weight > best.0) {
            best = (weight, language);
        }
    }
    best.1
}

/// A text in English and in Bangla.
pub(super) type Text = [&'static str; 2];

/// The name of the other language, in that language.
pub(super) const OTHER_LANGUAGE: Text = ["বাংলা", "English"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_language_overrides_the_browsers_preference() {
        for (accepted, language) in [
            ("", Language::English),
            ("bn", Language::Bangla),
            ("bn-BD,bn;q=0.9,en;q=0.8", Language::Bangla),
            ("en-GB,en;q=0.9,bn;q=0.8", Language::English),
            ("en;q=0.5, bn;q=0.7", Language::Bangla),
            ("fr-FR, de;q=0.9", Language::English),
            ("bn;q=0", Language::English),
            ("bn;q=x,;;,", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));
            assert_eq!(Language::of(None, &headers), language, "{accepted}");
            assert_eq!(Language::of(Some("bn"), &headers), Language::Bangla);
            assert_eq!(Language::of(Some("xx"), &headers), language, "no language of the page is no choice");
            headers.insert(header::COOKIE, HeaderValue::from_static("a=b; lang=bn"));
            assert_eq!(Language::of(None, &headers), Language::Bangla);
            assert_eq!(Language::of(Some("en"), &headers), Language::English);
        }
    }
}
