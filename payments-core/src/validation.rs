//! Reads a request body field by field, and collects an error for each invalid field.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

pub use crate::invalid::Invalid;
use crate::{
    Amount, ErrorCode, json_error,
    name_case::is_same_field,
    near_miss::is_near_miss,
    text::{is_one_line, plain_name},
};

/// The first bytes of every gzip body.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The error of a text that must be one line.
pub(crate) const ONE_LINE: &str = "must be one line, without control characters";
/// The errors of a string with an escape such as `\ud83d`, and of an object that has a name with one.
const HALF_CHARACTER: &str = "has half a character: an escape of \\ud800 to \\udfff without its other half";
const HALF_NAME: &str =
    "has a field whose name has half a character: an escape of \\ud800 to \\udfff without its other half";

/// The error of a field that an object has twice.
const ONCE: &str = "must be given once";

/// How many unknown fields an error names, and how much of each name.
const MAX_NAMED: usize = 10;
const MAX_NAME_CHARS: usize = 64;

/// The fields of an untrusted JSON object. Reading an invalid field collects an error and continues. A field that is `null`
/// counts as missing. Each name is read in camelCase and in snake_case. If both are present, the spelling in the code counts.
pub struct Fields<'b> {
    /// The prefix of names in errors, such as `customer.` for the fields of `customer`.
    prefix: String,
    entries: Vec<(Cow<'b, str>, &'b RawValue)>,
    /// The names read so far.
    known: Vec<&'static str>,
    unknown: Unknown,
    invalid: Invalid,
}

/// What to do with fields that nobody reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Ignored,
    NearMissesRefused,
    Refused,
}

impl<'b> Fields<'b> {
    /// Parses a body.
    ///
    /// # Errors
    /// If the body is not a JSON object in UTF-8, or has a field twice.
    pub fn of_body(body: &'b [u8]) -> Result<Self, Invalid> {
        let text = std::str::from_utf8(body).map_err(|_| {
            let error = match body.starts_with(GZIP) {
                true => "body must be UTF-8; it is compressed by gzip, send it as it is",
                false => "body must be UTF-8",
            };
            Invalid::new(ErrorCode::JsonInvalid, error)
        })?;
        let json: &RawValue = serde_json::from_str(text)
            .map_err(|error| Invalid::new(ErrorCode::JsonInvalid, json_error::describe(text, &error)))?;
        let entries = parse_object(json).ok_or_else(|| {
            let error = if is_object(json) { HALF_NAME } else { "must be a JSON object" };
            Invalid::new(ErrorCode::JsonInvalid, format!("body {error}"))
        })?;
        let fields = Self {
            prefix: String::new(),
            entries,
            known: Vec::new(),
            unknown: Unknown::Ignored,
            invalid: Invalid::default(),
        };
        match repeated(&fields.entries) {
            Some(name) => Err(Invalid::field(name, ErrorCode::FieldRepeated, ONCE)),
            None => Ok(fields),
        }
    }

    /// Also collects an error for each unknown field whose name is a misspelling of a known one. Use it where a field's
    /// absence means something: a misspelt `currency` must not select the default currency.
    #[must_use]
    pub fn refusing_near_misses(mut self) -> Self {
        self.unknown = Unknown::NearMissesRefused;
        self
    }

    /// Also collects an error for each unknown field. Use it where money moves back or out: a refund with a misspelt `amount`
    /// must not refund everything.
    #[must_use]
    pub fn refusing_unknown(mut self) -> Self {
        self.unknown = Unknown::Refused;
        self
    }

