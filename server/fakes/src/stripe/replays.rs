//! Idempotency keys.

use std::{collections::HashMap, sync::Mutex};

use http::StatusCode;

use super::refusal::error;
use crate::{Answer, Ask, lock};

/// The fingerprint and the answer of each request under an `Idempotency-Key`.
#[derive(Debug, Default)]
pub(super) struct Replays(Mutex<HashMap<String, (String, Answer)>>);

impl Replays {
    /// Runs a POST: the same request under a key gets the same answer, another one is refused. Requests with a key run
    /// one after another.
    pub(super) fn once(&self, ask: &Ask, run: impl FnOnce() -> Answer) -> Answer {
        let key = ask.header("idempotency-key");
        let refused = |message| error(StatusCode::BAD_REQUEST, "idempotency_error", None, message, None);
        if key.is_empty() {
            return run();
        }
        if key.len() > 255 {
            return refused("Idempotency keys are at most 255 characters long.");
        }
        let mut kept = lock(&self.0);
        let fingerprint = format!("{} {:?}", ask.path, ask.form());
        match kept.get(key) {
            Some((known, answer)) if *known == fingerprint => {
                let mut answer = answer.clone();
                answer.headers.push(("idempotent-replayed", "true".into()));
                answer
            }
            Some(_) => refused(
                "Keys for idempotent requests can only be used with the same parameters they were first used with.",
            ),
            None => {
                let answer = run();
                // A request that was refused may be tried again under the same key.
                if answer.status == StatusCode::OK {
                    kept.insert(key.to_owned(), (fingerprint, answer.clone()));
                }
                answer
            }
        }
    }
}
