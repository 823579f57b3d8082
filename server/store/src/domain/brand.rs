//! How a developer app looks on the checkout page: its logo and its colour.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::stored_as_text;

const MAX_LOGO_BYTES: usize = 2048;

/// A developer app's logo and colour, if the operator has set them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brand {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<LogoUrl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

/// An sRGB colour, written `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour([u8; 3]);

impl Colour {
    pub const BLACK: Self = Self([0; 3]);
    pub const WHITE: Self = Self([255; 3]);

    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Black or white, whichever is easier to read on this colour. The contrast is at least 4.5, as WCAG asks for, on any
    /// colour.
    pub fn text(self) -> Self {
        if self.contrast(Self::WHITE) > self.contrast(Self::BLACK) { Self::WHITE } else { Self::BLACK }
    }

    /// The contrast ratio of WCAG 2.2: from 1, for the same colour, to 21, for black and white.
    pub fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be # and six hexadecimal digits, such as #0a7d4f")]
pub struct ColourError;

impl FromStr for Colour {
    type Err = ColourError;

    fn from_str(text: &str) -> Result<Self, ColourError> {
        let digits = text.strip_prefix('#').ok_or(ColourError)?;
        let mut parts = [0; 3];
        hex::decode_to_slice(digits, &mut parts).map_err(|_| ColourError)?;
        Ok(Self(parts))
    }
}

/// The URL of a logo: `https`, or `http` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoUrl(Url);

impl LogoUrl {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The URL's scheme, host and port, for the page's content security policy.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogoUrlError {
    #[error("must be an absolute URL of an image, such as https://shop.example/logo.svg")]
    NotAUrl,
    #[error("must begin with https:// (http:// is allowed for localhost)")]
    NotHttps,
    #[error("must have no user name and no password, because customers see it")]
    HasPassword,
    #[error("must be at most {MAX_LOGO_BYTES} bytes long")]
    TooLong,
}

impl FromStr for LogoUrl {
    type Err = LogoUrlError;

    fn from_str(text: &str) -> Result<Self, LogoUrlError> {
        let url = Url::parse(text).map_err(|_| LogoUrlError::NotAUrl)?;
        let is_local = match url.host().ok_or(LogoUrlError::NotAUrl)? {
            // A URL allows other characters, such as the semicolon, which would end the source in a policy.
            Host::Domain(name) if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) => {
                return Err(LogoUrlError::NotAUrl);
            }
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        match url.scheme() {
            "https" => {}
            "http" if is_local => {}
            _ => return Err(LogoUrlError::NotHttps),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(LogoUrlError::HasPassword);
        }
        if url.as_str().len() > MAX_LOGO_BYTES {
            return Err(LogoUrlError::TooLong);
        }
        Ok(Self(url))
    }
}

stored_as_text!(Colour: Colour::to_string);
stored_as_text!(LogoUrl: LogoUrl::as_str);

/// A change of an optional setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edit<T> {
    Set(T),
    Remove,
}

impl<T> Edit<T> {
    pub fn apply_to(self, value: &mut Option<T>) {
        *value = match self {
            Self::Set(new) => Some(new),
            Self::Remove => None,
        };
    }
}

/// The word on the command line that removes a value.
const NONE: &str = "none";

impl<T: FromStr> FromStr for Edit<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == NONE { Ok(Self::Remove) } else { text.parse().map(Self::Set) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn colour(text: &str) -> Colour {
        text.parse().unwrap()
    }

    #[test]
    fn a_colour_is_six_digits_after_a_hash() {
        for (text, written) in [("#0a7d4f", Some("#0a7d4f")), ("#FFFFFF", Some("#ffffff"))] {
            assert_eq!(text.parse::<Colour>().ok().map(|colour| colour.to_string()).as_deref(), written);
        }
        for text in
            ["", "#", "0a7d4f", "#0a7d4", "#0a7d4f0", "#0a7d4g", "#fff", "green", "rgb(1,2,3)", "#০১২", " #0a7d4f"]
        {
            assert_eq!(text.parse::<Colour>(), Err(ColourError), "{text}");
        }
    }

    #[test]
    fn the_contrast_is_that_of_wcag() {
        for (one, other, ratio) in [
            ("#000000", "#ffffff", 21.0),
            ("#777777", "#ffffff", 4.48),
            ("#767676", "#ffffff", 4.54),
            ("#0a7d4f", "#ffffff", 5.17),
            ("#ff0000", "#ffffff", 4.0),
            ("#123456", "#123456", 1.0),
        ] {
            let found = colour(one).contrast(colour(other));
            assert!((found - ratio).abs() < 0.01, "{one} on {other}: {found}");
            assert_eq!(found, colour(other).contrast(colour(one)));
        }
    }

