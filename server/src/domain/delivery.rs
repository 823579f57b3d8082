//! Webhook endpoints and the deliveries to them.

use payments_core::{
    Delivery, DeliveryId, DeliveryStatus, Environment, EventId, EventKind, PaymentId, RawJson, Timestamp,
    WebhookEndpoint, WebhookId,
    aliased::{Brief, UnknownFields},
};
use serde::{Deserialize, Serialize};

use super::{Scope, version::is_first};

/// A webhook endpoint and the environment whose events it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    /// How often it has changed: a change is made only to the version it was decided on.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) environment: Environment,
    pub(crate) endpoint: WebhookEndpoint,
    /// Whether other apps' payments are not for it. Endpoints stored by versions that did not know the rule lack the mark and
    /// get every event, as they did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_its_app: bool,
}

impl Endpoint {
    pub(crate) fn scope(&self) -> Scope {
        Scope { developer_id: self.endpoint.developer_id.clone(), environment: self.environment }
    }
}

/// A delivery and the environment it belongs to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outgoing {
    /// How often it has changed: a change is made only to the version it was decided on.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) environment: Environment,
    /// The payment whose event it is. A ping has none; nor has a delivery that an earlier version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payment: Option<PaymentId>,
    /// The event of that payment that it sends. A store keeps an event once, and not with each of its deliveries: it reads
    /// the payload from there. A delivery that has none here holds its payload itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<EventId>,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub(crate) delivery: Delivery,
}

impl Outgoing {
    /// A delivery that is still to be made.
    pub(crate) fn new(
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
            payment: None,
            event: None,
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
                status: DeliveryStatus::Pending,
                delivered_at: None,
                created_at,
                unknown: UnknownFields::default(),
            },
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { developer_id: self.delivery.developer_id.clone(), environment: self.environment }
    }

    /// Whether it is still to be made.
    pub(crate) fn is_pending(&self) -> bool {
        self.delivery.status == DeliveryStatus::Pending
    }

    /// Drops what was sent and what was answered. What remains says which event it was.
    pub(crate) fn redact(&mut self) -> Result<(), serde_json::Error> {
        let payload = self.delivery.payload.as_str();
        let mut envelope: serde_json::Map<String, serde_json::Value> = serde_json::from_str(payload)?;
        envelope.insert("data".into(), serde_json::Map::new().into());
        self.delivery.payload = RawJson::of(&envelope)?;
        self.delivery.response_body = None;
        self.event = None;
        Ok(())
    }
}
