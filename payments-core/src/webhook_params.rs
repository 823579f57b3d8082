//! The parameters of webhook endpoints.

use serde::Serialize;

use crate::{
    AppId, ErrorCode, EventKind, Retries, SignatureScheme, Subscription, Timestamp, WebhookEndpoint,
    validation::{Fields, Invalid, whole_number},
    web_url::{web_url, web_url_error},
};

const MAX_URL_BYTES: usize = 2048;
const MAX_DESCRIPTION_BYTES: usize = 500;

/// The parameters of a new webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CreateWebhook {
    /// The absolute URL that receives events.
    pub url: String,
    /// The events to send.
    pub events: Subscription,
    /// The endpoint's developer app, if any.
    #[serde(rename = "appId", skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// A note on what the endpoint is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether failed attempts are repeated. Default: a delivery is one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// The headers with which requests are signed. Default: `X-Service-Signature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureScheme>,
}

impl CreateWebhook {
    /// Creates parameters for an endpoint with this URL and these events.
    #[must_use]
    pub fn new(url: impl Into<String>, events: Subscription) -> Self {
        Self { url: url.into(), events, app_id: None, description: None, retries: None, signature: None }
    }

    /// Sets a note on what the endpoint is for, of at most 500 bytes.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether failed attempts are repeated.
    ///
    /// ```
    /// use payments_core::{CreateWebhook, Retries, Subscription};
    ///
    /// let params = CreateWebhook::new("https://shop.example/hooks", Subscription::All).retries(Retries::Standard);
    /// ```
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Sets the headers with which requests are signed.
    #[must_use]
    pub fn signature(mut self, signature: SignatureScheme) -> Self {
        self.signature = Some(signature);
        self
    }

    /// Sets the developer app. The endpoint then gets events of that app's payments and of payments without an app.
    #[must_use]
    pub fn app_id(mut self, app_id: AppId) -> Self {
        self.app_id = Some(app_id);
        self
    }

    /// Parses and validates a request body. The server checks separately whether it may call the URL.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_near_misses();
        let url = fields.required_text("url", MAX_URL_BYTES, check_url);
        let events = match subscription(&mut fields) {
            Some(events) => events,
            None => {
                let error = "must be given: a list of event names, or \"*\"";
                fields.error("events", ErrorCode::FieldMissing, error, Subscription::All)
            }
        };
        let app_id = fields.text("appId", MAX_URL_BYTES).and_then(|text| match text.parse() {
            Ok(id) => Some(id),
            Err(error) => fields.error("appId", ErrorCode::FieldInvalid, format_args!("is {error}"), None),
        });
        let (description, retries, signature) = options(&mut fields);
        fields.finish(Self { url, events, app_id, description, retries, signature })
    }
}

/// The changes of a webhook endpoint. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UpdateWebhook {
    /// The absolute URL that receives events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The events to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Subscription>,
    /// Whether events are sent. Pending deliveries to an endpoint that is not active fail without an attempt.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// A note on what the endpoint is for; empty removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether failed attempts are repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// The headers with which requests are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureScheme>,
}

impl UpdateWebhook {
    /// Sets the URL.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the events to send.
    #[must_use]
    pub fn events(mut self, events: Subscription) -> Self {
        self.events = Some(events);
        self
    }

    /// Sets whether events are sent.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }

    /// Sets a note on what the endpoint is for, of at most 500 bytes; empty removes it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether failed attempts are repeated. Without retries, the next attempt of a waiting delivery is its last.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Sets the headers with which requests are signed.
    #[must_use]
    pub fn signature(mut self, signature: SignatureScheme) -> Self {
        self.signature = Some(signature);
        self
    }

