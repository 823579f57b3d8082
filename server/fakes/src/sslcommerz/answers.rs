//! Responses that several calls share.

use http::StatusCode;
use serde_json::json;

use crate::Answer;

/// Why no session begins with wrong credentials, or while the store is inactive.
pub(super) const NO_STORE: &str = "Store Credential Error Or Store is De-active";

/// No call but a session's is executed: `FAILED` (wrong credentials), `INACTIVE` (store) or `INVALID_REQUEST`.
pub(super) fn refused(connect: &str) -> Answer {
    Answer::ok(&json!({"APIConnect": connect}))
}

/// A call lacks a field, or a field is wrong.
pub(super) fn invalid_request() -> Answer {
    refused("INVALID_REQUEST")
}

/// Wrong credentials, for a session and for the other calls.
pub(super) fn wrong_credentials() -> Answer {
    Answer::ok(&json!({"APIConnect": "FAILED", "status": "FAILED", "failedreason": NO_STORE}))
}

/// No transaction has this id.
pub(super) fn invalid_transaction() -> Answer {
    Answer::ok(&json!({"APIConnect": "DONE", "status": "INVALID_TRANSACTION"}))
}

/// No session begins.
pub(super) fn no_session(reason: &str) -> Answer {
    Answer::ok(&json!({"status": "FAILED", "failedreason": reason, "sessionkey": "", "GatewayPageURL": ""}))
}

/// An error page of the web server.
pub(super) fn page(status: StatusCode, title: &str) -> Answer {
    let page = Answer::html(format!("<!doctype html><title>{title}</title><h1>{title}</h1>"));
    Answer { status, ..page }
}
