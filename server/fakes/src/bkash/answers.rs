//! Responses that several bKash calls share.

use http::StatusCode;
use serde_json::{Value, json};

use crate::Answer;

/// Reports a failure, with status 200.
pub(super) fn failure(code: &str, message: &str) -> Answer {
    Answer::ok(&json!({"statusCode": code, "statusMessage": message}))
}

/// Reports that no payment has this id. This failure has its own shape.
pub(super) fn unknown_payment() -> Answer {
    Answer::ok(&json!({"errorCode": "2002", "errorMessage": "Invalid Payment ID"}))
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
