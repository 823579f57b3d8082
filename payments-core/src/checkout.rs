//! The checkout session: the payment as the customer's browser sees it.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Amount, CreatePayment, Currency, Customer, Environment, MobileNumber, Payment, PaymentId, PaymentMethod, RawStatus,
    Status, Timestamp,
    aliased::aliased_resource,
    create_payment,
    validation::{Fields, Invalid},
    web_url::web_url,
};

aliased_resource! {
    /// What the checkout page needs to know (API specification, "Checkout session"). It holds nothing of the
    /// merchant's that a customer should not see: no metadata, no fee.
    pub struct CheckoutSession {
        /// The payment's id.
        id: PaymentId = "id",
        /// What is to be paid.
        amount: Amount = "amount",
        /// Its currency.
        currency: Currency = "currency",
        /// What it is for.
        description: Option<String> = "description",
        /// Who pays, as far as the merchant said.
        customer_name: Option<String> = "customerName",
        /// Their e-mail address.
        customer_email: Option<String> = "customerEmail",
        /// Their phone number.
        customer_phone: Option<String> = "customerPhone",
        /// Where the payment stands.
        status: RawStatus = "status",
        /// Whether real money moves.
        environment: Environment = "environment",
        /// Who is paid.
        merchant_name: String = "merchantName",
        /// The developer app's name, if it was made through one.
        app_name: Option<String> = "appName",
        /// The developer app's picture.
        app_logo_url: Option<String> = "appLogoUrl",
        /// The merchant's web site.
        website: Option<String> = "website",
        /// The developer app's web site.
        website_url: Option<String> = "websiteUrl",
        /// Whether the session's life is over.
        is_expired: bool = "isExpired",
        /// Whether it is a test session, with a simulator and no money.
        is_simulated: bool = "isSimulated",
        /// The ways to pay.
        payment_methods: Vec<PaymentMethod> = "paymentMethods",
        /// Where the customer goes after paying.
        success_url: String = "successUrl",
        /// Where the customer goes otherwise.
        cancel_url: String = "cancelUrl",
        /// When the session's life ends.
        expires_at: Timestamp = "expiresAt",
    }
}

/// How the simulator of a test session is to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulateOutcome {
    /// As if the customer had paid.
    #[default]
    Completed,
    /// As if the payment had been refused.
    Failed,
    /// As if the customer had given up.
    Cancelled,
}

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Simulate {
    /// How the session is to end.
    #[serde(rename = "status")]
    pub outcome: SimulateOutcome,
}

impl Simulate {
    /// Reads `status` (`completed`, `failed`, `cancelled`) or `action` (`success`, `fail`, `cancel`; it wins) from the
    /// body of a request; with neither, or without a body, the session is completed.
    ///
    /// # Errors
    /// One sentence for each that is another word.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let mut fields = Fields::of_body(body)?;
        let mut word = |name: &'static str, words: [&str; 3]| {
            let json = fields.raw(name)?;
            let text: Option<String> = serde_json::from_str(json).ok();
            let place = text.and_then(|text| words.iter().position(|word| **word == text));
            match place.and_then(|place| OUTCOMES.get(place)) {
                Some(outcome) => Some(*outcome),
                None => fields.fault(name, format_args!("must be one of {}", words.join(", ")), None),
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
    /// How a simulation ended.
    pub struct Simulation {
        /// Where the payment stands: `paid`, `failed` or `cancelled`.
        status: RawStatus = "status",
        /// Where the customer goes next.
        redirect_url: String = "redirectUrl",
        /// Whether it was paid.
        success: bool = "success",
    }
}

impl Simulation {
    /// What to tell of a payment that a simulation has just ended.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        Self {
            status: payment.raw_status.clone(),
            redirect_url: redirect_url(payment),
            success: payment.raw_status == RawStatus::Paid,
            unknown: crate::aliased::UnknownFields::default(),
        }
    }
}

/// The parameters of a payment that the customer begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pay {
    /// How to pay; mobile money unless said otherwise. Dollars are always paid by card, and a test session always by the
    /// simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_method: Option<PaymentMethod>,
    /// The phone number of the mobile wallet, in eleven digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    /// Where the customer goes after paying, instead of the payment's success URL: an address with the scheme, host and
    /// port of that or of the cancel URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
}

