//! What is kept beside the resources of the API.

use std::fmt;

use payments_core::{
    AppId, Delivery, DeliveryId, DeliveryStatus, DeveloperId, Environment, EventId, EventKind, KeyId, Payment,
    PaymentId, RawJson, RawStatus, RefundId, Timestamp, WebhookEndpoint, WebhookId, WorkspaceId,
    aliased::{Brief, UnknownFields},
    redirect_target, redirect_url,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::IdempotencyKey;

/// Whose records, and in which of the two worlds. Nothing is ever read or written across a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) developer_id: DeveloperId,
    pub(crate) environment: Environment,
}

/// A merchant: one workspace, one developer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) id: WorkspaceId,
    pub(crate) developer_id: DeveloperId,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) website: Option<String>,
    pub(crate) status: String,
    pub(crate) created_at: Timestamp,
}

/// The SHA-256 of an API key: all that is kept of it (API specification, "Authentication", rule 5).
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(crate) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// A hash as the store keeps it.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// The record of an API key. The key itself was shown once and is kept nowhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ApiKey {
    pub(crate) id: KeyId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) scope: Scope,
    pub(crate) last4: String,
    /// The developer app whose payments it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_id: Option<AppId>,
    pub(crate) created_at: Timestamp,
    pub(crate) revoked_at: Option<Timestamp>,
}

/// A payment and what the server knows of its checkout session beyond it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    /// How often the payment has changed: a change is made only to the version it was decided on.
    pub(crate) version: u64,
    /// When the session's life ends.
    pub(crate) expires_at: Timestamp,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub(crate) payment: Payment,
    /// Where the customer of a live payment was sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<Attempt>,
    /// When the gateway is to be asked next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_at: Option<Timestamp>,
    /// A refund that the gateway has not yet been heard to have made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refund_asked: Option<RefundAsked>,
    /// How a refund that is made by hand was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settlement: Option<Settlement>,
    /// What a person must look at before the gateway is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<Review>,
}

impl Session {
    /// The session of a new payment.
    pub(crate) fn new(payment: Payment, expires_at: Timestamp) -> Self {
        Self {
            version: 0,
            expires_at,
            payment,
            attempt: None,
            check_at: None,
            refund_asked: None,
            settlement: None,
            review: None,
        }
    }

    /// The session after one more change.
    pub(crate) fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { developer_id: self.payment.developer_id.clone(), environment: self.payment.environment }
    }

    /// Where the shop wants its customer, as the payment stands.
    pub(crate) fn way_back(&self) -> String {
        let payment = &self.payment;
        let asked_for = self.attempt.as_ref().and_then(|attempt| attempt.paid_url.as_ref());
        match asked_for.filter(|_| payment.raw_status == RawStatus::Paid) {
            Some(address) => redirect_target(address, &payment.id, &payment.status),
            None => redirect_url(payment),
        }
    }

    /// Whether it is over when its time has come. Where there is an attempt, the gateway's word ends it, and `check_at`
    /// brings it up.
    pub(crate) fn ends_by_itself(&self) -> bool {
        self.payment.raw_status.is_open() && self.attempt.is_none()
    }
}

/// Which gateway an attempt was made at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatewayName {
    Sandbox,
    Bkash,
    Stripe,
}

impl GatewayName {
    /// As it stands in addresses, logs and figures.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Bkash => "bkash",
            Self::Stripe => "stripe",
        }
    }

    /// As people know it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Sandbox => "the simulator",
            Self::Bkash => "bKash",
            Self::Stripe => "Stripe",
        }
    }
}

/// A live payment's attempt at a gateway: the one that its customer was sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) gateway: GatewayName,
    /// Our name for the attempt, at the gateway: unique among all attempts.
    pub(crate) invoice: String,
    /// The gateway's name for it.
    pub(crate) external_id: String,
    /// Where the customer pays.
    pub(crate) customer_url: String,
    /// When the gateway was last told to take the money. Written before it is told.
    pub(crate) taken_at: Option<Timestamp>,
    /// The gateway's name for the movement of money, once there was one.
    pub(crate) transaction: Option<String>,
    /// Where the customer goes after paying, instead of the payment's success URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paid_url: Option<String>,
}

/// A refund on its way to a gateway. It is kept before the gateway is asked, so that no crash forgets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefundAsked {
    /// The refund's id, and its idempotency key at the gateway.
    pub(crate) id: RefundId,
    pub(crate) reason: Option<String>,
    /// The merchant's idempotency key and the fingerprint of its request, whose answer is kept once there is one.
    pub(crate) request: Option<(IdempotencyKey, String)>,
    pub(crate) tries: u32,
}

/// How a person sent a refund's money back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settlement {
    /// What the movement is called where it was made.
    pub(crate) reference: String,
    pub(crate) settled_at: Timestamp,
}

/// What cannot be decided without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Review {
    /// What the gateway says, and what was expected.
    pub(crate) what: String,
    pub(crate) found_at: Timestamp,
    /// How a person decided it.
    pub(crate) resolved: Option<Resolution>,
}

/// What a person decided, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) note: String,
    pub(crate) resolved_at: Timestamp,
}

/// A gateway's token as it is kept: sealed under the gateway's secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptToken {
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) refresh: Option<Vec<u8>>,
    pub(crate) expires_at: Option<Timestamp>,
    /// When tokens were asked for, in the last hour.
    pub(crate) asked_at: Vec<Timestamp>,
}

/// A webhook endpoint and the environment whose events it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Endpoint {
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

/// What a scope has of one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The merchant's account of the ledger, in minor units.
    pub(crate) balance_minor: i128,
    /// The gross of everything ever paid, in minor units.
    pub(crate) volume_minor: i128,
    /// How many payments were ever completed.
    pub(crate) payments: u64,
}
