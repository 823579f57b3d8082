//! Checkout sessions: payments as the customer's browser sees them.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Amount, CreatePayment, Currency, Customer, Environment, ErrorCode, LineItem, Money, Payment, PaymentId,
    PaymentMethod, RawStatus, Status, Timestamp,
    aliased::{UnknownFields, aliased_resource},
    create_payment,
    customer::given,
    validation::{Fields, Invalid},
    way_to_pay::WayToPay,
};

aliased_resource! {
    /// A checkout session, as the checkout page shows it (API specification, "Checkout session"). It omits fields that the
    /// customer must not see, such as metadata and fees.
    pub struct CheckoutSession {
        /// The payment's id.
        id: PaymentId = "id",
        /// The amount to pay.
        amount: Amount = "amount",
        /// The currency.
        currency: Currency = "currency",
        /// The payment's description.
        description: Option<String> = "description",
        /// The order's lines, if the merchant gave them.
        line_items: Option<Vec<LineItem>> = "lineItems" (omitted if None),
        /// The customer's name, if the merchant gave it.
        customer_name: Option<String> = "customerName",
        /// The customer's e-mail address.
        customer_email: Option<String> = "customerEmail",
        /// The customer's phone number.
        customer_phone: Option<String> = "customerPhone",
        /// The payment's internal status.
        status: RawStatus = "status",
        /// Live or test.
        environment: Environment = "environment",
        /// The merchant's name.
        merchant_name: String = "merchantName",
        /// The developer app's name, if the payment belongs to one.
        app_name: Option<String> = "appName",
        /// The developer app's logo.
        app_logo_url: Option<String> = "appLogoUrl",
        /// The merchant's website.
        website: Option<String> = "website",
        /// The developer app's website.
        website_url: Option<String> = "websiteUrl",
        /// Whether the session has expired.
        is_expired: bool = "isExpired",
        /// Whether this is a test session.
        is_simulated: bool = "isSimulated",
        /// The available payment methods.
        payment_methods: Vec<PaymentMethod> = "paymentMethods",
        /// The available ways to pay, the preferred one first. An older server does not send them.
        ways: Option<Vec<WayToPay>> = "ways" (omitted if None),
        /// Where to send the customer after a successful payment.
        success_url: String = "successUrl",
        /// Where to send the customer otherwise.
        cancel_url: String = "cancelUrl",
        /// When the session expires.
        expires_at: Timestamp = "expiresAt",
    }
}

/// Shows which of the customer's fields are set, not their values, to keep customer data out of logs.
impl fmt::Debug for CheckoutSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckoutSession")
            .field("id", &self.id)
            .field("amount", &self.amount)
            .field("currency", &self.currency)
            .field("status", &self.status)
            .field("environment", &self.environment)
            .field("ways", &self.ways)
            .field("expires_at", &self.expires_at)
            .field("customer_name", &given(&self.customer_name))
            .field("customer_email", &given(&self.customer_email))
            .field("customer_phone", &given(&self.customer_phone))
            .finish_non_exhaustive()
    }
}

/// The outcome of a test session, chosen by the caller of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulateOutcome {
    /// The customer pays.
    #[default]
    Completed,
    /// The payment fails.
    Failed,
    /// The customer cancels.
    Cancelled,
}

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Simulate {
    /// The outcome of the session.
    #[serde(rename = "status")]
    pub outcome: SimulateOutcome,
}