impl Pay {
    /// Reads the body of a request; without one nothing is said.
    ///
    /// # Errors
    /// One sentence for each field that is wrong.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let mut fields = Fields::of_body(body)?;
        let method = fields.text("paymentMethod", MAX_TEXT_BYTES);
        let payment_method = method.and_then(|word| match PaymentMethod::known(&word) {
            Some(method) => Some(method),
            None => fields.fault("paymentMethod", "must be one of mfs, card, test", None),
        });
        let phone = fields.text("phoneNumber", MAX_TEXT_BYTES);
        let phone_number = phone.and_then(|text| match text.parse::<MobileNumber>() {
            Ok(number) => Some(number.as_str().to_owned()),
            Err(error) => fields.fault("phoneNumber", error, None),
        });
        let redirect_url = fields.text("redirectUrl", MAX_TEXT_BYTES).and_then(|text| match web_url(&text) {
            Some(_) => Some(text),
            None => fields.fault("redirectUrl", "must be an absolute URL", None),
        });
        fields.finish(Self { payment_method, phone_number, redirect_url })
    }

    /// Whether this payment can be paid so. Anyone who knows the session can say how, so a customer is led to no address
    /// but the shop's own.
    ///
    /// # Errors
    /// One sentence for each field that does not fit the payment.
    pub fn check_against(&self, payment: &Payment) -> Result<(), Invalid> {
        let mut invalid = Invalid::default();
        if let Some(method) = self.payment_method.as_ref().filter(|_| !payment.is_simulated) {
            let fitting = match payment.currency {
                Currency::Bdt => PaymentMethod::Mfs,
                Currency::Usd => PaymentMethod::Card,
            };
            // The default is as good as nothing said.
            if *method != fitting && *method != PaymentMethod::Mfs {
                let currency = payment.currency;
                invalid.add("paymentMethod", format_args!("must be {fitting} for a live payment in {currency}"), ());
            }
        }
        if let Some(address) = &self.redirect_url {
            let origin = |address: &str| web_url(address).map(|url| url.origin());
            let shops = [origin(&payment.success_url), origin(&payment.cancel_url)];
            if origin(address).is_none() || !shops.contains(&origin(address)) {
                let fault = "must have the scheme, host and port of the payment's success_url or cancel_url";
                invalid.add("redirectUrl", fault, ());
            }
        }
        invalid.or(())
    }
}

/// The parameters of a demo session: a test session that anyone may make, in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoSession {
    /// The payment to make.
    pub params: CreatePayment,
}

impl DemoSession {
    /// Reads the body of a request. `amount` is 100 and `currency` BDT unless said otherwise.
    ///
    /// # Errors
    /// One sentence for each field that is wrong.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let amount = match fields.raw("amount") {
            None => Amount::from_minor(10_000),
            Some(_) => create_payment::amount(&mut fields),
        };
        let mut params = CreatePayment::new(amount, "", "").currency(create_payment::currency(&mut fields));
        params.description = fields.text("description", MAX_TEXT_BYTES);
        let customer = Customer {
            name: fields.text("customerName", MAX_TEXT_BYTES),
            email: fields.text("customerEmail", MAX_TEXT_BYTES),
            phone: None,
        };
        fields.finish(Self { params: params.customer(customer) })
    }
}

aliased_resource! {
    /// A demo session, and where its checkout page is.
    pub struct DemoCheckout {
        /// The payment's id, `test_pay_…`.
        id: PaymentId = "id",
        /// What is to be paid.
        amount: Amount = "amount",
        /// Its currency.
        currency: Currency = "currency",
        /// What it is for.
        description: Option<String> = "description",
        /// Who pays.
        customer_name: Option<String> = "customerName",
        /// Their e-mail address.
        customer_email: Option<String> = "customerEmail",
        /// Where the payment stands.
        status: RawStatus = "status",
        /// Always `test`.
        environment: Environment = "environment",
        /// Always true.
        is_simulated: bool = "isSimulated",
        /// The checkout page, relative to this server.
        checkout_path: String = "checkoutUrl",
        /// The checkout page, absolute.
        checkout_url: String = "checkout_url",
        /// When the session's life ends.
        expires_at: Timestamp = "expiresAt",
    }
}

const MAX_TEXT_BYTES: usize = 2000;

/// Where the customer goes once a payment is over: `success_url` if it is paid, else `cancel_url`, with `payment_id`
/// and the public `status` added to its query. What the query held is kept.
#[must_use]
pub fn redirect_url(payment: &Payment) -> String {
    let target = if payment.raw_status == RawStatus::Paid { &payment.success_url } else { &payment.cancel_url };
    redirect_target(target, &payment.id, &payment.status)
}

/// An address of the shop with `payment_id` and `status` added to its query.
#[must_use]
pub fn redirect_target(address: &str, id: &PaymentId, status: &Status) -> String {
    match Url::parse(address) {
        Ok(mut url) => {
            url.query_pairs_mut().append_pair("payment_id", id.as_str()).append_pair("status", status.as_str());
            url.into()
        }
        // It was an address when the payment was made; should it not be one, it goes as it is.
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_takes_a_status_or_an_action_and_the_action_wins() {
        use SimulateOutcome::{Cancelled, Completed, Failed};
        for (body, outcome) in [
            ("", Completed),
            ("{}", Completed),
            (r#"{"status":null}"#, Completed),
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
    fn the_way_back_keeps_what_the_shops_address_holds() {
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
