//! Notices: states that somebody must look at, each open as long as it lasts.

use crate::{Environment, Timestamp, aliased::aliased_resource, open_enum::open_enum};

open_enum! {
    /// What a notice is about.
    pub enum NoticeKind {
        /// A webhook endpoint with retries has taken nothing for an hour.
        EndpointFailing = "endpoint_failing",
        /// The server disabled a webhook endpoint.
        EndpointDisabled = "endpoint_disabled",
        /// A refund that is sent by hand is due within a day, or was due.
        RefundDue = "refund_due",
        /// The evidence of a dispute is due within three days, or was due.
        DisputeDue = "dispute_due",
        /// A payout has waited for its approval longer than a day.
        PayoutWaiting = "payout_waiting",
        /// A gateway does not answer, and its calls are held back.
        GatewayDown = "gateway_down",
        /// Bank and gateways do not cover what merchants are owed.
        NotCovered = "not_covered",
        /// The newest backup is older than two intervals.
        BackupOld = "backup_old",
    }
}

aliased_resource! {
    /// A notice: a state that somebody must look at.
    #[derive(Debug)]
    pub struct Notice {
        /// What it is about.
        kind: NoticeKind = "kind",
        /// The id or the name of the thing: of an endpoint, a refund, a dispute, a payout, a gateway, a currency. `more` for the
        /// notice that counts those beyond the first 20.
        subject: String = "subject",
        /// The payment of the refund or of the dispute.
        payment: Option<String> = "paymentId" (omitted if None),
        /// The environment, if it is of one.
        environment: Option<Environment> = "environment" (omitted if None),
        /// Since when it is so.
        since: Timestamp = "since",
        /// When it is due, if it has a date.
        due_at: Option<Timestamp> = "dueAt" (omitted if None),
        /// How many more there are. Only of the subject `more`.
        more: Option<u32> = "more" (omitted if None),
    }
}
