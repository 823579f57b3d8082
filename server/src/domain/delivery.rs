//! Webhook endpoints and the deliveries to them.

use payments_core::{
    Delivery, DeliveryId, DeliveryStatus, Environment, EventId, EventKind, PaymentId, RawJson, Timestamp,
    WebhookEndpoint, WebhookId,
    aliased::{Brief, UnknownFields},
};
use serde::{Deserialize, Serialize};

use super::{Scope, is_first};

/// A webhook endpoint and the environment whose events it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    /// Number of changes so far, for optimistic locking.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) environment: Environment,
    pub(crate) endpoint: WebhookEndpoint,
    /// Whether the endpoint ignores other apps' payments. Records of older servers lack this flag and get every event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_its_app: bool,
}

impl Endpoint {
    pub(crate) fn scope(&self) -> Scope {
        Scope { developer_id: self.endpoint.developer_id.clone(), environment: self.environment }
    }
}

/// A delivery with its environment and its event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outgoing {
    /// Number of changes so far, for optimistic locking.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) environment: Environment,
    /// The payment that the event is about. `None` for a ping and for a delivery that an older server stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payment: Option<PaymentId>,
    /// The event that holds the payload. If `None`, the delivery's own record holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<EventId>,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub(crate) delivery: Delivery,
}

impl Outgoing {
    /// A new delivery, not yet attempted.
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

    /// Whether no attempt has ended it.
    pub(crate) fn is_pending(&self) -> bool {
        self.delivery.status == DeliveryStatus::Pending
    }

    /// Drops the event's data and the response body. The rest of the envelope stays.
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
