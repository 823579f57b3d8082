//! Every row of the specification and its result.

use std::collections::BTreeSet;

/// Every section with the first words of its rows and rules.
pub(super) const SPECIFICATION: [(&str, &[&str]); 22] = [
    (
        "Payment",
        &[
            "id",
            "amount",
            "currency",
            "checkoutUrl",
            "merchantTransactionId",
            "customer",
            "metadata",
            "netAmount",
            "platformFeeAmount",
            "feePercentage",
            "refund",
            "status",
            "rawStatus",
            "isSimulated",
            "environment",
            "checkout_url, platform_fee, net_amount",
        ],
    ),
    (
        "Create-payment parameters",
        &[
            "amount",
            "success_url",
            "cancel_url",
            "currency",
            "description",
            "metadata",
            "customer",
            "In live mode, redirect URLs must use HTTPS",
        ],
    ),
    ("Refund", &["reason", "requiresManualSettlement"]),
    ("Account", &["workspace", "balance", "volume"]),
    ("Developer app", &["redirectUris", "webhookUrl into websiteUrl"]),
    ("Webhook endpoint", &["url", "events", "appId", "secret"]),
    ("Webhook delivery", &["del_<id>", "responseStatus and attempts", "truncated response body"]),
    ("Paginated list wrapper", &["List routes return a paginated wrapper"]),
    ("Mapping used by the status filter", &["pending", "completed"]),
    ("Transitions", &["create payment", "confirmed payment approval", "simulate on a test checkout session", "refund"]),
    ("Rules", &["Only paid can be refunded", "Test payments cannot be refunded", "Reconciled with retrieve"]),
    (
        "Endpoints",
        &[
            "POST /payments",
            "GET /payments/:id",
            "GET /payments",
            "POST /payments/:id/refund",
            "GET /account",
            "GET /account/balance",
            "GET /account/apps",
            "POST /webhooks",
            "GET /webhooks",
            "GET /webhooks/deliveries",
            "DELETE /webhooks/:id",
            "POST /webhooks/:id/test",
            "POST /webhooks/verify",
            "GET /checkout/:id",
            "POST /checkout/:id/simulate",
            "POST /checkout/:id/pay",
            "POST /checkout/demo-session",
            "Result of pay: live",
            "Result of pay: test",
        ],
    ),
    ("Idempotency", &["deduplicated for 24 hours per developer", "Idempotent-Replayed: true"]),
    (
        "Authentication",
        &[
            "Bearer",
            "x-api-key",
            "prefixes",
            "missing, malformed or revoked",
            "SHA-256, shown once, rotation",
            "sandbox key",
            "keyless routes",
            "payloads are signed",
        ],
    ),
    (
        "Event kinds",
        &[
            "payment.created",
            "payment.completed",
            "payment.refunded",
            "test.ping",
            "* receives every event",
            "No payment.failed",
        ],
    ),
    ("Request headers", &["X-Service-Signature", "X-Service-Event", "X-Service-Delivery"]),
    ("Body envelope", &["id", "event", "created_at", "data"]),
    ("Data shapes", &["the payment", "plus refund_reason", "test.ping", "wrapped"]),
    ("Signature", &["HMAC-SHA256 in hex", "t and v1", "raw body bytes", "tolerance", "verification failure reasons"]),
    ("Delivery", &["One attempt, 8 second timeout", "do not block the payment", "Every attempt is logged", "2xx"]),
    ("Errors", &["400", "401", "408", "429", "5xx", "Validation failure body", "Successful responses are JSON"]),
    (
        "Limits",
        &[
            "120 per minute",
            "X-RateLimit headers on every response",
            "429 with Retry-After",
            "keyless per address",
            "Signature age tolerance",
            "prefix /api/v1",
            "aliases are kept",
        ],
    ),
];

/// The results of the rows.
#[derive(Default)]
pub(super) struct Report {
    pub(super) seen: BTreeSet<(&'static str, &'static str)>,
    pub(super) failed: Vec<String>,
}

impl Report {
    pub(super) fn row(&mut self, section: &'static str, row: &'static str, holds: bool, found: &dyn std::fmt::Debug) {
        let is_known = SPECIFICATION.iter().any(|(known, rows)| *known == section && rows.contains(&row));
        assert!(is_known, "{section}: {row} is not in the table");
        self.seen.insert((section, row));
        if !holds {
            self.failed.push(format!("{section}: {row}: {found:?}"));
        }
    }

    pub(super) fn end(self) {
        let all = SPECIFICATION.iter().flat_map(|(section, rows)| rows.iter().map(move |row| (*section, *row)));
        let missing: Vec<_> = all.filter(|row| !self.seen.contains(row)).collect();
        assert!(missing.is_empty(), "rows without a case: {missing:?}");
        assert!(self.failed.is_empty(), "{} rows fail:\n{}", self.failed.len(), self.failed.join("\n"));
    }
}
