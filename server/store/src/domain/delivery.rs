//! Deliveries to webhook endpoints.

use payments_core::{
    Delivery, DeliveryId, DeliveryStatus, Environment, EventId, EventKind, RawJson, Timestamp, WebhookId,
    aliased::{Brief, UnknownFields},
};
use serde::{Deserialize, Serialize};

use super::{Scope, Subject, is_first};

/// A delivery with its environment and its event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outgoing {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    #[serde(deserialize_with = "Environment::deserialize_closed")]
    pub environment: Environment,
    /// What the event is about. `None` for a ping and for a delivery that an older server stored.
    #[serde(default, alias = "payment", skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The event that holds the payload. If `None`, the delivery's own record holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
    /// The delivery that this one sends again. Fan-out makes one delivery of an event to an endpoint; all others have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_of: Option<DeliveryId>,
    /// The last delivery that sends this one again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resent_as: Option<DeliveryId>,
    /// When a further attempt became due. `None` again after that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_since: Option<Timestamp>,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub delivery: Delivery,
}

/// The data of an event whose delivery was redacted. An event's own data is never empty.
const REDACTED: &str = "{}";

impl Outgoing {
    /// A new delivery, not yet attempted.
    pub fn new(
        id: DeliveryId,
        scope: &Scope,
        endpoint: &WebhookId,
        event: &EventKind,
        envelope: RawJson,
        created_at: Timestamp,
    ) -> Self {
        Self {
            version: 0,
            environment: scope.environment,
            subject: None,
            event: None,
            resend_of: None,
            resent_as: None,
            due_since: None,
            delivery: Delivery {
                id,
                webhook_id: endpoint.clone(),
                developer_id: scope.developer_id.clone(),
                event: event.clone(),
                payload: envelope,
                response_status: None,
                response_body: None,
                error: None,
                duration_ms: None,
                attempts: 0,
                attempt_log: None,
                next_attempt_at: None,
                status: DeliveryStatus::Pending,
                delivered_at: None,
                created_at,
                unknown: UnknownFields::default(),
            },
        }
    }

    /// A new delivery of the same event to the same endpoint. `None` if this one was redacted.
    pub fn again(&self, id: DeliveryId, created_at: Timestamp) -> Option<Self> {
        #[derive(Deserialize)]
        struct Enveloped {
            data: RawJson,
        }
        let Enveloped { data } = self.delivery.payload.parse().ok()?;
        if data.as_str() == REDACTED {
            return None;
        }
        let Delivery { webhook_id, event, payload, .. } = &self.delivery;
        let again = Self::new(id, &self.scope(), webhook_id, event, payload.clone(), created_at);
        let (subject, event) = (self.subject.clone(), self.event.clone());
        Some(Self { subject, event, resend_of: Some(self.delivery.id.clone()), ..again })
    }

    pub fn scope(&self) -> Scope {
        Scope { developer_id: self.delivery.developer_id.clone(), environment: self.environment }
    }

    /// Whether the delivery still needs an attempt.
    pub fn is_pending(&self) -> bool {
        self.delivery.status == DeliveryStatus::Pending
    }

    /// When the next attempt is due, if the delivery waits for it.
    pub fn waits_until(&self) -> Option<Timestamp> {
        self.delivery.next_attempt_at.filter(|_| self.is_pending())
    }

    /// Whether an attempt is due.
    pub fn is_in_outbox(&self) -> bool {
        self.is_pending() && self.delivery.next_attempt_at.is_none()
    }

    /// The delivery once its next attempt is due; `None` if it does not wait for one.
    pub fn due(mut self) -> Option<Self> {
        self.due_since = Some(self.waits_until()?);
        self.version += 1;
        self.delivery.next_attempt_at = None;
        Some(self)
    }

    /// The delivery with its next attempt `seconds` earlier, but not before `now`; `None` if it does not wait for one.
    pub fn sooner(mut self, seconds: u32, now: Timestamp) -> Option<Self> {
        let until = self.waits_until().filter(|until| *until > now)?;
        let earlier = Timestamp::from_millis(until.as_millis() - i64::from(seconds) * 1000).unwrap_or(now);
        self.version += 1;
        self.delivery.next_attempt_at = Some(earlier.max(now));
        Some(self)
    }

    /// When the next attempt is due or became due, if it is not the first one.
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.waits_until().or(self.due_since.filter(|_| self.is_in_outbox()))
    }

    /// Drops the event's data and the response body. The rest of the envelope stays.
    pub fn redact(&mut self) -> Result<(), serde_json::Error> {
        let payload = self.delivery.payload.as_str();
        let mut envelope: serde_json::Map<String, serde_json::Value> = serde_json::from_str(payload)?;
        envelope.insert("data".into(), serde_json::Map::new().into());
        self.delivery.payload = RawJson::of(&envelope)?;
        self.delivery.response_body = None;
        self.event = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_can_be_sent_again_until_it_is_redacted() {
        let at = |millis| Timestamp::from_millis(millis).unwrap();
        let id = |millis| DeliveryId::new(payments_core::Slot::FIRST, at(millis), [1; payments_core::RANDOM_BYTES]);
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        let envelope = RawJson::new(r#"{"id":"evt_1","data":{"id":"pay_1","amount":1.10}}"#).unwrap();
        let endpoint = "wh_1".parse().unwrap();
        let new = Outgoing::new(id(1), &scope, &endpoint, &EventKind::PaymentCreated, envelope.clone(), at(1));
        let mut ended = Outgoing { subject: "pay_1".parse().ok(), event: "evt_1".parse().ok(), ..new };
        ended.delivery.status = DeliveryStatus::Failed;
        ended.delivery.attempts = 1;

        let again = ended.again(id(2), at(2)).unwrap();
        assert_eq!((&again.subject, &again.event), (&ended.subject, &ended.event));
        assert_eq!(again.resend_of, Some(id(1)));
        assert_eq!((&again.delivery.payload, &again.delivery.webhook_id), (&envelope, &endpoint));
        assert_eq!((&again.delivery.id, again.delivery.created_at), (&id(2), at(2)));
        assert_eq!((again.is_pending(), again.delivery.attempts, again.version), (true, 0, 0));

        ended.redact().unwrap();
        assert!(ended.again(id(3), at(3)).is_none());
    }
}