    /// Parses and validates a request body. A misspelt field is refused, because it would change nothing. The server checks
    /// separately whether it may call the URL.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_near_misses();
        let url = fields.raw("url").map(|_| fields.required_text("url", MAX_URL_BYTES, check_url));
        let events = subscription(&mut fields);
        let is_active = fields.raw("isActive").and_then(|json| match json {
            "true" => Some(true),
            "false" => Some(false),
            _ => fields.value_error("isActive", ErrorCode::FieldInvalid, "must be true or false", None),
        });
        let (description, retries, signature) = options(&mut fields);
        fields.finish(Self { url, events, is_active, description, retries, signature })
    }

    /// Changes an endpoint.
    pub fn apply_to(self, endpoint: &mut WebhookEndpoint, now: Timestamp) {
        let Self { url, events, is_active, description, retries, signature } = self;
        endpoint.url = url.unwrap_or_else(|| std::mem::take(&mut endpoint.url));
        if let Some(events) = events {
            endpoint.events = events;
        }
        if let Some(is_active) = is_active {
            endpoint.is_active = is_active;
            endpoint.disabled_reason = None;
        }
        endpoint.retries = retries.or(endpoint.retries.take());
        endpoint.signature =
            signature.or(endpoint.signature.take()).filter(|scheme| *scheme != SignatureScheme::Service);
        if let Some(description) = description {
            endpoint.description = Some(description).filter(|text| !text.is_empty());
        }
        endpoint.updated_at = now.max(endpoint.updated_at);
    }
}

/// The parameters of a rotation of a webhook endpoint's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RotateSecret {
    /// For how many seconds the present secret also signs: 0 to 604,800, which is a week. Default: a day.
    pub overlap_seconds: u32,
}

impl Default for RotateSecret {
    fn default() -> Self {
        Self { overlap_seconds: 24 * 60 * 60 }
    }
}

impl RotateSecret {
    /// The longest overlap: a week.
    pub const MAX_OVERLAP_SECONDS: u32 = 7 * 24 * 60 * 60;

    /// Sets for how many seconds the present secret also signs: 0 if a stranger knows it, at most 604,800.
    #[must_use]
    pub const fn overlap_seconds(self, overlap_seconds: u32) -> Self {
        Self { overlap_seconds }
    }

    /// Parses and validates a request body, which may be empty.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let given = fields.raw("overlapSeconds").map(|json| {
            u32::try_from(whole_number(json)?).ok().filter(|seconds| *seconds <= Self::MAX_OVERLAP_SECONDS)
        });
        let params = match given {
            None => Self::default(),
            Some(Some(overlap_seconds)) => Self { overlap_seconds },
            Some(None) => {
                let most = Self::MAX_OVERLAP_SECONDS;
                let error = format_args!("must be a whole number of seconds, 0 to {most}");
                fields.value_error("overlapSeconds", ErrorCode::FieldInvalid, error, Self::default())
            }
        };
        fields.finish(params)
    }
}

/// The parameters of a test of a webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TestWebhook {
    /// The kind of the event. Default: `test.ping`.
    pub event: EventKind,
}

impl TestWebhook {
    /// Sends an event of this kind.
    #[must_use]
    pub const fn with(event: EventKind) -> Self {
        Self { event }
    }

    /// Parses and validates a request body, which may be empty.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let event = match fields.text("event", MAX_DESCRIPTION_BYTES) {
            None => EventKind::TestPing,
            Some(word) => EventKind::known(&word).unwrap_or_else(|| {
                let error = format!("must be one of {}", known_kinds());
                fields.error("event", ErrorCode::FieldInvalid, error, EventKind::TestPing)
            }),
        };
        fields.finish(Self { event })
    }
}

fn known_kinds() -> String {
    EventKind::KNOWN.iter().map(EventKind::as_str).collect::<Vec<_>>().join(", ")
}

fn check_url(text: &str) -> Result<(), (ErrorCode, &'static str)> {
    web_url(text).map(drop).ok_or_else(|| (ErrorCode::UrlInvalid, web_url_error(text)))
}

/// The description, the retries and the signature of a body.
fn options(fields: &mut Fields<'_>) -> (Option<String>, Option<Retries>, Option<SignatureScheme>) {
    let description = fields.text("description", MAX_DESCRIPTION_BYTES);
    let retries = word(fields, "retries", Retries::known, "must be \"none\" or \"standard\"");
    let signature = word(fields, "signature", SignatureScheme::known, "must be \"service\" or \"standard\"");
    (description, retries, signature)
}

fn word<T>(fields: &mut Fields<'_>, name: &'static str, of: fn(&str) -> Option<T>, error: &str) -> Option<T> {
    let word = fields.text(name, MAX_DESCRIPTION_BYTES)?;
    of(&word).or_else(|| fields.error(name, ErrorCode::FieldInvalid, error, None))
}

