//! A gateway's name in records, keys, URLs, logs and metrics. This crate knows no gateway.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MAX_BYTES: usize = 16;

/// A gateway's name: small letters and digits, at most 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayName([u8; MAX_BYTES]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a gateway's name has 1 to 16 small letters and digits")]
pub struct NotAGatewayName;

impl GatewayName {
    /// A name in the program's text. Does not compile if it cannot be one.
    ///
    /// # Panics
    /// Outside a constant, if it cannot be one.
    #[must_use]
    #[expect(clippy::panic, reason = "names in the program's text are constants")]
    pub const fn of(name: &'static str) -> Self {
        match Self::read(name.as_bytes()) {
            Some(name) => name,
            None => panic!("a gateway's name has 1 to 16 small letters and digits"),
        }
    }

    const fn read(name: &[u8]) -> Option<Self> {
        if name.is_empty() || name.len() > MAX_BYTES {
            return None;
        }
        let (mut bytes, mut at) = ([0; MAX_BYTES], 0);
        while at < name.len() {
            if !(name[at].is_ascii_lowercase() || name[at].is_ascii_digit()) {
                return None;
            }
            bytes[at] = name[at];
            at += 1;
        }
        Some(Self(bytes))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(MAX_BYTES);
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl FromStr for GatewayName {
    type Err = NotAGatewayName;

    fn from_str(name: &str) -> Result<Self, NotAGatewayName> {
        Self::read(name.as_bytes()).ok_or(NotAGatewayName)
    }
}

impl fmt::Display for GatewayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for GatewayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Serialize for GatewayName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for GatewayName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl schemars::JsonSchema for GatewayName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GatewayName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form_and_no_other_text_is_a_name() {
        const WALLET: GatewayName = GatewayName::of("wallet2");
        assert_eq!((WALLET.as_str(), WALLET.to_string()), ("wallet2", "wallet2".to_owned()));
        assert_eq!(serde_json::to_string(&WALLET).unwrap(), r#""wallet2""#);
        assert_eq!(serde_json::from_str::<GatewayName>(r#""wallet2""#).unwrap(), WALLET);
        assert_eq!("sixteen0letters1".parse::<GatewayName>().unwrap().as_str(), "sixteen0letters1");
        for text in ["", "Wallet", "a b", "a/b", "a\0", "seventeen0letters", "ওয়ালেট"] {
            assert_eq!(text.parse::<GatewayName>(), Err(NotAGatewayName), "{text}");
        }
    }
}
