//! Stripe's error bodies.

use http::StatusCode;
use serde_json::json;

use crate::Answer;

/// Refuses a request, with the code and the parameter that Stripe names.
pub(super) fn refused(code: Option<&str>, message: &str, param: Option<&str>) -> Answer {
    error(StatusCode::BAD_REQUEST, "invalid_request_error", code, message, param)
}

/// Refuses a parameter's value.
pub(super) fn invalid(param: &str, message: &str) -> Answer {
    refused(None, message, Some(param))
}

/// Refuses a parameter that Stripe does not know. A known name that ends with `[` is the beginning of names.
pub(super) fn refuse_unknown<'n>(mut names: impl Iterator<Item = &'n String>, known: &[&str]) -> Result<(), Answer> {
    let is_known = |name: &str| known.iter().any(|it| *it == name || it.ends_with('[') && name.starts_with(it));
    names.find(|name| !is_known(name)).map_or(Ok(()), |name| {
        Err(refused(Some("parameter_unknown"), &format!("Received unknown parameter: {name}"), Some(name)))
    })
}

/// Refuses a request for an object that does not exist.
pub(super) fn no_such(what: &str, id: &str) -> Answer {
    let message = format!("No such {what}: '{id}'");
    error(StatusCode::NOT_FOUND, "invalid_request_error", Some("resource_missing"), &message, None)
}

/// Refuses a key that is not valid.
pub(super) fn invalid_key() -> Answer {
    error(StatusCode::UNAUTHORIZED, "invalid_request_error", None, "Invalid API Key provided", None)
}

pub(super) fn error(status: StatusCode, kind: &str, code: Option<&str>, message: &str, param: Option<&str>) -> Answer {
    let mut error = json!({"type": kind, "message": message});
    for (name, value) in [("code", code), ("param", param)] {
        if let Some(value) = value {
            error[name] = json!(value);
        }
    }
    Answer::json(status, &json!({"error": error}))
}
