//! Reads a request body field by field, and collects an error for each invalid field.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::near_miss::is_near_miss;
use crate::{Amount, ErrorCode, FieldError, json_fault};

/// The errors of an invalid request: a code and a sentence per fault. A field's sentence begins with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invalid {
    faults: Vec<Fault>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    /// `None` if the fault is not about one field.
    field: Option<String>,
    code: ErrorCode,
    sentence: String,
}

impl Invalid {
    /// Creates errors with one fault that is not about a field.
    #[must_use]
    pub fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { faults: vec![Fault { field: None, code, sentence: sentence.into() }] }
    }

    /// Creates errors with one fault of a field.
    #[must_use]
    pub fn field(field: impl fmt::Display, code: ErrorCode, fault: impl fmt::Display) -> Self {
        let mut invalid = Self::default();
        invalid.add(field, code, fault, ());
        invalid
    }

    /// Adds an error for a field, and returns `instead` so that reading can continue.
    pub fn add<T>(&mut self, field: impl fmt::Display, code: ErrorCode, fault: impl fmt::Display, instead: T) -> T {
        let field = field.to_string();
        let sentence = format!("{field} {fault}");
        self.faults.push(Fault { field: Some(field), code, sentence });
        instead
    }

    /// Adds the errors of another part of the request.
    pub fn append(&mut self, mut other: Self) {
        self.faults.append(&mut other.faults);
    }

    /// Returns the value if there are no errors.
    ///
    /// # Errors
    /// The collected errors.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.faults.is_empty() { Ok(value) } else { Err(self) }
    }

    /// The code that all faults have, or [`ErrorCode::ValidationFailed`] if they have several.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self.faults.split_first() {
            Some((first, rest)) if rest.iter().all(|fault| fault.code == first.code) => first.code.clone(),
            _ => ErrorCode::ValidationFailed,
        }
    }

    /// The faults of fields, in order.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldError> {
        let field = |Fault { field, code, sentence }: &Fault| {
            Some(FieldError { field: field.clone()?, code: code.clone(), message: sentence.clone() })
        };
        self.faults.iter().filter_map(field).collect()
    }

    /// The sentences.
    #[must_use]
    pub fn into_sentences(self) -> Vec<String> {
        self.faults.into_iter().map(|fault| fault.sentence).collect()
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "; " }, fault.sentence)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

/// The fields of an untrusted JSON object. Reading an invalid field collects an error and continues. A field that is
/// `null` counts as missing.
pub struct Fields<'b> {
    /// For example `customer.` for the fields of `customer`.
    prefix: String,
    entries: Vec<(Cow<'b, str>, &'b RawValue)>,
    /// The names read so far.
    known: Vec<&'static str>,
    refuses_near_misses: bool,
    invalid: Invalid,
}

impl<'b> Fields<'b> {
    /// Parses a body.
    ///
    /// # Errors
    /// If the body is not a JSON object in UTF-8, or has a field twice.
    pub fn of_body(body: &'b [u8]) -> Result<Self, Invalid> {
        let text = std::str::from_utf8(body).map_err(|_| Invalid::new(ErrorCode::JsonInvalid, "body must be UTF-8"))?;
        let json: &RawValue = serde_json::from_str(text)
            .map_err(|error| Invalid::new(ErrorCode::JsonInvalid, json_fault::describe(text, &error)))?;
        let entries =
            parse_object(json).ok_or_else(|| Invalid::new(ErrorCode::JsonInvalid, "body must be a JSON object"))?;
        let fields = Self {
            prefix: String::new(),
            entries,
            known: Vec::new(),
            refuses_near_misses: false,
            invalid: Invalid::default(),
        };
        match fields.repeated() {
            Some(name) => Err(Invalid::field(name, ErrorCode::FieldRepeated, "must be given once")),
            None => Ok(fields),
        }
    }

