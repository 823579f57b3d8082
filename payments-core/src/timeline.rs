//! A payment's timeline: what happened to it, and why.

use crate::{
    DeliveryError, DeliveryId, DeliveryStatus, EventId, EventKind, PaymentId, Timestamp, WebhookId,
    aliased::aliased_resource, open_enum::open_enum,
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
        /// A refund that the gateway had accepted failed.
        RefundFailed = "refund_failed",
        /// The operator has sent a refund's money by hand.
        RefundSettled = "refund_settled",
        /// The payment is disputed.
        Disputed = "disputed",
        /// A dispute was won or lost, or an inquiry was closed.
        DisputeClosed = "dispute_closed",
        /// The gateway's answer contradicts the payment. A person must decide.
        ReviewRequested = "review_requested",
        /// A person has decided.
        ReviewResolved = "review_resolved",
        /// An event for webhook endpoints.
        Event = "event",
    }
}

aliased_resource! {
    /// A payment's timeline, oldest first.
    #[derive(Debug)]
    pub struct Timeline {
        /// The payment.
        payment_id: PaymentId = "paymentId",
        /// What happened, in the order of time.
        items: Vec<TimelineEntry> = "items",
        /// Whether there are more deliveries than the entries show: they show the oldest 200.
        has_more_deliveries: bool = "hasMoreDeliveries",
        /// The payment in words that a shopkeeper understands; `None` from a server that does not write them.
        summary: Option<Vec<SummaryLine>> = "summary" (omitted if None),
    }
}

open_enum! {
    /// What a line of a payment's summary is about.
    pub enum SummaryTopic {
        /// What the customer did.
        Customer = "customer",
        /// What the gateway said, and what that means.
        Gateway = "gateway",
        /// Refunds and disputes.
        Money = "money",
        /// What was sent to the shop's server, and what it answered.
        Shop = "shop",
        /// What to do now.
        Next = "next",
    }
}

aliased_resource! {
    /// A sentence of a payment's summary, in two languages.
    #[derive(Debug)]
    pub struct SummaryLine {
        /// What it is about.
        topic: SummaryTopic = "topic",
        /// In English.
        en: String = "en",
        /// In Bangla.
        bn: String = "bn",
    }
}

aliased_resource! {
    /// Something that happened to a payment.
    #[derive(Debug)]
    pub struct TimelineEntry {
        /// When it happened; if several times in a row, the first time.
        created_at: Timestamp = "createdAt",
        /// What happened.
        kind: TimelineKind = "kind",
        /// What happened and why, for people.
        description: String = "description",
        /// How many times it happened in a row.
        times: u32 = "times",
        /// When it happened for the last time, if more than once.
        last_at: Option<Timestamp> = "lastAt",
        /// The event, if it is one.
        event: Option<TimelineEvent> = "event",
    }
}

aliased_resource! {
    /// An event in a timeline.
    #[derive(Debug)]
    pub struct TimelineEvent {
        /// The event's id.
        id: EventId = "id",
        /// The event's kind.
        event: EventKind = "event",
        /// Its deliveries, oldest first.
        deliveries: Vec<TimelineDelivery> = "deliveries",
    }
}

aliased_resource! {
    /// A delivery in a timeline.
    #[derive(Debug)]
    pub struct TimelineDelivery {
        /// The delivery's id.
        id: DeliveryId = "id",
        /// The endpoint.
        webhook_id: WebhookId = "webhookId",
        /// The delivery's status.
        status: DeliveryStatus = "status",
        /// The number of delivery attempts.
        attempts: u32 = "attempts",
        /// The HTTP status of the last response; `None` without a response.
        response_status: Option<u16> = "responseStatus",
        /// Why there is no response.
        error: Option<DeliveryError> = "error",
        /// When the delivery was added to the outbox.
        created_at: Timestamp = "createdAt",
        /// When the response arrived.
        delivered_at: Option<Timestamp> = "deliveredAt",
    }
}
