//! The API's routes, one row each, for the tests that call every route. Methods, paths and statuses are the document's.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{document::operations, server::Server};

/// An operation, the scopes that its key needs, a body that it accepts, and a body or a query that it refuses. An
/// operation without scopes needs no key.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: [Row; 46] = [
    ("createPayment", "payments:write", PAYMENT, r#"{"amount": -1}"#),
    ("listPayments", "payments:read", "", "?page=0"),
    ("retrievePayment", "payments:read", "", ""),
    ("retrieveTimeline", "payments:read", "", ""),
    ("refundPayment", "refunds:write", "{}", r#"{"reason": 5}"#),
    ("simulatePayment", "payments:write", r#"{"event": "disputed"}"#, r#"{"event": "explode"}"#),
    ("retrieveAccount", "account:read", "", ""),
    ("retrieveBalance", "account:read", "", ""),
    ("retrieveActivity", "account:read", "", "?days=367"),
    ("drawActivity", "account:read", "", "?currency=EUR"),
    ("listApps", "account:read", "", ""),
    ("listKeys", "account:read", "", ""),
    ("listAudit", "account:read", "", "?limit=0"),
    ("listNotices", "account:read", "", ""),
    ("listTransactions", "account:read,payments:read", "", "?limit=0"),
    ("downloadTransactions", "account:read,payments:read", "", "?limit=0"),
    ("listPayouts", "payouts:read", "", "?limit=0"),
    ("createPayout", "payouts:write", r#"{"currency": "BDT"}"#, r#"{"currency": "BDT", "amount": null}"#),
    ("listPayoutDestinations", "payouts:read", "", ""),
    ("setPayoutDestination", "payouts:write", DESTINATION, r#"{"currency": "BDT"}"#),
    ("setPayoutSchedule", "payouts:write", r#"{"currency": "BDT", "interval": "daily"}"#, r#"{"currency": "BDT"}"#),
    ("retrievePayout", "payouts:read", "", ""),
    ("cancelPayout", "payouts:write", "", "?now=true"),
    ("retrievePayoutStatement", "payouts:read,payments:read", "", "?lang=en"),
    ("listPayoutTransactions", "payouts:read,payments:read", "", "?limit=0"),
    ("downloadPayoutTransactions", "payouts:read,payments:read", "", "?limit=0"),
    ("listEvents", "payments:read", "", "?limit=0"),
    ("retrieveEvent", "payments:read", "", ""),
    ("listRequests", "account:read", "", "?before=x"),
    ("createWebhook", "webhooks:write", r#"{"url": "http://127.0.0.1:9/", "events": "*"}"#, r#"{"url": "x"}"#),
    ("listWebhooks", "webhooks:read", "", ""),
    ("listDeliveries", "webhooks:read", "", "?limit=101"),
    ("resendDelivery", "deliveries:resend", "{}", "["),
    ("verifySignature", "", r#"{"payload": "a", "signature": "t=1,v1=00", "secret": "whsec_a"}"#, "{}"),
    ("updateWebhook", "webhooks:write", "{}", r#"{"isActive": 1}"#),
    ("removeWebhook", "webhooks:write", "", ""),
    ("rotateWebhookSecret", "webhooks:write", "{}", r#"{"overlapSeconds": -1}"#),
    ("recoverWebhook", "webhooks:write", r#"{"since": "2026-03-01T00:00:00Z"}"#, r#"{"since": "today"}"#),
    ("testWebhook", "webhooks:write", "{}", "["),
    ("advanceSandbox", "sandbox:write", r#"{"seconds": 1}"#, r#"{"seconds": 0}"#),
    ("resetSandbox", "sandbox:write", "{}", "["),
    ("createDemoSession", "", "{}", r#"{"amount": "5"}"#),
    ("retrieveCheckout", "", "", ""),
    ("simulateCheckout", "", r#"{"action": "fail"}"#, r#"{"action": "explode"}"#),
    ("payCheckout", "", "{}", r#"{"phoneNumber": "1"}"#),
    ("retrieveDescription", "", "", ""),
];

const DESTINATION: &str =
    r#"{"currency": "BDT", "wallet": {"holder": "Karim", "provider": "bkash", "number": "01712345678"}}"#;
const PAYMENT: &str =
    r#"{"amount": 5, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}"#;

pub(crate) struct Route<'d> {
    pub(crate) id: &'d str,
    pub(crate) method: Method,
    /// The path with `{id}`, if it has one.
    pub(crate) path: &'d str,
    pub(crate) scopes: Vec<&'static str>,
    pub(crate) body: &'static str,
    pub(crate) refused: &'static str,
    /// The operation of the document.
    pub(crate) described: &'d Value,
}

/// The routes of the document. Each has a row.
pub(crate) fn routes(document: &Value) -> impl Iterator<Item = Route<'_>> {
    assert_eq!(operations(document).count(), ROWS.len());
    operations(document).map(|(path, method, described)| {
        let id = described["operationId"].as_str().unwrap();
        let row = ROWS.iter().find(|row| row.0 == id).unwrap_or_else(|| panic!("{id} has no row"));
        let &(_, scopes, body, refused) = row;
        let scopes: Vec<_> = scopes.split(',').filter(|scope| !scope.is_empty()).collect();
        assert_eq!(described["security"].is_null(), !scopes.is_empty(), "{id}");
        Route { id, method: method.to_uppercase().parse().unwrap(), path, scopes, body, refused, described }
    })
}

impl Route<'_> {
    pub(crate) fn is_keyed(&self) -> bool {
        !self.scopes.is_empty()
    }

    pub(crate) fn has_status(&self, status: &str) -> bool {
        !self.described["responses"][status].is_null()
    }

    /// The prefix of the ids that the path takes.
    pub(crate) fn kind_of_id(&self) -> Option<&'static str> {
        let kinds = [("/payouts/", "po"), ("/webhooks/deliveries/", "del"), ("/webhooks/", "wh"), ("/events/", "evt")];
        let kinds = kinds.into_iter().chain([("/payments/", "pay"), ("/checkout/", "pay")]);
        let (before, _) = self.path.split_once("{id}")?;
        Some(kinds.into_iter().find(|(end, _)| before.ends_with(end)).unwrap_or_else(|| panic!("{}", self.path)).1)
    }

    /// A request for an id, without a key and a body.
    pub(crate) fn request(&self, server: &Server, id: &str) -> RequestBuilder {
        server.keyless(self.method.clone(), &self.path.replace("{id}", id))
    }

    /// A request for an id that nothing has, with a query, without a key and a body.
    pub(crate) fn unknown(&self, server: &Server, query: &str) -> RequestBuilder {
        let id = format!("{}_0", self.kind_of_id().unwrap_or_default());
        server.keyless(self.method.clone(), &(self.path.replace("{id}", &id) + query))
    }

    /// A body that the server accepts.
    pub(crate) fn valid_body(&self) -> Value {
        if self.body.is_empty() { json!({}) } else { serde_json::from_str(self.body).unwrap() }
    }
}
