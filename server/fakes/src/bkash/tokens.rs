//! Tokens: two per hour. A caller who requests more is blocked for an hour.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    answers::{refusal, text, unauthorized},
    dialect::Dialect,
    known::{APP_KEY, APP_SECRET, PASSWORD, USERNAME},
};
use crate::{Answer, Call, now, token};

const HOUR_SECONDS: u64 = 3600;
const CALLS_AN_HOUR: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// When each token expires, in seconds since 1970.
    tokens: BTreeMap<String, u64>,
    pub(super) refresh_tokens: BTreeSet<String>,
    /// The token calls of the last hour.
    pub(super) calls: Vec<u64>,
    blocked_until: Option<u64>,
}

impl Tokens {
    pub(super) fn grant(&mut self, call: &Call, body: &Value, is_refresh: bool, dialect: Dialect) -> Answer {
        let now = now();
        if self.blocked_until.is_some_and(|until| now < until) {
            return blocked(dialect);
        }
        self.calls.retain(|at| now < *at + HOUR_SECONDS);
        if self.calls.len() >= CALLS_AN_HOUR {
            self.blocked_until = Some(now + HOUR_SECONDS);
            return blocked(dialect);
        }
        self.calls.push(now);
        if call.header("username") != USERNAME || call.header("password") != PASSWORD {
            return unauthorized("Unauthorized");
        }
        if text(body, "app_key") != Some(APP_KEY) || text(body, "app_secret") != Some(APP_SECRET) {
            return dialect.failure(&refusal("2001", "Invalid App Key"));
        }
        if is_refresh && !text(body, "refresh_token").is_some_and(|given| self.refresh_tokens.contains(given)) {
            return dialect.failure(&refusal("9999", "Invalid refresh token"));
        }
        let number = self.tokens.len() as u64;
        let [id, refresh] = ["id_token", "refresh_token"].map(|word| token("eyJ.fake.", number, word));
        self.tokens.insert(id.clone(), now + HOUR_SECONDS);
        self.refresh_tokens.insert(refresh.clone());
        Answer::ok(&json!({"statusCode": "0000", "statusMessage": "Successful", "id_token": id,
            "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}))
    }

    /// Ends all tokens.
    pub(super) fn revoke(&mut self) {
        self.tokens.values_mut().for_each(|until| *until = 0);
    }

    /// Checks the app key and token of a call.
    pub(super) fn refuse(&self, call: &Call, needs_bearer: bool) -> Option<Answer> {
        if call.header("x-app-key") != APP_KEY {
            return Some(unauthorized("Forbidden: invalid app key"));
        }
        let header = call.header("authorization");
        // Most clients send the token without `Bearer`; some documents want it.
        let given = if needs_bearer { header.strip_prefix("Bearer ").unwrap_or_default() } else { header };
        match self.tokens.get(given) {
            None => Some(unauthorized("Unauthorized")),
            Some(until) if now() >= *until => Some(unauthorized("The incoming token has expired")),
            Some(_) => None,
        }
    }
}

fn blocked(dialect: Dialect) -> Answer {
    dialect.failure(&refusal("9999", "Credential is blocked: too many token requests"))
}