    /// Also collects an error for each unknown field whose name is a misspelling of a known one. Use it for requests
    /// that move money: a misspelt `currency` must not select the default currency.
    #[must_use]
    pub fn refusing_near_misses(mut self) -> Self {
        self.refuses_near_misses = true;
        self
    }

    fn repeated(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.entries.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// The JSON text of a field, or `None` if the field is missing or `null`.
    pub fn raw(&mut self, name: &'static str) -> Option<&'b str> {
        self.known.push(name);
        let (_, value) = self.entries.iter().find(|(known, _)| known == name)?;
        (value.get() != "null").then(|| value.get())
    }

    /// Adds an error for a field, and returns `instead` so that reading can continue.
    pub fn fault<T>(&mut self, name: &str, code: ErrorCode, fault: impl fmt::Display, instead: T) -> T {
        self.invalid.add(format_args!("{}{name}", self.prefix), code, fault, instead)
    }

    /// Reads a string of at most `max_bytes` bytes, or `None` if the field is missing.
    pub fn text(&mut self, name: &'static str, max_bytes: usize) -> Option<String> {
        let json = self.raw(name)?;
        match serde_json::from_str::<String>(json) {
            Ok(text) if text.len() <= max_bytes => Some(text),
            Ok(_) => {
                let fault = format_args!("must be at most {max_bytes} bytes long");
                self.fault(name, ErrorCode::FieldTooLong, fault, None)
            }
            Err(_) => self.fault(name, ErrorCode::FieldInvalid, "must be a string", None),
        }
    }

    /// Reads a required string that must pass `check`, which returns the code and the error otherwise.
    pub fn required_text(
        &mut self,
        name: &'static str,
        max_bytes: usize,
        check: impl FnOnce(&str) -> Result<(), (ErrorCode, &'static str)>,
    ) -> String {
        if self.raw(name).is_none() {
            return self.fault(name, ErrorCode::FieldMissing, "must be given", String::new());
        }
        let Some(text) = self.text(name, max_bytes) else { return String::new() };
        match check(&text) {
            Ok(()) => text,
            Err((code, fault)) => self.fault(name, code, fault, text),
        }
    }

    /// Reads the fields of a nested object, which errors name `outer.field`. A missing object has no fields.
    pub fn nested<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let entries = match self.raw(name) {
            None => Vec::new(),
            Some(_) => {
                let json = self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
                match json.and_then(parse_object) {
                    Some(entries) => entries,
                    None => self.fault(name, ErrorCode::FieldInvalid, "must be an object", Vec::new()),
                }
            }
        };
        self.within(format!("{}{name}.", self.prefix), entries, read)
    }

    /// Reads a list of at most `at_most` objects, which errors name `outer[0].field`. A missing list is empty.
    pub fn objects<T>(&mut self, name: &'static str, at_most: usize, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Some(json) = self.raw(name) else { return Vec::new() };
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            return self.fault(name, ErrorCode::FieldInvalid, "must be a list of objects", Vec::new());
        };
        if items.len() > at_most {
            let fault = format_args!("must have at most {at_most} entries");
            return self.fault(name, ErrorCode::FieldTooLong, fault, Vec::new());
        }
        let mut objects = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{name}[{index}]");
            match parse_object(item) {
                Some(entries) => objects.push(self.within(format!("{}{path}.", self.prefix), entries, &mut read)),
                None => self.fault(&path, ErrorCode::FieldInvalid, "must be an object", ()),
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
            refuses_near_misses: self.refuses_near_misses,
            invalid: std::mem::take(&mut self.invalid),
        };
        let value = read(&mut inner);
        inner.add_near_misses();
        self.invalid = inner.invalid;
        value
    }

    /// Returns the value if there are no errors.
    ///
    /// # Errors
    /// The collected errors, in order.
    pub fn finish<T>(mut self, value: T) -> Result<T, Invalid> {
        self.add_near_misses();
        self.invalid.or(value)
    }

    fn add_near_misses(&mut self) {
        let Self { prefix, entries, known, refuses_near_misses: true, invalid } = self else { return };
        for (name, _) in entries.iter().filter(|(name, _)| !known.iter().any(|known| known == name)) {
            if let Some(meant) = known.iter().find(|known| is_near_miss(name, known)) {
                invalid.add(
                    format_args!("{prefix}{name}"),
                    ErrorCode::FieldUnknown,
                    format_args!("is not a field; did you mean {prefix}{meant}?"),
                    (),
                );
            }
        }
    }
}

/// The entries of a JSON object in order, including repeated names.
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
mod tests {
    use super::*;

