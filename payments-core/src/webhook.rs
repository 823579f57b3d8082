//! Webhook endpoints and deliveries.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    AppId, DeliveryId, DeveloperId, EventKind, RawJson, Timestamp, WebhookId,
    aliased::{UnknownFields, aliased_resource},
    open_enum::open_enum,
};

aliased_resource! {
    /// A webhook endpoint (API specification, "Webhook endpoint").
    #[derive(Debug)]
    pub struct WebhookEndpoint {
        /// The endpoint's id.
        id: WebhookId = "id",
        /// The endpoint's developer.
        developer_id: DeveloperId = "developerId",
        /// The endpoint's developer app, if any. The endpoint then gets events of that app's payments and of payments
        /// without an app.
        app_id: Option<AppId> = "appId",
        /// The URL that receives events.
        url: String = "url",
        /// The signing secret. Its whole text is the key.
        secret: SigningSecret = "secret",
        /// After a rotation: until when the previous secret also signs.
        previous_secret_expires_at: Option<Timestamp> = "previousSecretExpiresAt" (omitted if None),
        /// The events to send.
        events: Subscription = "events",
        /// The merchant's note on what the endpoint is for.
        description: Option<String> = "description" (omitted if None),
        /// Whether events are sent.
        is_active: bool = "isActive",
        /// Whether failed attempts are repeated; `None` from a server that repeats none.
        retries: Option<Retries> = "retries" (omitted if None),
        /// The headers with which requests are signed; `None` for [`SignatureScheme::Service`].
        signature: Option<SignatureScheme> = "signature" (omitted if None),
        /// Why the server disabled the endpoint; `None` if it did not. Setting `isActive` removes it.
        disabled_reason: Option<DisabledReason> = "disabledReason" (omitted if None),
        /// When the endpoint was created.
        created_at: Timestamp = "createdAt",
        /// When the endpoint last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

open_enum! {
    /// Whether failed attempts of an endpoint's deliveries are repeated.
    pub enum Retries {
        /// A delivery is one attempt.
        None = "none",
        /// Up to six more attempts, after 5 seconds, 5 and 30 minutes, 2, 5 and 10 hours, each up to a fifth later. An attempt
        /// that the endpoint answers with a 2xx status is the last. The status 410 disables the endpoint, and so does a
        /// delivery whose last attempt fails, if no attempt has succeeded for five days.
        Standard = "standard",
    }
}

open_enum! {
    /// The headers with which an endpoint's requests are signed.
    pub enum SignatureScheme {
        /// `X-Service-Signature`.
        Service = "service",
        /// Beside it those of Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
        Standard = "standard",
    }
}

open_enum! {
    /// Why the server disabled an endpoint. It only disables endpoints with retries.
    pub enum DisabledReason {
        /// The endpoint responded with the status 410.
        Gone = "gone",
        /// A delivery failed for good, and no attempt had succeeded for five days.
        Failing = "failing",
    }
}

aliased_resource! {
    /// The delivery of an event to an endpoint (API specification, "Webhook delivery").
    #[derive(Debug)]
    pub struct Delivery {
        /// The delivery's id, which the request has as `X-Service-Delivery`.
        id: DeliveryId = "id",
        /// The endpoint.
        webhook_id: WebhookId = "webhookId",
        /// The endpoint's developer.
        developer_id: DeveloperId = "developerId",
        /// The event's kind.
        event: EventKind = "event",
        /// The request's body.
        payload: RawJson = "payload",
        /// The HTTP status of the response to the last attempt; `None` without a response.
        response_status: Option<u16> = "responseStatus" | "statusCode",
        /// The first 1024 bytes of the response's body.
        response_body: Option<String> = "responseBody",
        /// Why the last attempt got no response; `None` if it got one, or before the first attempt.
        error: Option<DeliveryError> = "error",
        /// How long the last attempt took, in milliseconds; `None` without an attempt.
        duration_ms: Option<u64> = "durationMs",
        /// The number of attempts.
        attempts: u32 = "attempts" | "attemptNumber",
        /// Each attempt, oldest first; `None` unless the endpoint has retries.
        attempt_log: Option<Vec<LoggedAttempt>> = "attemptLog" (omitted if None),
        /// When the next attempt is due; `None` unless the delivery waits for it.
        next_attempt_at: Option<Timestamp> = "nextAttemptAt" (omitted if None),
        /// The delivery's status.
        status: DeliveryStatus = "status",
        /// When the response arrived.
        delivered_at: Option<Timestamp> = "deliveredAt",
        /// When the delivery was added to the outbox.
        created_at: Timestamp = "createdAt",
    }
}

open_enum! {
    /// The status of a delivery.
    pub enum DeliveryStatus {
        /// The delivery is in the outbox, in flight, or waits for its next attempt.
        Pending = "pending",
        /// The endpoint responded with a 2xx status.
        Success = "success",
        /// The endpoint responded with another status, or not within 8 seconds, and no further attempt follows.
        Failed = "failed",
    }
}

aliased_resource! {
    /// One attempt of a delivery.
    #[derive(Debug)]
    pub struct LoggedAttempt {
        /// When the request was sent.
        attempted_at: Timestamp = "attemptedAt",
        /// The HTTP status of the response; `None` without a response.
        response_status: Option<u16> = "responseStatus",
        /// Why there is no response; `None` if there is one.
        error: Option<DeliveryError> = "error",
        /// How long the attempt took, in milliseconds.
        duration_ms: Option<u64> = "durationMs",
    }
}

aliased_resource! {
    /// Why a delivery got no response.
    #[derive(Debug)]
    pub struct DeliveryError {
        /// A stable code for programs.
        code: DeliveryErrorCode = "code",
        /// A sentence for people.
        message: String = "message",
    }
}

impl DeliveryError {
    /// Creates an error.
    #[must_use]
    pub fn new(code: DeliveryErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), unknown: UnknownFields::default() }
    }
}

