//! JSON kept as the text it came as.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// A JSON value, byte for byte as it was given: key order, big integers and `1.10` included.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Keeps a JSON text.
    ///
    /// # Errors
    /// A text that is not one JSON value.
    pub fn new(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// Writes a value as JSON and keeps the text.
    ///
    /// # Errors
    /// A value whose `Serialize` fails.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as some type.
    ///
    /// # Errors
    /// A text that is not such a value.
    pub fn parse<'t, T: Deserialize<'t>>(&'t self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

/// Says how long it is and not what: most often it holds a customer's data, which does not belong in a log.
impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.as_str().len())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// A merchant's own data on a payment: a JSON object of at most 16 KiB, returned byte for byte as it was given.
///
/// ```
/// use payments_core::Metadata;
///
/// let metadata = Metadata::new(r#"{"order": 12345678901234567890, "rate": 1.10}"#)?;
/// assert_eq!(metadata.as_str(), r#"{"order": 12345678901234567890, "rate": 1.10}"#);
/// assert_eq!(metadata.get::<u64>("order"), Some(12345678901234567890));
/// # Ok::<(), payments_core::MetadataError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Metadata(RawJson);

impl Metadata {
    /// The longest metadata, in bytes of JSON.
    pub const MAX_BYTES: usize = 16 * 1024;
    /// How deep objects and lists may nest. Common readers of JSON give up at about 128.
    pub const MAX_DEPTH: usize = 64;

    /// Takes a JSON object.
    ///
    /// # Errors
    /// A text that is not a JSON object, or one that is too long or too deep.
    pub fn new(text: impl Into<String>) -> Result<Self, MetadataError> {
        let text = text.into();
        Self::check(&text)?;
        RawJson::new(text).map(Self).map_err(|_| MetadataError::NotAnObject)
    }

    /// Reads one entry, or `None` if there is none of that name and type.
    #[must_use]
    pub fn get<T: de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let entries: std::collections::HashMap<String, RawJson> = self.0.parse().ok()?;
        entries.get(name)?.parse().ok()
    }

    /// The object's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    fn check(text: &str) -> Result<(), MetadataError> {
        if !text.trim_start().starts_with('{') {
            Err(MetadataError::NotAnObject)
        } else if text.len() > Self::MAX_BYTES {
            Err(MetadataError::TooLong)
        } else if depth(text) > Self::MAX_DEPTH {
            Err(MetadataError::TooDeep)
        } else {
            Ok(())
        }
    }
}

impl Default for Metadata {
    /// The empty object.
    fn default() -> Self {
        Self::new("{}").unwrap_or_else(|_| Self(RawJson(RawValue::NULL.to_owned())))
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Reads whatever a server sent: what it once took, its client takes.
impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self)
    }
}

/// How deep the objects and lists of a JSON text nest.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    deepest
}

/// Why a text cannot be metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// It is not a JSON object.
    #[error("must be an object")]
    NotAnObject,
    /// It is longer than [`Metadata::MAX_BYTES`].
    #[error("must be at most 16384 bytes of JSON")]
    TooLong,
    /// It nests deeper than [`Metadata::MAX_DEPTH`].
    #[error("must nest at most 64 levels deep")]
    TooDeep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_object_within_its_bounds() {
        let deep = |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
        assert!(Metadata::new("{}").is_ok());
        assert!(Metadata::new(deep(64)).is_ok());
        assert_eq!(Metadata::new(deep(65)), Err(MetadataError::TooDeep));
        assert_eq!(Metadata::new("[]"), Err(MetadataError::NotAnObject));
        assert_eq!(Metadata::new("null"), Err(MetadataError::NotAnObject));
        assert_eq!(Metadata::new("{"), Err(MetadataError::NotAnObject));
        let long = |filler: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(filler));
        assert!(Metadata::new(long(Metadata::MAX_BYTES - 8)).is_ok());
        assert_eq!(Metadata::new(long(Metadata::MAX_BYTES - 7)), Err(MetadataError::TooLong));
    }

    #[test]
    fn debug_shows_nothing_of_what_it_holds() {
        let metadata = Metadata::new(r#"{"name":"Asha"}"#).unwrap();
        assert_eq!(format!("{metadata:?}"), "RawJson(15 bytes)");
    }

    #[test]
    fn brackets_inside_a_string_are_not_depth() {
        assert_eq!(depth(r#"{"a":"[[[\"[[["}"#), 1);
    }

    #[test]
    fn the_default_is_the_empty_object() {
        assert_eq!(Metadata::default().as_str(), "{}");
    }
}
