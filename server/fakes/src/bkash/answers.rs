//! Responses that several bKash calls share.

use http::StatusCode;
use serde_json::{Value, json};

use crate::Answer;

/// Why a call fails: bKash's code, and its message.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) &'static str, pub(super) String);

/// Refuses a call.
pub(super) fn refusal(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal(code, message.into())
}

/// Reports that no payment has this id.
pub(super) fn unknown_payment() -> Refusal {
    refusal("2002", "Invalid Payment ID")
}

pub(super) fn unauthorized(message: &str) -> Answer {
    Answer::json(StatusCode::UNAUTHORIZED, &json!({"message": message}))
}

pub(super) fn not_found() -> Answer {
    Answer::json(StatusCode::NOT_FOUND, &json!({"message": "no such resource"}))
}

/// The text of a body's field.
pub(super) fn text<'b>(body: &'b Value, name: &str) -> Option<&'b str> {
    body.get(name).and_then(Value::as_str)
}
