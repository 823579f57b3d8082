//! Webhook endpoints.

use std::iter;

use payments_core::{Environment, Retries, SigningSecret, Timestamp, WebhookEndpoint};
use serde::{Deserialize, Serialize};

use super::{Scope, is_first};

/// A webhook endpoint and the environment whose events it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Endpoint {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    #[serde(deserialize_with = "Environment::deserialize_closed")]
    pub environment: Environment,
    pub endpoint: WebhookEndpoint,
    /// Whether the endpoint ignores other apps' payments. Records of older servers lack this flag and get every event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_its_app: bool,
    /// The secrets that were replaced and still sign, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_secrets: Vec<PreviousSecret>,
    /// The first failed attempt since the last successful one. Only an endpoint with retries has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PreviousSecret {
    secret: SigningSecret,
    /// The secret signs until this time.
    until: Timestamp,
}

/// How many replaced secrets sign at most. Each makes the header of a delivery 68 bytes longer.
const PREVIOUS_SECRETS: usize = 3;

impl Endpoint {
    pub fn scope(&self) -> Scope {
        Scope { developer_id: self.endpoint.developer_id.clone(), environment: self.environment }
    }

    /// Replaces the secret. The old one goes on signing for `overlap_seconds`.
    pub fn rotate_secret(&mut self, secret: SigningSecret, overlap_seconds: u32, now: Timestamp) {
        let secret = std::mem::replace(&mut self.endpoint.secret, secret);
        self.previous_secrets.insert(0, PreviousSecret { secret, until: now.plus_seconds(overlap_seconds) });
        self.previous_secrets.retain(|previous| previous.until > now);
        self.previous_secrets.truncate(PREVIOUS_SECRETS);
        self.endpoint.updated_at = now.max(self.endpoint.updated_at);
    }

    /// The secrets that sign at a time, the present one first.
    pub fn secrets(&self, now: Timestamp) -> impl Iterator<Item = &SigningSecret> {
        let previous = self.previous_secrets.iter().filter(move |previous| previous.until > now);
        iter::once(&self.endpoint.secret).chain(previous.map(|previous| &previous.secret))
    }

    /// The endpoint as the API serves it at a time.
    pub fn served(self, now: Timestamp) -> WebhookEndpoint {
        let untils = self.previous_secrets.iter().map(|previous| previous.until);
        let previous_secret_expires_at = untils.filter(|until| *until > now).max();
        // Records of older servers lack this field.
        let retries = self.endpoint.retries.or(Some(Retries::None));
        WebhookEndpoint { previous_secret_expires_at, retries, ..self.endpoint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_secret_signs_until_its_end_and_only_the_last_three_sign() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000).unwrap();
        let mut endpoint: Endpoint = serde_json::from_value(serde_json::json!({"environment": "test", "endpoint": {
            "id": "wh_1", "developerId": "dev_1", "url": "https://a.example/", "secret": "first", "events": ["*"],
            "isActive": true, "createdAt": at(0), "updatedAt": at(0)}}))
        .unwrap();
        let mut rotate = |seconds, overlap, nth: u8| {
            endpoint.rotate_secret(SigningSecret::new([nth; SigningSecret::RANDOM_BYTES]), overlap, at(seconds));
            endpoint.clone()
        };
        let signing = |endpoint: &Endpoint, seconds| {
            let secrets =
                endpoint.secrets(at(seconds)).map(|secret| secret.reveal().chars().take(8).collect::<String>());
            secrets.collect::<Vec<_>>().join(" ")
        };
        let once = rotate(10, 100, 1);
        assert_eq!(signing(&once, 10), "whsec_01 first");
        assert_eq!(signing(&once, 109), "whsec_01 first");
        assert_eq!(signing(&once, 110), "whsec_01");
        assert_eq!(once.endpoint.updated_at, at(10));
        assert_eq!(once.clone().served(at(109)).previous_secret_expires_at, Some(at(110)));
        assert_eq!(once.served(at(110)).previous_secret_expires_at, None);

        let without_overlap = rotate(20, 0, 2);
        assert_eq!(signing(&without_overlap, 20), "whsec_02 first", "one without an overlap ends at once");
        assert_eq!(without_overlap.previous_secrets.len(), 1, "and is not kept");
        rotate(30, 100, 3);
        rotate(40, 100, 4);
        assert_eq!(signing(&rotate(50, 100, 5), 50), "whsec_05 whsec_04 whsec_03 whsec_02");
        assert_eq!(signing(&rotate(200, 1, 6), 200), "whsec_06 whsec_05");
    }
}