impl Simulate {
    /// Parses a request body: `action` (`success`, `fail`, `cancel`) or else `status` (`completed`, `failed`, `cancelled`).
    /// Without a body, or with an empty one, the outcome is `completed`. Any other body must have one of the two fields.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        if !fields.is_empty() && fields.raw("status").or(fields.raw("action")).is_none() {
            let error = "must be given (completed, failed, cancelled), or action (success, fail, cancel)";
            fields.error("status", ErrorCode::FieldMissing, error, ());
        }
        let mut word = |name: &'static str, words: [&str; 3]| {
            let json = fields.raw(name)?;
            let text: Option<String> = serde_json::from_str(json).ok();
            let index = text.and_then(|text| words.iter().position(|word| **word == text));
            match index.and_then(|index| OUTCOMES.get(index)) {
                Some(outcome) => Some(*outcome),
                None => {
                    fields.error(name, ErrorCode::FieldInvalid, format!("must be one of {}", words.join(", ")), None)
                }
            }
        };
        let status = word("status", ["completed", "failed", "cancelled"]);
        let action = word("action", ["success", "fail", "cancel"]);
        fields.finish(Self { outcome: action.or(status).unwrap_or_default() })
    }
}

const OUTCOMES: [SimulateOutcome; 3] =
    [SimulateOutcome::Completed, SimulateOutcome::Failed, SimulateOutcome::Cancelled];

aliased_resource! {
    /// The result of a simulation.
    #[derive(Debug)]
    pub struct Simulation {
        /// The payment's new status: `paid`, `failed` or `cancelled`.
        status: RawStatus = "status",
        /// Where to send the customer next.
        redirect_url: String = "redirectUrl",
        /// Whether the payment is paid.
        success: bool = "success",
    }
}

impl Simulation {
    /// The result for a payment after its simulation.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        Self {
            status: payment.raw_status.clone(),
            redirect_url: redirect_url(payment),
            success: payment.raw_status == RawStatus::Paid,
            unknown: UnknownFields::new(),
        }
    }
}

/// The parameters of a demo session: a test session in the sandbox that needs no API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoSession {
    /// The payment to create.
    pub params: CreatePayment,
}

impl DemoSession {
    /// Parses a request body, which may be empty. The default amount is 100 BDT.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let amount = match fields.raw("amount") {
            None => Amount::from_minor(10_000),
            Some(_) => create_payment::amount(&mut fields),
        };
        let money = Money::new(amount, create_payment::currency(&mut fields));
        let mut params = CreatePayment::of(money).success_url("").cancel_url("");
        params.description = fields.text("description", MAX_TEXT_BYTES);
        let customer = Customer {
            name: fields.line("customerName", MAX_TEXT_BYTES),
            email: fields.text("customerEmail", MAX_TEXT_BYTES),
            phone: None,
            unknown: UnknownFields::new(),
        };
        fields.finish(Self { params: params.customer(customer) })
    }
}

aliased_resource! {
    /// A demo session and the URL of its checkout page.
    pub struct DemoCheckout {
        /// The payment's id, `test_pay_…`.
        id: PaymentId = "id",
        /// The amount to pay.
        amount: Amount = "amount",
        /// The currency.
        currency: Currency = "currency",
        /// The payment's description.
        description: Option<String> = "description",
        /// The customer's name.
        customer_name: Option<String> = "customerName",
        /// The customer's e-mail address.
        customer_email: Option<String> = "customerEmail",
        /// The payment's internal status.
        status: RawStatus = "status",
        /// Always `test`.
        environment: Environment = "environment",
        /// Always true.
        is_simulated: bool = "isSimulated",
        /// The path of the checkout page on this server.
        checkout_path: String = "checkoutUrl",
        /// The absolute URL of the checkout page.
        checkout_url: String = "checkout_url",
        /// When the session expires.
        expires_at: Timestamp = "expiresAt",
    }
}

/// Shows which of the customer's fields are set, not their values, to keep customer data out of logs.
impl fmt::Debug for DemoCheckout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoCheckout")
            .field("id", &self.id)
            .field("amount", &self.amount)
            .field("currency", &self.currency)
            .field("status", &self.status)
            .field("expires_at", &self.expires_at)
            .field("customer_name", &given(&self.customer_name))
            .field("customer_email", &given(&self.customer_email))
            .finish_non_exhaustive()
    }
}

pub(crate) const MAX_TEXT_BYTES: usize = 2000;

