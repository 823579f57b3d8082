//! What a customer sends to begin to pay.

use std::fmt;

use serde::Serialize;

use crate::{
    ErrorCode, MobileNumber, Payment, PaymentMethod,
    checkout::MAX_TEXT_BYTES,
    customer::{MAX_CUSTOMER_BYTES, given},
    validation::{Fields, Invalid},
    way_to_pay,
    web_url::{web_url, web_url_error},
};

/// The parameters to start paying a checkout session.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pay {
    /// How the customer pays: `mfs` for mobile money, `card`, or the name of one of the session's ways to pay. `mfs` is the
    /// default; a payment that no mobile money can pay then takes its first way. A test session always uses the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_method: Option<PaymentMethod>,
    /// The phone number of the mobile wallet, in eleven digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    /// Where to send the customer afterwards, instead of the payment's success URL. Its scheme, host and port must be
    /// those of the success URL or the cancel URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// The customer's name, for a way to pay that needs one. The payment's own name takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_name: Option<String>,
    /// The customer's e-mail address, for a way to pay that needs one. The payment's own takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
}

/// Shows which of the customer's fields are set, not their values, to keep customer data out of logs.
impl fmt::Debug for Pay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pay")
            .field("payment_method", &self.payment_method)
            .field("phone_number", &given(&self.phone_number))
            .field("redirect_url", &self.redirect_url)
            .field("customer_name", &given(&self.customer_name))
            .field("customer_email", &given(&self.customer_email))
            .finish()
    }
}

impl Pay {
    /// Parses a request body, which may be empty.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let method = fields.text("paymentMethod", MAX_TEXT_BYTES);
        let payment_method = method.and_then(|word| match way_to_pay::is_name(&word) {
            true => Some(PaymentMethod::from(word.as_str())),
            false => {
                let error = "must be mfs, card, test, or the name of a way to pay";
                fields.error("paymentMethod", ErrorCode::PaymentMethodInvalid, error, None)
            }
        });
        let phone = fields.text("phoneNumber", MAX_TEXT_BYTES);
        let phone_number = phone.and_then(|text| match text.parse::<MobileNumber>() {
            Ok(number) => Some(number.as_str().to_owned()),
            Err(error) => fields.error("phoneNumber", ErrorCode::PhoneNumberInvalid, error, None),
        });
        let redirect_url = fields.text("redirectUrl", MAX_TEXT_BYTES).and_then(|text| match web_url(&text) {
            Some(_) => Some(text),
            None => fields.error("redirectUrl", ErrorCode::UrlInvalid, web_url_error(&text), None),
        });
        let customer_name = fields.line("customerName", MAX_CUSTOMER_BYTES);
        let customer_email = fields.line("customerEmail", MAX_CUSTOMER_BYTES);
        fields.finish(Self { payment_method, phone_number, redirect_url, customer_name, customer_email })
    }

    /// Checks the parameters against the payment. Anyone with the session's id can send them, so the redirect URL must
    /// belong to the shop.
    ///
    /// # Errors
    /// One sentence per field that does not match the payment.
    pub fn check_against(&self, payment: &Payment) -> Result<(), Invalid> {
        let mut invalid = Invalid::default();
        if let Some(address) = &self.redirect_url {
            let origin = |address: &str| web_url(address).map(|url| url.origin());
            let shops = [origin(&payment.success_url), origin(&payment.cancel_url)];
            if origin(address).is_none() || !shops.contains(&origin(address)) {
                let error = "must have the scheme, host and port of the payment's success_url or cancel_url";
                invalid.add("redirectUrl", ErrorCode::UrlNotAllowed, error, ());
            }
        }
        invalid.or(())
    }
}
