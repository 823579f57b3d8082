//! Stripe's errors, and which of them are about the charge to be refunded.

use std::fmt::{self, Display, Formatter};

use serde::Deserialize;

use super::DECLARED;
use crate::gateway::answer::Names;

/// The codes of a charge that Stripe does not refund. Other codes are unknown, or are about the account, its keys or the
/// request's own idempotency key: then the money may have gone back.
const OF_THE_CHARGE: [&str; 4] =
    ["charge_already_refunded", "charge_disputed", "charge_not_refundable", "refund_disputed_payment"];

#[derive(Debug, Deserialize)]
pub(super) struct ErrorResponse {
    pub(super) error: StripeError,
}

#[derive(Debug, Deserialize)]
pub(super) struct StripeError {
    #[serde(rename = "type")]
    kind: String,
    code: Option<String>,
    /// The bank's reason, if a bank declined.
    decline_code: Option<String>,
    pub(super) message: Option<String>,
    param: Option<String>,
}

impl StripeError {
    pub(super) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or(&self.kind)
    }

    /// The bank's reason, if this server knows what it means, or else the code.
    pub(super) fn reason(&self) -> &str {
        self.decline_code.as_deref().filter(|reason| DECLARED.meaning(reason).is_some()).unwrap_or(self.code())
    }
}

impl Display for StripeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message.as_deref().unwrap_or("no reason given"), self.code())
    }
}

/// Stripe names the charge only in words. So the code tells, or a parameter `amount`: it is more than is left of the charge.
impl Names for StripeError {
    fn names(&self, _charge: &str) -> bool {
        let is_of_amount = self.code.is_none() && self.param.as_deref() == Some("amount");
        self.kind == "invalid_request_error" && (is_of_amount || OF_THE_CHARGE.contains(&self.code()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_s_known_reason_comes_before_the_code() {
        for (error, reason) in [
            (
                r#"{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds"}"#,
                "insufficient_funds",
            ),
            (r#"{"type":"card_error","code":"card_declined","decline_code":"of_next_year"}"#, "card_declined"),
            (r#"{"type":"card_error"}"#, "card_error"),
        ] {
            assert_eq!(serde_json::from_str::<StripeError>(error).unwrap().reason(), reason);
        }
    }

    #[test]
    fn only_an_error_about_the_charge_refuses_its_refund() {
        for (error, is_about) in [
            (r#"{"type":"invalid_request_error","code":"charge_already_refunded"}"#, true),
            (r#"{"type":"invalid_request_error","code":"charge_disputed"}"#, true),
            (r#"{"type":"invalid_request_error","param":"amount","message":"greater than unrefunded amount"}"#, true),
            (r#"{"type":"invalid_request_error","message":"Invalid API Key provided"}"#, false),
            (r#"{"type":"invalid_request_error","code":"resource_missing","param":"payment_intent"}"#, false),
            (r#"{"type":"invalid_request_error","code":"more_permissions_required"}"#, false),
            (r#"{"type":"invalid_request_error","code":"parameter_unknown","param":"amount"}"#, false),
            (r#"{"type":"invalid_request_error","code":"balance_insufficient"}"#, false),
            (r#"{"type":"idempotency_error"}"#, false),
            (r#"{"type":"idempotency_error","code":"charge_already_refunded"}"#, false),
            (r#"{"type":"api_error","code":"charge_disputed"}"#, false),
            (r#"{"type":"invalid_request_error","code":"a_code_of_next_year"}"#, false),
        ] {
            let error: StripeError = serde_json::from_str(error).unwrap();
            assert_eq!(error.names("pi_1"), is_about, "{error:?}");
        }
    }
}
