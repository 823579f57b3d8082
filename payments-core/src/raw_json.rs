//! JSON values that keep their exact text.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// A JSON value that keeps its exact text, including key order, big integers and `1.10`. Clones share the text.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// `null`.
    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned().into())
    }

    /// Creates a value from JSON text.
    ///
    /// # Errors
    /// If the text is not one JSON value.
    pub fn new(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(|text| Self(text.into()))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// If its `Serialize` fails.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|text| Self(text.into()))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Deserializes the text.
    ///
    /// # Errors
    /// If the text is not a valid `T`.
    pub fn parse<'t, T: Deserialize<'t>>(&'t self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

/// Shows only the length, because the text often holds customer data.
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
        Box::<RawValue>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

/// A merchant's own data on a payment: a JSON object of at most 16 KiB. The API returns it byte for byte.
///
/// Create it from your own struct, or with [`json!`](serde_json::json):
///
/// ```
/// use payments_core::Metadata;
/// use serde_json::json;
///
/// let (order, note) = ("A-17", r#"a "gift""#);
/// let metadata = Metadata::of(json!({ "order": order, "note": note }))?;
/// assert_eq!(metadata.get::<String>("note").as_deref(), Some(note));
/// # Ok::<(), payments_core::MetadataError>(())
/// ```
///
/// Text stays as it is:
///
/// ```
/// # use payments_core::Metadata;
/// let metadata = Metadata::new(r#"{"order": 12345678901234567890, "rate": 1.10}"#)?;
/// assert_eq!(metadata.as_str(), r#"{"order": 12345678901234567890, "rate": 1.10}"#);
/// assert_eq!(metadata.get::<u64>("order"), Some(12345678901234567890));
/// # Ok::<(), payments_core::MetadataError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Metadata(RawJson);

impl Metadata {
    /// The maximum length, in bytes of JSON.
    pub const MAX_BYTES: usize = 16 * 1024;
    /// The maximum nesting depth. Common JSON parsers stop at about 128.
    pub const MAX_DEPTH: usize = 64;

    /// Creates metadata from the text of a JSON object.
    ///
    /// # Errors
    /// If the text is not a JSON object, or is too long or too deep.
    pub fn new(text: impl Into<String>) -> Result<Self, MetadataError> {
        let text = text.into();
        Self::check(&text)?;
        RawJson::new(text).map(Self).map_err(|_| MetadataError::NotAnObject)
    }

    /// Creates metadata from a value that serializes to a JSON object.
    ///
    /// # Errors
    /// If the value cannot be serialized or is not an object, or its JSON is too long or too deep.
    pub fn of(value: impl Serialize) -> Result<Self, MetadataError> {
        Self::new(serde_json::to_string(&value).map_err(|_| MetadataError::NotSerializable)?)
    }

    /// The value of a key, or `None` if the key is missing or has another type.
    #[must_use]
    pub fn get<T: de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let entries: std::collections::HashMap<String, RawJson> = self.0.parse().ok()?;
        entries.get(name)?.parse().ok()
    }

    /// The JSON text.
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
        } else if has_half_character(text) {
            Err(MetadataError::HalfCharacter)
        } else {
            Ok(())
        }
    }
}

impl Default for Metadata {
    /// The empty object.
    fn default() -> Self {
        Self::new("{}").unwrap_or_else(|_| Self(RawJson::null()))
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

/// Does not check the limits, because the server has done so.
impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self)
    }
}

/// The nesting depth of a JSON text.
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

