//! Words of later API versions, in enums that implement `Copy`.

use std::fmt;

/// The maximum length of a word.
const MAX_BYTES: usize = 16;

/// A word that this version does not know: 1 to 16 visible ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherWord([u8; MAX_BYTES]);

impl OtherWord {
    /// `None` if the text is not 1 to 16 visible ASCII characters.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; MAX_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Self(bytes))
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(MAX_BYTES);
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl fmt::Debug for OtherWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Implements how an enum of words is read: open by `Deserialize`, for answers of later API versions; closed by `FromStr` and
/// `deserialize_closed`, for requests and records.
macro_rules! open_when_read {
    ($name:ident, $error:expr, $as_str:ident) => {
        impl $name {
            /// Deserializes a value that this version knows. For `#[serde(deserialize_with)]` in a server's records.
            ///
            /// # Errors
            /// If this version does not know the value.
            pub fn deserialize_closed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value: Self = serde::Deserialize::deserialize(deserializer)?;
                if value.is_known() { Ok(value) } else { Err(serde::de::Error::custom($error)) }
            }

            /// Whether this version knows the value.
            #[must_use]
            pub const fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.$as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                let known = Self::ALL.into_iter().find(|value| value.$as_str() == word);
                let value = known.or_else(|| crate::short_word::OtherWord::new(&word).map(Self::Other));
                value.ok_or_else(|| serde::de::Error::custom($error))
            }
        }
    };
}

pub(crate) use open_when_read;

#[cfg(test)]
mod tests {
    use crate::{Currency, Environment};

    #[test]
    fn an_unknown_word_is_read_and_written_unchanged_and_refused_by_a_server() {
        let currency: Currency = serde_json::from_str(r#""EUR""#).unwrap();
        assert_eq!((currency.code(), serde_json::to_string(&currency).unwrap()), ("EUR", r#""EUR""#.to_owned()));
        assert!(!currency.is_known() && "EUR".parse::<Currency>().is_err());
        let environment: Environment = serde_json::from_str(r#""rehearsal""#).unwrap();
        assert_eq!(environment.to_string(), "rehearsal");
        for (json, is_closed) in [(r#""USD""#, true), (r#""usd""#, false), (r#""EUR""#, false)] {
            let read = Currency::deserialize_closed(&mut serde_json::Deserializer::from_str(json));
            assert_eq!(read.is_ok(), is_closed, "{json}");
        }
        for json in [r#""""#, r#""a b""#, r#""seventeen_letters""#, r#""ü""#, "1"] {
            assert!(serde_json::from_str::<Currency>(json).is_err(), "{json}");
        }
    }
}