    #[test]
    fn text_is_white_on_dark_colours_and_black_on_light_ones() {
        for (background, text) in [
            ("#0a7d4f", Colour::WHITE),
            ("#000000", Colour::WHITE),
            ("#e2136e", Colour::WHITE),
            ("#ffffff", Colour::BLACK),
            ("#ffd400", Colour::BLACK),
            ("#808080", Colour::BLACK),
        ] {
            assert_eq!(colour(background).text(), text, "{background}");
        }
    }

    proptest! {
        #[test]
        fn text_is_legible_on_every_colour(red: u8, green: u8, blue: u8) {
            let background = Colour::new(red, green, blue);
            prop_assert!(background.contrast(background.text()) >= 4.5);
            prop_assert_eq!(background.to_string().parse(), Ok(background));
        }
    }

    #[test]
    fn a_logo_has_an_https_url_or_is_on_this_machine() {
        for (text, origin) in [
            ("https://cdn.example/a b.svg?v=2#x", Ok("https://cdn.example")),
            ("https://cdn.example:8443/logo.png", Ok("https://cdn.example:8443")),
            ("https://চা.example/logo.png", Ok("https://xn--u5b6e.example")),
            ("http://localhost:3000/logo.png", Ok("http://localhost:3000")),
            ("http://[::1]/logo.png", Ok("http://[::1]")),
            ("http://cdn.example/logo.png", Err(LogoUrlError::NotHttps)),
            ("http://localhost.evil.example/", Err(LogoUrlError::NotHttps)),
            ("data:image/png;base64,AA==", Err(LogoUrlError::NotAUrl)),
            ("javascript:alert(1)", Err(LogoUrlError::NotAUrl)),
            ("ftp://cdn.example/logo.png", Err(LogoUrlError::NotHttps)),
            ("/logo.png", Err(LogoUrlError::NotAUrl)),
            ("https://cdn.example;script-src/", Err(LogoUrlError::NotAUrl)),
            ("https://cdn.example,evil/", Err(LogoUrlError::NotAUrl)),
            ("https://me:secret@cdn.example/", Err(LogoUrlError::HasPassword)),
            ("https://me@cdn.example/", Err(LogoUrlError::HasPassword)),
            ("https://:secret@cdn.example/", Err(LogoUrlError::HasPassword)),
            (&format!("https://cdn.example/{}", "x".repeat(MAX_LOGO_BYTES - 20)), Ok("https://cdn.example")),
            (&format!("https://cdn.example/{}", "x".repeat(MAX_LOGO_BYTES)), Err(LogoUrlError::TooLong)),
        ] {
            assert_eq!(text.parse::<LogoUrl>().map(|logo| logo.origin()), origin.map(str::to_owned), "{text}");
        }
        let logo: LogoUrl = "https://cdn.example/\"; script-src *".parse().unwrap();
        assert_eq!(
            (logo.as_str(), &*logo.origin()),
            ("https://cdn.example/%22;%20script-src%20*", "https://cdn.example")
        );
    }

    #[test]
    fn a_brand_survives_a_round_trip_and_a_bad_one_is_not_read() {
        let brand = Brand { logo_url: "https://cdn.example/a".parse().ok(), colour: Some(colour("#0a7d4f")) };
        let json = serde_json::to_string(&brand).unwrap();
        assert_eq!(json, r##"{"logoUrl":"https://cdn.example/a","colour":"#0a7d4f"}"##);
        assert_eq!(serde_json::from_str::<Brand>(&json).unwrap(), brand);
        assert_eq!(serde_json::from_str::<Brand>("{}").unwrap(), Brand::default());
        assert!(serde_json::from_str::<Brand>(r#"{"colour":"red}body{display:none"}"#).is_err());
    }

    #[test]
    fn none_removes_a_value_and_anything_else_sets_one() {
        let mut value = Some(Colour::BLACK);
        "#ffffff".parse::<Edit<Colour>>().unwrap().apply_to(&mut value);
        assert_eq!(value, Some(Colour::WHITE));
        "none".parse::<Edit<Colour>>().unwrap().apply_to(&mut value);
        assert_eq!(value, None);
        assert_eq!("white".parse::<Edit<Colour>>(), Err(ColourError));
    }
}