/// Where to send the customer after a payment: `success_url` if it is paid, else `cancel_url`, with `payment_id` and
/// the public `status` appended to the query.
#[must_use]
pub fn redirect_url(payment: &Payment) -> String {
    let target = if payment.raw_status == RawStatus::Paid { &payment.success_url } else { &payment.cancel_url };
    redirect_target(target, &payment.id, &payment.status)
}

/// Appends `payment_id` and `status` to the query of a shop's URL.
#[must_use]
pub fn redirect_target(address: &str, id: &PaymentId, status: &Status) -> String {
    match Url::parse(address) {
        Ok(mut url) => {
            url.query_pairs_mut().append_pair("payment_id", id.as_str()).append_pair("status", status.as_str());
            url.into()
        }
        // The URL was checked when the payment was created, so this does not happen.
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pay;

    #[test]
    fn an_action_overrides_a_status_in_a_simulation() {
        use SimulateOutcome::{Cancelled, Completed, Failed};
        for (body, outcome) in [
            ("", Completed),
            ("{}", Completed),
            (r#"{"status":null,"action":"fail"}"#, Failed),
            (r#"{"status":"failed","action":null,"note":1}"#, Failed),
            (r#"{"status":"completed"}"#, Completed),
            (r#"{"status":"failed"}"#, Failed),
            (r#"{"status":"cancelled"}"#, Cancelled),
            (r#"{"action":"success"}"#, Completed),
            (r#"{"action":"fail"}"#, Failed),
            (r#"{"action":"cancel"}"#, Cancelled),
            (r#"{"action":"fail","status":"completed"}"#, Failed),
        ] {
            assert_eq!(Simulate::from_json(body.as_bytes()).unwrap().outcome, outcome, "{body}");
        }
        for body in [r#"{"status":"paid"}"#, r#"{"action":"failed"}"#, r#"{"status":1}"#, "[]"] {
            assert!(Simulate::from_json(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn debug_shows_no_customers_data() {
        let pay = r#"{"phoneNumber":"01712345678","customerName":"Asha Rahman","customerEmail":"asha@shop.example"}"#;
        let pay = Pay::from_json(pay.as_bytes()).unwrap();
        let session = r#"{"id":"pay_1","amount":1,"currency":"BDT","customerName":"Asha Rahman",
            "customerEmail":"asha@shop.example","customerPhone":"01712345678","status":"created","environment":"live",
            "merchantName":"Shop","isExpired":false,"isSimulated":false,"paymentMethods":["mfs"],"description":null,
            "appName":null,"appLogoUrl":null,"website":null,"websiteUrl":null,"successUrl":"https://shop.example",
            "cancelUrl":"https://shop.example","expiresAt":"2026-03-01T00:00:00.000Z"}"#;
        let session: CheckoutSession = serde_json::from_str(session).unwrap();
        let demo = r#"{"id":"test_pay_1","amount":1,"currency":"BDT","description":null,"customerName":"Asha Rahman",
            "customerEmail":"asha@shop.example","status":"created","environment":"test","isSimulated":true,
            "checkoutUrl":"/checkout/1","checkout_url":"https://shop.example/1","expiresAt":"2026-03-01T00:00:00.000Z"}"#;
        let demo: DemoCheckout = serde_json::from_str(demo).unwrap();
        for shown in [format!("{pay:?}"), format!("{session:?}"), format!("{demo:?}")] {
            assert!(shown.contains("given"), "{shown}");
            assert!(["Asha", "asha@", "0171"].iter().all(|data| !shown.contains(data)), "{shown}");
        }
    }

    #[test]
    fn the_redirect_keeps_the_query_of_the_shops_url() {
        let id: PaymentId = "pay_1".parse().unwrap();
        for (address, target) in [
            ("https://a.example", "https://a.example/?payment_id=pay_1&status=completed"),
            (
                "https://a.example/x?o=1&p=%20y#end",
                "https://a.example/x?o=1&p=%20y&payment_id=pay_1&status=completed#end",
            ),
        ] {
            assert_eq!(redirect_target(address, &id, &Status::Completed), target);
        }
    }
}
