//! Idempotency keys.

use std::{collections::BTreeMap, sync::Mutex};

use http::StatusCode;

use super::refusal::error;
use crate::{Answer, Call, lock};

/// The fingerprint and stored response of each `Idempotency-Key`.
#[derive(Debug, Default)]
pub(super) struct Replays(Mutex<BTreeMap<String, (String, Answer)>>);

impl Replays {
    /// Forgets all keys.
    pub(super) fn forget(&self) {
        lock(&self.0).clear();
    }

    /// Runs a POST once per key. The same request gets the stored response; a different request is refused. Requests with a
    /// key run one after another.
    pub(super) fn once(&self, call: &Call, run: impl FnOnce() -> Answer) -> Answer {
        let key = call.header("idempotency-key");
        if key.is_empty() {
            return run();
        }
        if key.len() > 255 {
            return refused("Idempotency keys are at most 255 characters long.");
        }
        let mut stored = lock(&self.0);
        let fingerprint = format!("{} {:?}", call.path, call.form());
        match stored.get(key) {
            Some((known, answer)) if *known == fingerprint => {
                let mut answer = answer.clone();
                answer.headers.push(("idempotent-replayed", "true".into()));
                answer
            }
            Some(_) => other_parameters(),
            None => {
                let answer = run();
                // A refused request may be retried with the same key.
                if answer.status == StatusCode::OK {
                    stored.insert(key.to_owned(), (fingerprint, answer.clone()));
                }
                answer
            }
        }
    }
}

/// Refuses a request whose key belongs to another request.
pub(super) fn other_parameters() -> Answer {
    refused("Keys for idempotent requests can only be used with the same parameters they were first used with.")
}

fn refused(message: &str) -> Answer {
    error(StatusCode::BAD_REQUEST, "idempotency_error", None, message, None)
}
