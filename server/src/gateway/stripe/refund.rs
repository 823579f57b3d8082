//! The meaning of a Stripe refund's status.
//!
//! | status | meaning | consequence |
//! |---|---|---|
//! | `succeeded` | the money is on its way back | the refund is booked and settled |
//! | `pending` | Stripe waits for its own processing, for funds in the account, or for the charge to settle | the refund is booked |
//! | `requires_action` | Stripe waits for the customer to say where the money goes; not for cards | the refund is booked |
//! | `failed`, `canceled` | the money was not sent back | a booked refund is reversed |
//! | none, or another | unknown | the server asks again |

use payments_core::{Amount, PaymentId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Session, Stripe,
    list::{Item, Page, brief, payment_named},
};
use crate::{
    domain::{GatewayRefund, GatewayRefundState},
    gateway::{
        answer::{About, Names},
        contract::{Listed, RefundOutcome},
        error::GatewayError,
    },
};

#[derive(Debug, Deserialize)]
pub(super) struct StripeRefund {
    pub(super) id: String,
    pub(super) status: Option<String>,
    pub(super) amount: u64,
    failure_reason: Option<String>,
    /// The id, or the whole object if the request asked for it.
    #[serde(default)]
    payment_intent: Value,
    #[serde(default)]
    metadata: Value,
}

impl StripeRefund {
    /// `None` if this server does not know its status.
    pub(super) fn read(&self) -> Option<GatewayRefund> {
        let state = match self.status.as_deref()? {
            "succeeded" => GatewayRefundState::Succeeded,
            "pending" | "requires_action" => GatewayRefundState::Pending,
            status @ ("failed" | "canceled") => {
                let reason = self.failure_reason.as_deref().unwrap_or(status);
                GatewayRefundState::Failed { reason: Some(brief(reason)) }
            }
            _ => return None,
        };
        let id = self.metadata["refund_id"].as_str().and_then(|id| id.parse().ok());
        Some(GatewayRefund { reference: self.id.clone(), id, amount: Amount::from_minor(self.amount), state })
    }

    pub(super) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or("without a status")
    }
}

impl Item for StripeRefund {
    const LIST: &'static str = "refunds";
    const CALL: &'static str = "list refunds";
    const EXPANDED: &'static str = "data.payment_intent";

    fn id(&self) -> &str {
        &self.id
    }

    fn listed(&self) -> Option<(PaymentId, Listed)> {
        Some((payment_named(&self.metadata, &self.payment_intent)?, Listed::Refund(self.read()?)))
    }
}

impl Names for StripeRefund {
    /// Whether `id` is Stripe's id of the refund, or this server's.
    fn names(&self, id: &str) -> bool {
        self.id == id || self.metadata["refund_id"].as_str() == Some(id)
    }
}

impl Stripe {
    /// Finds a refund of a payment intent by this server's id of the refund.
    pub(super) async fn refund_of(&self, intent: &str, id: &str) -> Result<Option<About<StripeRefund>>, GatewayError> {
        Ok(self.all_of(intent).await?.into_iter().find_map(|refund| About::new(refund, id)))
    }

    /// The payment of a payment intent; `None` if this server did not make it.
    pub(super) async fn payment_of_intent(&self, intent: &str) -> Result<Option<PaymentId>, GatewayError> {
        let query = [("payment_intent", intent)];
        let Page { data, .. } = self.page::<Session>("list sessions", "checkout/sessions", &query, None).await?;
        let named = data.iter().filter(|session| session.payment_intent.as_deref() == Some(intent));
        Ok(named.filter_map(|session| session.client_reference_id.as_ref()?.parse().ok()).next())
    }

    /// The outcome of a refund, by its present state.
    pub(super) fn outcome(&self, refund: &About<StripeRefund>) -> Result<RefundOutcome, GatewayError> {
        match refund.read() {
            Some(GatewayRefund { state: GatewayRefundState::Failed { .. }, .. }) => {
                let what = format!("refund {} is {}; the money was not sent back", refund.id, refund.status());
                Ok(RefundOutcome::Rejected(refund.final_rejection(self.client.rejection("refund_failed", what))))
            }
            Some(made) => Ok(RefundOutcome::Made(made)),
            None => Err(self.client.unanswered(&format!("refund {} is {}", refund.id, refund.status()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refund(status: Option<&str>, other: &Value) -> StripeRefund {
        let mut refund = json!({"id": "re_1", "status": status, "amount": 250, "payment_intent": "pi_1"});
        refund.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        serde_json::from_value(refund).unwrap()
    }

    #[test]
    fn each_status_of_a_refund_is_pending_succeeded_failed_or_unknown() {
        let failed = |reason: &str| Some(GatewayRefundState::Failed { reason: Some(reason.to_owned()) });
        for (status, state) in [
            (Some("succeeded"), Some(GatewayRefundState::Succeeded)),
            (Some("pending"), Some(GatewayRefundState::Pending)),
            (Some("requires_action"), Some(GatewayRefundState::Pending)),
            (Some("failed"), failed("failed")),
            (Some("canceled"), failed("canceled")),
            (Some("Succeeded"), None),
            (Some("reversed"), None),
            (Some(""), None),
            (None, None),
        ] {
            assert_eq!(refund(status, &json!({})).read().map(|it| it.state), state, "{status:?}");
        }
        let lost = json!({"failure_reason": "lost_or_stolen_card"});
        assert_eq!(refund(Some("failed"), &lost).read().map(|it| it.state), failed("lost_or_stolen_card"));
        let long = json!({"failure_reason": "x".repeat(10_000)});
        assert_eq!(refund(Some("failed"), &long).read().map(|it| it.state), failed(&"x".repeat(200)));
    }

    #[test]
    fn a_refund_names_its_payment_by_itself_or_by_its_payment_intent() {
        for (other, payment, id) in [
            (json!({"metadata": {"payment_id": "pay_1", "refund_id": "ref_1"}}), Some("pay_1"), Some("ref_1")),
            (json!({"payment_intent": {"id": "pi_1", "metadata": {"payment_id": "pay_2"}}}), Some("pay_2"), None),
            (json!({"metadata": {}}), None, None),
        ] {
            let refund = refund(Some("succeeded"), &other);
            assert_eq!(refund.listed().as_ref().map(|(of, _)| of.as_str()), payment);
            assert_eq!(refund.read().unwrap().id.as_ref().map(payments_core::RefundId::as_str), id);
        }
    }
}
