//! Webhook endpoints and the deliveries made to them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    AppId, DeliveryId, DeveloperId, EventKind, RawJson, Timestamp, WebhookId,
    aliased::{UnknownFields, aliased_resource},
    open_enum::open_enum,
    validation::{Fields, Invalid},
    web_url::{web_url, web_url_fault},
};

const MAX_URL_BYTES: usize = 2048;

aliased_resource! {
    /// An address that gets events (API specification, "Webhook endpoint").
    pub struct WebhookEndpoint {
        /// Identifier of the endpoint.
        id: WebhookId = "id",
        /// Whose endpoint it is.
        developer_id: DeveloperId = "developerId",
        /// The developer app it belongs to, if any: it gets the events of that app's payments and of payments without an
        /// app.
        app_id: Option<AppId> = "appId",
        /// Where events are sent.
        url: String = "url",
        /// The signing secret; its whole text is the key.
        secret: SigningSecret = "secret",
        /// Which events it gets.
        events: Subscription = "events",
        /// Whether it gets any.
        is_active: bool = "isActive",
        /// When it was made.
        created_at: Timestamp = "createdAt",
        /// When it last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

aliased_resource! {
    /// One event sent to one endpoint (API specification, "Webhook delivery").
    pub struct Delivery {
        /// Identifier of the delivery; the request carried it as `X-Service-Delivery`.
        id: DeliveryId = "id",
        /// The endpoint it went to.
        webhook_id: WebhookId = "webhookId",
        /// Whose endpoint that is.
        developer_id: DeveloperId = "developerId",
        /// What happened.
        event: EventKind = "event",
        /// The envelope as it was sent.
        payload: RawJson = "payload",
        /// The HTTP status of the answer; `None` while it is under way, and where no answer came.
        response_status: Option<u16> = "responseStatus" | "statusCode",
        /// The first 1024 bytes of the answer's body.
        response_body: Option<String> = "responseBody",
        /// Why there is no answer; `None` where there is one, whatever its status, and while it is pending.
        error: Option<DeliveryError> = "error",
        /// How long the attempt took, in milliseconds; `None` where none was made.
        duration_ms: Option<u64> = "durationMs",
        /// How many requests were made.
        attempts: u32 = "attempts" | "attemptNumber",
        /// How it ended.
        status: DeliveryStatus = "status",
        /// When an answer came.
        delivered_at: Option<Timestamp> = "deliveredAt",
        /// When it was put into the outbox.
        created_at: Timestamp = "createdAt",
    }
}

open_enum! {
    /// How a delivery ended.
    pub enum DeliveryStatus {
        /// It waits in the outbox, or is under way.
        Pending = "pending",
        /// The endpoint answered with a 2xx status.
        Success = "success",
        /// It answered with another status, or not within 8 seconds. It is not tried again.
        Failed = "failed",
    }
}

aliased_resource! {
    /// Why a delivery got no answer.
    pub struct DeliveryError {
        /// A stable word, for programs.
        code: DeliveryErrorCode = "code",
        /// A sentence, for people.
        message: String = "message",
    }
}

impl DeliveryError {
    /// An error with this code and sentence.
    #[must_use]
    pub fn new(code: DeliveryErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), unknown: UnknownFields::default() }
    }
}

open_enum! {
    /// Why a delivery got no answer.
    pub enum DeliveryErrorCode {
        /// Nothing listens at the endpoint's address.
        ConnectionRefused = "connection_refused",
        /// The endpoint closed the connection before it answered.
        ConnectionClosed = "connection_closed",
        /// The endpoint's address could not be reached.
        ConnectionFailed = "connection_failed",
        /// No answer came within 8 seconds.
        Timeout = "timeout",
        /// The endpoint's host name could not be resolved.
        DnsFailed = "dns_failed",
        /// The TLS handshake failed: most often the certificate is not valid.
        TlsFailed = "tls_failed",
        /// What came back was not HTTP.
        InvalidResponse = "invalid_response",
        /// The endpoint's host name leads to an address that may not be called.
        AddressNotAllowed = "address_not_allowed",
        /// The endpoint was removed while the delivery waited.
        EndpointRemoved = "endpoint_removed",
        /// The request could not be made.
        NotSent = "not_sent",
    }
}

/// A webhook's signing secret as the API gives it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SigningSecret(String);

impl SigningSecret {
    /// How many random bytes a new secret takes.
    pub const RANDOM_BYTES: usize = 32;

    /// A new secret: `whsec_` and the bytes in hex.
    #[must_use]
    pub fn new(random: [u8; Self::RANDOM_BYTES]) -> Self {
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("whsec_{hex}"))
    }

    /// The secret's text, to sign or verify with.
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

/// Which events an endpoint gets. On the wire: a list of names, or `["*"]` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscription {
    /// Every event, those of later versions included.
    All,
    /// These events.
    Only(Vec<EventKind>),
}

