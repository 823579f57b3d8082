//! A payment's timeline: what happened to it, and why.

use serde::{Deserialize, Serialize};

use crate::{
    DeliveryError, DeliveryId, DeliveryStatus, EventId, EventKind, PaymentId, Timestamp, WebhookId,
    open_enum::open_enum,
};

open_enum! {
    /// What happened to a payment.
    pub enum TimelineKind {
        /// The merchant created it.
        Created = "created",
        /// The customer was sent to the gateway.
        SentToGateway = "sent_to_gateway",
        /// The server asked the gateway to capture the money.
        CaptureRequested = "capture_requested",
        /// An attempt at the gateway failed. The customer may try again until the session ends.
        AttemptFailed = "attempt_failed",
        /// The payment is paid.
        Completed = "completed",
        /// The payment failed.
        Failed = "failed",
        /// The customer cancelled.
        Cancelled = "cancelled",
        /// The session ended unpaid.
        Expired = "expired",
        /// A request to the gateway failed. The server tries again.
        GatewayError = "gateway_error",
        /// The server asked the gateway for a refund.
        RefundRequested = "refund_requested",
        /// The gateway refused a refund.
        RefundRefused = "refund_refused",
        /// Money was given back, or waits to be sent by hand.
        Refunded = "refunded",
        /// The operator has sent a refund's money by hand.
        RefundSettled = "refund_settled",
        /// The gateway's answer contradicts the payment. A person must decide.
        ReviewRequested = "review_requested",
        /// A person has decided.
        ReviewResolved = "review_resolved",
        /// An event for webhook endpoints.
        Event = "event",
    }
}

/// A payment's timeline, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The payment.
    pub payment_id: PaymentId,
    /// What happened, in the order of time.
    pub items: Vec<TimelineEntry>,
    /// Whether there are more deliveries than the entries show: they show the oldest 200.
    pub has_more_deliveries: bool,
}

/// Something that happened to a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When it happened; if several times in a row, the first time.
    pub created_at: Timestamp,
    /// What happened.
    pub kind: TimelineKind,
    /// What happened and why, for people.
    pub description: String,
    /// How many times it happened in a row.
    pub times: u32,
    /// When it happened for the last time, if more than once.
    pub last_at: Option<Timestamp>,
    /// The event, if it is one.
    pub event: Option<TimelineEvent>,
}

/// An event in a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEvent {
    /// The event's id.
    pub id: EventId,
    /// The event's kind.
    pub event: EventKind,
    /// Its deliveries, oldest first.
    pub deliveries: Vec<TimelineDelivery>,
}

/// A delivery in a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineDelivery {
    /// The delivery's id.
    pub id: DeliveryId,
    /// The endpoint.
    pub webhook_id: WebhookId,
    /// The delivery's status.
    pub status: DeliveryStatus,
    /// The number of delivery attempts.
    pub attempts: u32,
    /// The HTTP status of the last response; `None` without a response.
    pub response_status: Option<u16>,
    /// Why there is no response.
    pub error: Option<DeliveryError>,
    /// When the delivery was added to the outbox.
    pub created_at: Timestamp,
    /// When the response arrived.
    pub delivered_at: Option<Timestamp>,
}