/// Whether a string in a JSON text has an escape for half a surrogate pair. Strict parsers refuse any text that contains one,
/// such as a whole list of payments.
fn has_half_character(json: &str) -> bool {
    let (mut rest, mut has_first_half) = (json.as_bytes(), false);
    while let Some((byte, after)) = rest.split_first() {
        let escaped = (*byte == b'\\').then(|| after.split_first()).flatten();
        let code = match escaped {
            Some((b'u', digits)) => digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok()),
            _ => None,
        };
        let code = code.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let is_second_half = code.is_some_and(|code| (0xdc00..=0xdfff).contains(&code));
        if has_first_half != is_second_half {
            return true;
        }
        has_first_half = code.is_some_and(|code| (0xd800..=0xdbff).contains(&code));
        let length = match (escaped, code) {
            (_, Some(_)) => 6,
            (Some(_), None) => 2,
            (None, None) => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Why a text is not valid metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// It is not a JSON object.
    #[error("must be an object")]
    NotAnObject,
    /// It is longer than [`Metadata::MAX_BYTES`].
    #[error("must be at most 16384 bytes of JSON")]
    TooLong,
    /// It has an escape such as `\ud83d` without its other half.
    #[error("must not have half a character: an escape of \\ud800 to \\udfff without its other half")]
    HalfCharacter,
    /// It nests deeper than [`Metadata::MAX_DEPTH`].
    #[error("must nest at most 64 levels deep")]
    TooDeep,
    /// Its `Serialize` failed, for example for a map whose keys are not strings.
    #[error("must be a value that serializes to JSON")]
    NotSerializable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_must_be_an_object_within_the_limits() {
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
    fn metadata_with_half_a_character_is_refused() {
        for (value, is_whole) in [
            (r"\ud83c\udf81", true),
            (r"\\ud83c", true),
            (r"\\\ud83c", false),
            (r"\ud83c", false),
            (r"\udf81", false),
            (r"\ud83c\ud83c\udf81", false),
            (r"\ud83c\n\udf81", false),
            (r"\ud83c \udf81", false),
            (r"\uD83C\u0985", false),
        ] {
            for json in [format!(r#"{{"a":["{value}"]}}"#), format!(r#"{{"{value}":1}}"#)] {
                let expected = if is_whole { Ok(()) } else { Err(MetadataError::HalfCharacter) };
                assert_eq!(Metadata::new(&*json).map(drop), expected, "{json}");
                assert_eq!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), is_whole, "{json}");
            }
        }
    }

    #[test]
    fn metadata_can_be_any_value_that_serializes_to_an_object() {
        #[derive(Serialize)]
        struct Order<'a> {
            number: &'a str,
            items: u64,
        }
        let metadata = Metadata::of(Order { number: r#"A-"17"#, items: u64::MAX }).unwrap();
        assert_eq!(metadata.as_str(), r#"{"number":"A-\"17","items":18446744073709551615}"#);
        assert_eq!(Metadata::of("A-17"), Err(MetadataError::NotAnObject));
        assert_eq!(Metadata::of(None::<Order<'_>>), Err(MetadataError::NotAnObject));
        let unordered = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(Metadata::of(unordered), Err(MetadataError::NotSerializable));
    }

    #[test]
    fn debug_omits_the_content() {
        let metadata = Metadata::new(r#"{"name":"Asha"}"#).unwrap();
        assert_eq!(format!("{metadata:?}"), "RawJson(15 bytes)");
    }

    #[test]
    fn brackets_inside_a_string_do_not_count_as_depth() {
        assert_eq!(depth(r#"{"a":"[[[\"[[["}"#), 1);
    }

    #[test]
    fn objects_beside_each_other_are_not_deeper_than_one() {
        let wide = |item: &str| format!(r#"{{"a":[{}]}}"#, [item; 100].join(","));
        for (item, levels) in [("{}", 3), ("[]", 3), ("[{}]", 4)] {
            assert_eq!(depth(&wide(item)), levels, "{item}");
            assert!(Metadata::new(wide(item)).is_ok(), "{item}");
        }
    }

    #[test]
    fn two_values_are_equal_if_their_texts_are() {
        let value = |text: &str| RawJson::new(text).unwrap();
        assert_eq!(value("1.10"), value("1.10"));
        assert_eq!(value("[]").clone(), value("[]"));
        for other in ["1.1", "2", "[1.10]"] {
            assert_ne!(value("1.10"), value(other));
        }
    }

    #[test]
    fn the_default_is_the_empty_object() {
        assert_eq!(Metadata::default().as_str(), "{}");
    }
}
