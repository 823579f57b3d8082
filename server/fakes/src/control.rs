//! Requests to `/_control/…`.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{Answer, Call};

/// The fields of a control request.
pub(crate) struct Order(Value);

impl Order {
    pub(crate) fn new(call: &Call) -> Self {
        Self(serde_json::from_slice(&call.body).unwrap_or_default())
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// A switch, which is on if it is not given.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(true)
    }

    /// A switch, which is off if it is not given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// What a control made, or a conflict with this reason.
pub(crate) fn made(name: &str, value: Option<String>, problem: &str) -> Answer {
    value.map_or_else(|| done(false, problem), |value| Answer::ok(&json!({name: value})))
}

/// Whether a control did something, or a conflict with this reason.
pub(crate) fn done(did: bool, problem: &str) -> Answer {
    match did {
        true => Answer::ok(&json!({})),
        false => Answer::json(StatusCode::CONFLICT, &json!({"error": problem})),
    }
}
