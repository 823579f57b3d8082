//! The body of an error response.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use crate::ErrorCode;

/// The body of an error response (API specification, "Errors").
///
/// The specification has only the first three fields, so `code` and `fields` may be missing. If they have another shape, they
/// also read as missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The HTTP status.
    #[serde(rename = "statusCode")]
    pub status_code: u16,
    /// What went wrong: a list with one sentence per invalid field for a validation error, else one sentence.
    pub message: Message,
    /// The reason phrase of the status, such as `Bad Request`.
    pub error: String,
    /// The stable code of the error. `None` from a server without codes.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Every invalid field of a validation error; else empty.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
}

/// A field of the body, or a parameter of the query, that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field's name. The name of a nested field has dots, such as `customer.email`.
    pub field: String,
    /// What is wrong with the field.
    pub code: ErrorCode,
    /// The sentence about the field, which begins with its name.
    pub message: String,
}

/// Reads a value, or the default if the value has another shape, so that the errors of every server can be read.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// One sentence, or one per invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// One sentence.
    One(String),
    /// One sentence per invalid field.
    Many(Vec<String>),
}

impl Message {
    /// The sentences.
    #[must_use]
    pub fn sentences(&self) -> &[String] {
        match self {
            Self::One(sentence) => std::slice::from_ref(sentence),
            Self::Many(sentences) => sentences,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str) -> ErrorBody {
        serde_json::from_str(&format!(r#"{{"statusCode":400,"message":["a b"],"error":"Bad Request"{rest}}}"#)).unwrap()
    }

    #[test]
    fn a_body_without_a_code_or_with_a_malformed_one_can_be_read() {
        for rest in ["", r#","code":null,"fields":null"#, r#","code":7,"fields":"no""#, r#","code":{},"fields":[{}]"#] {
            let body = read(rest);
            assert_eq!((body.code, body.fields, body.message.sentences()), (None, vec![], &["a b".to_owned()][..]));
        }
    }

    #[test]
    fn a_body_keeps_codes_that_this_version_does_not_know() {
        let rest = r#","code":"later","fields":[{"field":"a","code":"later","message":"a b","index":3}]"#;
        let body = read(rest);
        assert_eq!(body.code, Some(ErrorCode::from("later")));
        assert_eq!(body.fields[0], FieldError { field: "a".into(), code: "later".into(), message: "a b".into() });
    }

    #[test]
    fn the_specified_fields_come_first_and_nothing_is_added_without_a_code() {
        for rest in ["", r#","code":"json_invalid""#] {
            let text = format!(r#"{{"statusCode":400,"message":["a b"],"error":"Bad Request"{rest}}}"#);
            assert_eq!(serde_json::to_string(&read(rest)).unwrap(), text);
        }
    }
}