/// The events of a body, if it names any.
fn subscription(fields: &mut Fields<'_>) -> Option<Subscription> {
    let json = fields.raw("events")?;
    let mut invalid =
        |error: &dyn std::fmt::Display| fields.error("events", ErrorCode::FieldInvalid, error, Subscription::All);
    let read = match serde_json::from_str::<Subscription>(json) {
        Ok(Subscription::Only(kinds)) if kinds.is_empty() => invalid(&"must name at least one event, or be \"*\""),
        Ok(Subscription::Only(kinds)) if kinds.iter().any(|kind| matches!(kind, EventKind::Other(_))) => {
            invalid(&format_args!("must be \"*\" or names among {}", known_kinds()))
        }
        Ok(subscription) => subscription,
        Err(_) => invalid(&"must be a list of event names, or \"*\""),
    };
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_must_be_a_list_of_known_names_or_a_star() {
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
    fn an_overlap_is_a_whole_number_of_seconds_up_to_a_week() {
        let overlap = |json: &str| RotateSecret::from_json(format!(r#"{{"overlapSeconds":{json}}}"#).as_bytes());
        for (json, seconds) in [("null", 86_400), ("0", 0), ("300.0", 300), ("3e2", 300), ("604800", 604_800)] {
            assert_eq!(overlap(json).unwrap().overlap_seconds, seconds, "{json}");
        }
        for json in ["604801", "-1", "0.5", "\"5\"", "1e99"] {
            assert!(overlap(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_test_event_is_a_ping_or_of_another_known_kind() {
        let event = |body: &str| TestWebhook::from_json(body.as_bytes()).map(|params| params.event);
        for body in ["", "{}", r#"{"event":null}"#, r#"{"event":"test.ping"}"#, r#"{"other":1}"#] {
            assert_eq!(event(body).unwrap(), EventKind::TestPing, "{body}");
        }
        assert_eq!(event(r#"{"event":"payment.refunded"}"#).unwrap(), EventKind::PaymentRefunded);
        for body in [r#"{"event":"payment.failed"}"#, r#"{"event":7}"#, "[]"] {
            assert!(event(body).is_err(), "{body}");
        }
    }

    #[test]
    fn an_update_changes_only_given_fields_and_refuses_misspelt_or_invalid_ones() {
        let endpoint: WebhookEndpoint = serde_json::from_str(
            r#"{"id":"wh_1","developerId":"dev_1","url":"https://a.example/","secret":"whsec_1","events":["*"],
                "isActive":true,"createdAt":"2026-03-01T03:30:00.000Z","updatedAt":"2026-03-01T03:30:00.000Z"}"#,
        )
        .unwrap();
        let now = Timestamp::from_millis(endpoint.updated_at.as_millis() + 5).unwrap();
        let updated = |body: &str| {
            let mut updated = endpoint.clone();
            UpdateWebhook::from_json(body.as_bytes()).map(|update| update.apply_to(&mut updated, now))?;
            Ok::<_, Invalid>(updated)
        };
        let same = updated(r#"{"url":null,"other":1}"#).unwrap();
        assert_eq!(same, WebhookEndpoint { updated_at: now, ..endpoint.clone() });
        let all =
            r#"{"url":"https://b.example/","events":["payment.created"],"isActive":false,"description":"till 2"}"#;
        let all = updated(all).unwrap();
        assert_eq!((&*all.url, all.is_active), ("https://b.example/", false));
        assert_eq!(all.description.as_deref(), Some("till 2"));
        assert_eq!(all.events, Subscription::Only(vec![EventKind::PaymentCreated]));
        assert_eq!((&all.secret, &all.id), (&endpoint.secret, &endpoint.id));
        assert_eq!(updated(r#"{"description":""}"#).unwrap().description, None);
        assert_eq!(updated(r#"{"retries":"standard"}"#).unwrap().retries, Some(Retries::Standard));
        for (body, error) in [
            (r#"{"url":"ftp://a.example/"}"#, "url must begin with http:// or https://"),
            (r#"{"events":[]}"#, "events must name at least one event, or be \"*\""),
            (r#"{"isActive":"no"}"#, "isActive must be true or false"),
            (r#"{"isactive":false}"#, "isactive is not a field; did you mean isActive?"),
            (r#"{"description":7}"#, "description must be a string"),
            (r#"{"retries":"often"}"#, "retries must be \"none\" or \"standard\""),
            (r#"{"retrie":"standard"}"#, "retrie is not a field; did you mean retries?"),
        ] {
            assert_eq!(updated(body).unwrap_err().into_sentences(), [error], "{body}");
        }
    }
}