impl Subscription {
    /// Whether an event of this kind is wanted.
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

/// Reads a list of names, or a single one.
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

/// The parameters of a new webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CreateWebhook {
    /// Where events are to be sent: an absolute address.
    pub url: String,
    /// Which events.
    pub events: Subscription,
    /// The developer app it belongs to, if any.
    #[serde(rename = "appId", skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
}

impl CreateWebhook {
    /// An endpoint at this address for these events.
    #[must_use]
    pub fn new(url: impl Into<String>, events: Subscription) -> Self {
        Self { url: url.into(), events, app_id: None }
    }

    /// Says which developer app the endpoint belongs to. It then gets the events of that app's payments and of payments
    /// without an app, not those of other apps' payments.
    #[must_use]
    pub fn app_id(mut self, app_id: AppId) -> Self {
        self.app_id = Some(app_id);
        self
    }

    /// Reads and validates the body of a request. Which addresses may be called is for the server to say.
    ///
    /// # Errors
    /// One sentence for each fault of the body.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?;
        let url = fields.required_text("url", MAX_URL_BYTES, |text| web_url(text).map(drop).ok_or(web_url_fault(text)));
        let events = subscription(&mut fields);
        let app_id = fields.text("appId", MAX_URL_BYTES).and_then(|text| match text.parse() {
            Ok(id) => Some(id),
            Err(error) => fields.fault("appId", format_args!("is {error}"), None),
        });
        fields.finish(Self { url, events, app_id })
    }
}

fn subscription(fields: &mut Fields<'_>) -> Subscription {
    let Some(json) = fields.raw("events") else {
        return fields.fault("events", "must be given: a list of event names, or \"*\"", Subscription::All);
    };
    match serde_json::from_str::<Subscription>(json) {
        Ok(Subscription::Only(kinds)) if kinds.is_empty() => {
            fields.fault("events", "must name at least one event, or be \"*\"", Subscription::All)
        }
        Ok(Subscription::Only(kinds)) if kinds.iter().any(|kind| matches!(kind, EventKind::Other(_))) => {
            let known = EventKind::KNOWN.iter().map(EventKind::as_str).collect::<Vec<_>>().join(", ");
            fields.fault("events", format_args!("must be \"*\" or names among {known}"), Subscription::All)
        }
        Ok(subscription) => subscription,
        Err(_) => fields.fault("events", "must be a list of event names, or \"*\"", Subscription::All),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_a_list_of_known_names_or_a_star() {
        let events = |json: &str| {
            CreateWebhook::from_json(format!(r#"{{"url":"https://a.example/hook","events":{json}}}"#).as_bytes())
                .map(|params| serde_json::to_string(&params.events).unwrap())
                .map_err(|invalid| invalid.into_sentences().concat())
        };
        assert_eq!(events(r#""*""#).unwrap(), r#"["*"]"#);
        assert_eq!(events(r#"["payment.created","*"]"#).unwrap(), r#"["*"]"#);
        assert_eq!(events(r#"["payment.created","payment.created"]"#).unwrap(), r#"["payment.created"]"#);
        for bad in ["[]", r#"["payment.failed"]"#, "7", "[7]", "null", "{}"] {
            assert!(events(bad).unwrap_err().starts_with("events must"), "{bad}");
        }
    }

    #[test]
    fn a_delivery_has_both_names_of_its_aliased_fields() {
        let json = r#"{"id":"del_1","webhookId":"wh_1","developerId":"dev_1","event":"test.ping","payload":{},
            "statusCode":200,"attemptNumber":1,"status":"success","createdAt":"2026-03-01T03:30:00.000Z"}"#;
        let delivery: Delivery = serde_json::from_str(json).unwrap();
        let json = serde_json::to_string(&delivery).unwrap();
        assert!(json.contains(r#""responseStatus":200,"statusCode":200,"#), "{json}");
        assert!(json.contains(r#""attempts":1,"attemptNumber":1,"#), "{json}");
        assert!(json.contains(r#""error":null,"durationMs":null,"#), "a record from before reads as null: {json}");
    }

    #[test]
    fn a_deliverys_error_of_a_later_version_is_passed_on_as_it_came() {
        let json = r#"{"code":"quota_exceeded","message":"the endpoint is over its quota","hint":7}"#;
        let error: DeliveryError = serde_json::from_str(json).unwrap();
        assert_eq!(error.code, DeliveryErrorCode::Other("quota_exceeded".into()));
        assert_eq!(serde_json::to_string(&error).unwrap(), json);
    }

    #[test]
    fn debug_does_not_show_a_secret() {
        let secret = SigningSecret::new([0xab; 32]);
        assert_eq!(secret.reveal(), format!("whsec_{}", "ab".repeat(32)));
        assert!(!format!("{secret:?}").contains("ab"));
    }
}
