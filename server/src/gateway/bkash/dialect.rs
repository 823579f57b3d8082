//! The two versions of bKash's API, as data. No public client speaks v2, so its facts come from documents alone.

use serde_json::{Value, json};

use crate::gateway::settings::Settings;

/// A version of the API: its paths, its names, and how it behaves.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Its word in the settings, and the end of its base URL.
    pub(super) version: &'static str,
    pub(super) live: &'static str,
    /// Follows the base URL and precedes each path.
    product: &'static str,
    pub(super) grant: &'static str,
    pub(super) refresh: &'static str,
    pub(super) create: &'static str,
    pub(super) execute: &'static str,
    pub(super) query: &'static str,
    pub(super) refund: &'static str,
    pub(super) refund_status: &'static str,
    pub(super) mode: Option<&'static str>,
    payment: &'static str,
    transaction: &'static str,
    pub(super) refund_amount: &'static str,
    /// Whether a success may lack `statusCode`.
    pub(super) succeeds_without_code: bool,
    /// Whether an execute uses the payment up, whatever its outcome.
    pub(super) execute_uses_up: bool,
    /// Whether the status of refunds has all of them. Otherwise it has the last one.
    pub(super) lists_refunds: bool,
}

pub(super) static V1: Dialect = Dialect {
    version: "v1.2.0-beta",
    live: "https://tokenized.pay.bka.sh/v1.2.0-beta",
    product: "/tokenized/checkout",
    grant: "/token/grant",
    refresh: "/token/refresh",
    create: "/create",
    execute: "/execute",
    query: "/payment/status",
    refund: "/payment/refund",
    refund_status: "/payment/refund",
    mode: Some("0011"),
    payment: "paymentID",
    transaction: "trxID",
    refund_amount: "amount",
    succeeds_without_code: false,
    execute_uses_up: false,
    lists_refunds: false,
};

pub(super) static V2: Dialect = Dialect {
    version: "v2",
    live: "https://tokenized.pay.bka.sh/v2",
    product: "/tokenized-checkout",
    grant: "/auth/grant-token",
    refresh: "/auth/refresh-token",
    create: "/payment/create",
    execute: "/payment/execute",
    query: "/query/payment",
    refund: "/refund/payment/transaction",
    refund_status: "/refund/payment/status",
    mode: None,
    payment: "paymentId",
    transaction: "trxId",
    refund_amount: "refundAmount",
    succeeds_without_code: true,
    execute_uses_up: true,
    lists_refunds: true,
};

impl Dialect {
    pub(super) fn of(settings: &Settings) -> &'static Self {
        if settings.text("version") == V2.version { &V2 } else { &V1 }
    }

    pub(super) fn url(&self, settings: &Settings, path: &str) -> String {
        format!("{}{}{path}", settings.text("base_url"), self.product)
    }

    /// The body of a call about a payment.
    pub(super) fn about(&self, payment: &str) -> Value {
        json!({ (self.payment): payment })
    }

    /// The body of a call about a payment's transaction.
    pub(super) fn about_transaction(&self, payment: &str, transaction: &str) -> Value {
        json!({ (self.payment): payment, (self.transaction): transaction })
    }
}
