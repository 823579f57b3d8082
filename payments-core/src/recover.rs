//! The parameters and the result of resending the deliveries that an endpoint missed.

use serde::Serialize;

use crate::{
    DeliveryId, ErrorCode, Timestamp,
    aliased::{UnknownFields, aliased_resource},
    query::TIME,
    validation::{Fields, Invalid},
};

/// The parameters of a recovery: which failed deliveries to resend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecoverWebhook {
    /// Only deliveries created at this time or later.
    pub since: Timestamp,
    /// Only deliveries created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only deliveries after this one: the `next` of the part before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<DeliveryId>,
}

impl RecoverWebhook {
    /// Resends failed deliveries created at this time or later.
    #[must_use]
    pub const fn since(since: Timestamp) -> Self {
        Self { since, until: None, after: None }
    }

    /// Resends only deliveries created before this time.
    #[must_use]
    pub fn until(self, until: Timestamp) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Continues after an earlier part.
    #[must_use]
    pub fn after(self, delivery: DeliveryId) -> Self {
        Self { after: Some(delivery), ..self }
    }

    /// Parses and validates a request body.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_near_misses();
        let since = match fields.raw("since") {
            Some(_) => time(&mut fields, "since"),
            None => fields.error("since", ErrorCode::FieldMissing, "must be given", None),
        };
        let until = time(&mut fields, "until");
        let after = fields.text("after", 128).and_then(|text| match text.parse() {
            Ok(id) => Some(id),
            Err(_) => fields.error("after", ErrorCode::FieldInvalid, "must be the next of the part before", None),
        });
        fields.finish(Self { since: since.unwrap_or(Timestamp::UNIX_EPOCH), until, after })
    }
}

fn time(fields: &mut Fields<'_>, name: &'static str) -> Option<Timestamp> {
    let text = fields.text(name, 64)?;
    Timestamp::from_input(&text).map_or_else(|_| fields.error(name, ErrorCode::FieldInvalid, TIME, None), Some)
}

aliased_resource! {
    /// The result of a recovery for a part of an endpoint's deliveries.
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct Recovered {
        /// How many deliveries were resent.
        resent: u32 = "resent",
        /// Whether there are more deliveries to examine.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `after`. `null` at the end.
        next: Option<DeliveryId> = "next",
    }
}

impl Recovered {
    /// A part's result: how many deliveries were resent, and the delivery after which the next part begins.
    #[must_use]
    pub const fn part(resent: u32, next: Option<DeliveryId>) -> Self {
        Self { resent, has_more: next.is_some(), next, unknown: UnknownFields::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_must_have_since_and_may_have_until_and_after() {
        let params = |json: &str| RecoverWebhook::from_json(json.as_bytes());
        let since: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        assert_eq!(params(r#"{"since": "2026-03-01T00:00:00Z"}"#).unwrap(), RecoverWebhook::since(since));
        let until: Timestamp = "2026-03-02T00:00:00Z".parse().unwrap();
        let part = RecoverWebhook::since(since).until(until).after("del_1".parse().unwrap());
        let sent = r#"{"since":"2026-03-01T00:00:00.000Z","until":"2026-03-02T00:00:00.000Z","after":"del_1"}"#;
        assert_eq!(serde_json::to_string(&part).unwrap(), sent);
        assert_eq!(params(sent).unwrap(), part);
        for (json, named) in [
            ("{}", "since"),
            (r#"{"since": "today"}"#, "since"),
            (r#"{"since": "2026-03-01T00:00:00Z", "until": 5}"#, "until"),
            (r#"{"since": "2026-03-01T00:00:00Z", "after": "/"}"#, "after"),
        ] {
            let sentences = params(json).unwrap_err().into_sentences();
            assert!(sentences.len() == 1 && sentences[0].starts_with(named), "{json}: {sentences:?}");
        }
    }
}