    /// Whether the object has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The JSON text of a field, or `None` if the field is missing or `null`.
    pub fn raw(&mut self, name: &'static str) -> Option<&'b str> {
        self.value(name).map(RawValue::get)
    }

    /// Whether the object has a field, even if it is `null`.
    pub fn has(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        self.entries.iter().any(|(given, _)| is_same_field(given, name))
    }

    fn value(&mut self, name: &'static str) -> Option<&'b RawValue> {
        self.known.push(name);
        self.given(name)
    }

    /// The value under a name in either case, unless it is `null`.
    fn given(&self, name: &str) -> Option<&'b RawValue> {
        let given = self.entries.iter().filter(|(given, value)| is_same_field(given, name) && value.get() != "null");
        given.min_by_key(|(given, _)| given != name).map(|(_, value)| *value)
    }

    /// Adds an error for a field, and returns `instead` so that reading can continue.
    pub fn error<T>(&mut self, name: &str, code: ErrorCode, error: impl fmt::Display, instead: T) -> T {
        self.invalid.add(format_args!("{}{name}", self.prefix), code, error, instead)
    }

    /// Does the same as [`error`](Self::error) for a number, `true` or `false`. If only quotes are wrong, the error says so.
    pub fn value_error<T>(&mut self, name: &str, code: ErrorCode, error: impl fmt::Display, instead: T) -> T {
        let value = self.given(name).map(RawValue::get);
        let quoted = value.and_then(|json| json.strip_prefix('"')?.strip_suffix('"'));
        match quoted
            .is_some_and(|text| matches!(text, "true" | "false") || text.trim().parse().is_ok_and(f64::is_finite))
        {
            true => self.error(name, code, format_args!("{error}, without quotes"), instead),
            false => self.error(name, code, error, instead),
        }
    }

    /// Reads a string of at most `max_bytes` bytes, or `None` if the field is missing.
    pub fn text(&mut self, name: &'static str, max_bytes: usize) -> Option<String> {
        self.measured(name, str::len, max_bytes, "bytes")
    }

    /// Reads a string of at most `max_chars` characters, or `None` if the field is missing.
    pub fn short_text(&mut self, name: &'static str, max_chars: usize) -> Option<String> {
        self.measured(name, |text| text.chars().count(), max_chars, "characters")
    }

    fn measured(&mut self, name: &'static str, length: fn(&str) -> usize, most: usize, unit: &str) -> Option<String> {
        let json = self.raw(name)?;
        match serde_json::from_str::<String>(json) {
            Ok(text) if length(&text) <= most => Some(text),
            Ok(_) => {
                let error = format_args!("must be at most {most} {unit} long");
                self.error(name, ErrorCode::FieldTooLong, error, None)
            }
            // Only half a character makes a JSON string invalid.
            Err(_) if json.starts_with('"') => self.error(name, ErrorCode::FieldInvalid, HALF_CHARACTER, None),
            Err(_) => self.error(name, ErrorCode::FieldInvalid, "must be a string", None),
        }
    }

    /// Reads a string of at most `max_bytes` bytes that is one line.
    pub(crate) fn line(&mut self, name: &'static str, max_bytes: usize) -> Option<String> {
        let text = self.text(name, max_bytes)?;
        if is_one_line(&text) { Some(text) } else { self.error(name, ErrorCode::FieldInvalid, ONE_LINE, None) }
    }

    /// Reads a required string that must pass `check`, which returns the code and the error otherwise.
    pub fn required_text(
        &mut self,
        name: &'static str,
        max_bytes: usize,
        check: impl FnOnce(&str) -> Result<(), (ErrorCode, &'static str)>,
    ) -> String {
        if self.raw(name).is_none() {
            return self.error(name, ErrorCode::FieldMissing, "must be given", String::new());
        }
        let Some(text) = self.text(name, max_bytes) else { return String::new() };
        match check(&text) {
            Ok(()) => text,
            Err((code, error)) => self.error(name, code, error, text),
        }
    }

    /// Reads the fields of a nested object, which errors name `outer.field`. A missing object has no fields.
    pub fn nested<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let entries = match self.value(name) {
            None => Vec::new(),
            Some(json) => parse_object(json).unwrap_or_else(|| {
                let error = if is_object(json) { HALF_NAME } else { "must be an object" };
                self.error(name, ErrorCode::FieldInvalid, error, Vec::new())
            }),
        };
        self.within(format!("{}{name}.", self.prefix), entries, read)
    }

    /// Reads a list of at most `at_most` objects, which errors name `outer[0].field`. A missing list is empty.
    pub fn objects<T>(&mut self, name: &'static str, at_most: usize, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Some(json) = self.raw(name) else { return Vec::new() };
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            return self.error(name, ErrorCode::FieldInvalid, "must be a list of objects", Vec::new());
        };
        if items.len() > at_most {
            let error = format_args!("must have at most {at_most} entries");
            return self.error(name, ErrorCode::FieldTooLong, error, Vec::new());
        }
        let mut objects = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{name}[{index}]");
            match parse_object(item) {
                Some(entries) => objects.push(self.within(format!("{}{path}.", self.prefix), entries, &mut read)),
                None => {
                    let error = if is_object(item) { HALF_NAME } else { "must be an object" };
                    self.error(&path, ErrorCode::FieldInvalid, error, ());
                }
            }
        }
        objects
    }

    /// Reads the fields of an inner object.
    fn within<T>(
        &mut self,
        prefix: String,
        entries: Vec<(Cow<'b, str>, &'b RawValue)>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut inner = Fields {
            prefix,
            entries,
            known: Vec::new(),
            unknown: self.unknown,
            invalid: std::mem::take(&mut self.invalid),
        };
        let value = read(&mut inner);
        if let Some(name) = repeated(&inner.entries) {
            inner.invalid.add(format_args!("{}{name}", inner.prefix), ErrorCode::FieldRepeated, ONCE, ());
        }
        inner.add_unknown();
        self.invalid = inner.invalid;
        value
    }

    /// Returns the value if there are no errors.
    ///
    /// # Errors
    /// The collected errors, in order.
    pub fn finish<T>(mut self, value: T) -> Result<T, Invalid> {
        self.add_unknown();
        self.invalid.or(value)
    }

    fn add_unknown(&mut self) {
        let Self { prefix, entries, known, unknown, invalid } = self;
        if *unknown == Unknown::Ignored {
            return;
        }
        known.dedup();
        let errors = entries.iter().filter_map(|(name, _)| {
            if known.iter().any(|known| is_same_field(name, known)) {
                return None;
            }
            let given = plain_name(name);
            let is_near = |known: &&&str| is_near_miss(&given, &plain_name(known));
            let error = match known.iter().find(is_near) {
                Some(meant) => format!("is not a field; did you mean {prefix}{meant}?"),
                None if *unknown == Unknown::Refused => format!("is not a field; the fields are {}", known.join(", ")),
                None => return None,
            };
            Some((name.chars().take(MAX_NAME_CHARS).collect::<String>(), error))
        });
        for (name, error) in errors.take(MAX_NAMED) {
            invalid.add(format_args!("{prefix}{name}"), ErrorCode::FieldUnknown, error, ());
        }
    }
}