open_enum! {
    /// Why a delivery got no response.
    pub enum DeliveryErrorCode {
        /// Nothing listens at the endpoint's address.
        ConnectionRefused = "connection_refused",
        /// The endpoint closed the connection before it responded.
        ConnectionClosed = "connection_closed",
        /// The endpoint's address could not be reached.
        ConnectionFailed = "connection_failed",
        /// No response arrived within 8 seconds.
        Timeout = "timeout",
        /// The endpoint's host name could not be resolved.
        DnsFailed = "dns_failed",
        /// The TLS handshake failed, usually because the certificate is invalid.
        TlsFailed = "tls_failed",
        /// The response was not HTTP.
        InvalidResponse = "invalid_response",
        /// The endpoint's host name resolves to an address that the server must not call.
        AddressNotAllowed = "address_not_allowed",
        /// The endpoint was removed while the delivery was pending.
        EndpointRemoved = "endpoint_removed",
        /// The request could not be built.
        NotSent = "not_sent",
    }
}

/// A webhook endpoint's signing secret. `Debug` omits it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SigningSecret(String);

impl SigningSecret {
    /// The number of random bytes of a new secret.
    pub const RANDOM_BYTES: usize = 32;

    /// Creates a secret: `whsec_` and the bytes in hex.
    #[must_use]
    pub fn new(random: [u8; Self::RANDOM_BYTES]) -> Self {
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("whsec_{hex}"))
    }

    /// The placeholder of a secret, for an API key that may not see it: `whsec_********`.
    #[must_use]
    pub fn masked() -> Self {
        Self("whsec_********".to_owned())
    }

    /// The secret's text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}

/// The events that an endpoint gets. On the wire: a list of names, or `["*"]` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscription {
    /// All events, including those of later API versions.
    All,
    /// These events.
    Only(Vec<EventKind>),
}

impl Subscription {
    /// Whether the endpoint gets events of this kind.
    #[must_use]
    pub fn wants(&self, kind: &EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(kind),
        }
    }

    fn of_names(names: Vec<String>) -> Self {
        if names.iter().any(|name| name == "*") {
            return Self::All;
        }
        let mut kinds = Vec::new();
        for kind in names.iter().map(|name| EventKind::from(name.as_str())) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Self::Only(kinds)
    }
}

impl Serialize for Subscription {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => ["*"].serialize(serializer),
            Self::Only(kinds) => kinds.serialize(serializer),
        }
    }
}

/// Deserializes a list of names or a single name.
impl<'de> Deserialize<'de> for Subscription {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Names {
            One(String),
            Many(Vec<String>),
        }
        Ok(Self::of_names(match Names::deserialize(deserializer)? {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_has_both_names_of_its_aliased_fields() {
        let json = r#"{"id":"del_1","webhookId":"wh_1","developerId":"dev_1","event":"test.ping","payload":{},
            "statusCode":200,"attemptNumber":1,"status":"success","createdAt":"2026-03-01T03:30:00.000Z"}"#;
        let delivery: Delivery = serde_json::from_str(json).unwrap();
        let json = serde_json::to_string(&delivery).unwrap();
        assert!(json.contains(r#""responseStatus":200,"statusCode":200,"#), "{json}");
        assert!(json.contains(r#""attempts":1,"attemptNumber":1,"#), "{json}");
        assert!(json.contains(r#""error":null,"durationMs":null,"#), "a missing field serializes as null: {json}");
    }

    #[test]
    fn an_unknown_delivery_error_round_trips() {
        let json = r#"{"code":"quota_exceeded","message":"the endpoint is over its quota","hint":7}"#;
        let error: DeliveryError = serde_json::from_str(json).unwrap();
        assert_eq!(error.code, DeliveryErrorCode::Other("quota_exceeded".into()));
        assert_eq!(serde_json::to_string(&error).unwrap(), json);
    }

    #[test]
    fn debug_omits_the_secret() {
        let secret = SigningSecret::new([0xab; 32]);
        assert_eq!(secret.reveal(), format!("whsec_{}", "ab".repeat(32)));
        assert!(!format!("{secret:?}").contains("ab"));
    }
}