    #[test]
    fn errors_name_every_invalid_field() {
        let mut fields = Fields::of_body(br#"{"a":1,"b":"long","c":{"d":[]}}"#).unwrap();
        fields.text("a", 10);
        fields.text("b", 3);
        fields.nested("c", |c| c.text("d", 10));
        fields.required_text("e", 10, |_| Ok(()));
        fields.required_text("b", 10, |_| Err((ErrorCode::UrlInvalid, "must be short")));
        let invalid = fields.finish(()).unwrap_err();
        let codes: Vec<_> =
            invalid.fields().into_iter().map(|field| format!("{} {}", field.field, field.code)).collect();
        assert_eq!(
            codes,
            ["a field_invalid", "b field_too_long", "c.d field_invalid", "e field_missing", "b url_invalid"]
        );
        assert_eq!(
            invalid.into_sentences(),
            [
                "a must be a string",
                "b must be at most 3 bytes long",
                "c.d must be a string",
                "e must be given",
                "b must be short"
            ]
        );
    }

    #[test]
    fn the_code_is_that_of_all_faults_or_says_that_several_failed() {
        let mut invalid = Invalid::field("a", ErrorCode::FieldMissing, "must be given");
        assert_eq!((invalid.code(), invalid.fields().len()), (ErrorCode::FieldMissing, 1));
        invalid.add("b", ErrorCode::FieldMissing, "must be given", ());
        assert_eq!(invalid.code(), ErrorCode::FieldMissing);
        invalid.append(Invalid::new(ErrorCode::JsonInvalid, "body must be UTF-8"));
        assert_eq!((invalid.code(), invalid.fields().len()), (ErrorCode::ValidationFailed, 2));
        assert_eq!(invalid.to_string(), "a must be given; b must be given; body must be UTF-8");
    }

    #[test]
    fn an_unknown_name_fails_only_if_it_is_a_misspelling() {
        let body = br#"{"amout":1,"Customer":{},"other":2,"customer":{"emial":"a","free":1,"bag":{"amout":1}}}"#;
        let read = |mut fields: Fields<'_>| {
            fields.raw("amount");
            fields.nested("customer", |customer| (customer.raw("email"), customer.raw("bag")));
            fields.finish(())
        };
        assert_eq!(read(Fields::of_body(body).unwrap()), Ok(()));
        let sentences = read(Fields::of_body(body).unwrap().refusing_near_misses()).unwrap_err().into_sentences();
        assert_eq!(
            sentences,
            [
                "customer.emial is not a field; did you mean customer.email?",
                "amout is not a field; did you mean amount?",
                "Customer is not a field; did you mean customer?",
            ]
        );
    }

    #[test]
    fn a_body_that_is_not_an_object_fails() {
        for (body, sentence) in [
            (&b""[..], "body must be valid JSON; it is empty"),
            (b"{\"a\":1,}", "body must be valid JSON; trailing comma at line 1, column 8"),
            (b"[]", "body must be a JSON object"),
            (b"null", "body must be a JSON object"),
            (b"{\"a\":\"\xff\"}", "body must be UTF-8"),
            (br#"{"a":1,"\u0061":2}"#, "a must be given once"),
        ] {
            let invalid = Fields::of_body(body).err().unwrap();
            assert_eq!(invalid.into_sentences(), [sentence]);
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
        assert!(Fields::of_body(deep.as_bytes()).is_ok());
    }
}