/// A name that an object has twice.
fn repeated<'e>(entries: &'e [(Cow<'_, str>, &RawValue)]) -> Option<&'e str> {
    if entries.len() < 2 {
        return None;
    }
    let mut names: Vec<&str> = entries.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Whether JSON is an object, even one that [`parse_object`] refuses.
fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

/// The entries of a JSON object in order, including repeated names. `None` if it is no object or a name has half a character.
fn parse_object(json: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Entries<'b>(Vec<(Cow<'b, str>, &'b RawValue)>);

    impl<'de> Deserialize<'de> for Entries<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> de::Visitor<'de> for Visitor {
                type Value = Entries<'de>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<M: de::MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                    let mut entries = Vec::new();
                    while let Some(entry) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                        entries.push((entry.0.0, entry.1));
                    }
                    Ok(Entries(entries))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }

    /// A name, borrowed unless it contains escapes.
    #[derive(Deserialize)]
    struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

    serde_json::from_str::<Entries<'_>>(json.get()).ok().map(|entries| entries.0)
}

/// Reads a JSON number without a fraction, such as `300`, `300.0` or `3e2`: JSON Schema counts all three as integers.
#[must_use]
pub fn whole_number(json: &str) -> Option<u64> {
    json.parse().ok().or_else(|| {
        let minor = json.parse::<Amount>().ok()?.as_minor();
        (minor % 100 == 0).then_some(minor / 100)
    })
}

#[cfg(test)]
mod tests;
