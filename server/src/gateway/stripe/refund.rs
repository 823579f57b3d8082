//! The meaning of a Stripe refund's status.
//!
//! | status | meaning | consequence |
//! |---|---|---|
//! | `succeeded` | the money is on its way back | the refund is booked and settled |
//! | `pending` | Stripe waits for its own processing, for funds in the account, or for the charge to settle | the refund is booked |
//! | `requires_action` | Stripe waits for the customer to say where the money goes; not for cards | the refund is booked |
//! | `failed`, `canceled` | the money was not sent back | a booked refund is reversed |
//! | none, or another | unknown | the server asks again |

use payments_core::{Amount, PaymentId, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Session, Stripe};
use crate::{
    domain::{GatewayRefund, GatewayRefundState},
    gateway::{
        answer::{About, Names},
        contract::{ListPart, RefundOutcome},
        error::GatewayError,
    },
};

/// How many pages of a payment's refunds are read.
const PAGES: usize = 10;

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

/// A page of one of Stripe's lists.
#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
}

impl StripeRefund {
    /// `None` if this server does not know its status.
    pub(super) fn read(&self) -> Option<GatewayRefund> {
        let state = match self.status.as_deref()? {
            "succeeded" => GatewayRefundState::Succeeded,
            "pending" | "requires_action" => GatewayRefundState::Pending,
            status @ ("failed" | "canceled") => {
                let reason = self.failure_reason.clone().unwrap_or_else(|| status.to_owned());
                GatewayRefundState::Failed { reason: Some(reason) }
            }
            _ => return None,
        };
        let id = self.metadata["refund_id"].as_str().and_then(|id| id.parse().ok());
        Some(GatewayRefund { reference: self.id.clone(), id, amount: Amount::from_minor(self.amount), state })
    }

    /// The payment that the refund or its payment intent names.
    pub(super) fn payment(&self) -> Option<PaymentId> {
        payment_named(&self.metadata, &self.payment_intent)
    }

    pub(super) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or("without a status")
    }
}

/// The payment that an object's metadata or its payment intent names.
pub(super) fn payment_named(metadata: &Value, payment_intent: &Value) -> Option<PaymentId> {
    let named = |metadata: &Value| metadata["payment_id"].as_str().and_then(|id| id.parse().ok());
    named(metadata).or_else(|| named(&payment_intent["metadata"]))
}

impl Names for StripeRefund {
    /// Whether `id` is Stripe's id of the refund, or this server's.
    fn names(&self, id: &str) -> bool {
        self.id == id || self.metadata["refund_id"].as_str() == Some(id)
    }
}

impl Stripe {
    /// All refunds of a payment intent, newest first.
    pub(super) async fn refunds_of(&self, intent: &str) -> Result<Vec<StripeRefund>, GatewayError> {
        let mut found = Vec::new();
        for _ in 0..PAGES {
            let after = found.last().map(|refund: &StripeRefund| refund.id.clone());
            let List { data, has_more } = self.refund_list(&[("payment_intent", intent)], after.as_deref()).await?;
            found.extend(data);
            if !has_more {
                return Ok(found);
            }
        }
        Err(self.client.unanswered("the payment has more refunds than this server reads"))
    }

    /// Finds a refund of a payment intent by this server's id of the refund.
    pub(super) async fn refund_of(&self, intent: &str, id: &str) -> Result<Option<About<StripeRefund>>, GatewayError> {
        Ok(self.refunds_of(intent).await?.into_iter().find_map(|refund| About::new(refund, id)))
    }

    async fn refund_list(
        &self,
        query: &[(&str, &str)],
        after: Option<&str>,
    ) -> Result<List<StripeRefund>, GatewayError> {
        self.list("list refunds", "refunds", query, after).await
    }

    pub(super) async fn refund_part(
        &self,
        since: Timestamp,
        after: Option<&str>,
    ) -> Result<ListPart<GatewayRefund>, GatewayError> {
        let since = since.as_unix_seconds().to_string();
        let query = [("created[gte]", since.as_str()), ("expand[]", "data.payment_intent")];
        let List { data, has_more } = self.refund_list(&query, after).await?;
        let next = data.last().filter(|_| has_more).map(|refund| refund.id.clone());
        let items = data.iter().filter_map(|refund| Some((refund.payment(), refund.read()?)));
        Ok(ListPart { items: items.collect(), next })
    }

    /// A page of one of Stripe's lists, after an object.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        what: &'static str,
        kind: &str,
        query: &[(&str, &str)],
        after: Option<&str>,
    ) -> Result<List<T>, GatewayError> {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .append_pair("limit", "100")
            .extend_pairs(after.map(|after| ("starting_after", after)))
            .finish();
        let listed = self.call(what, self.client.http.get(self.url(&format!("{kind}?{query}")))).await?;
        listed.map_err(|error| self.client.unanswered(&error.to_string()))
    }

    /// The payment of a payment intent; `None` if this server did not make it.
    pub async fn payment_of(&self, intent: &str) -> Result<Option<PaymentId>, GatewayError> {
        let query = [("payment_intent", intent)];
        let List { data, .. } = self.list::<Session>("list sessions", "checkout/sessions", &query, None).await?;
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
    }

    #[test]
    fn a_refund_names_its_payment_by_itself_or_by_its_payment_intent() {
        for (other, payment, id) in [
            (json!({"metadata": {"payment_id": "pay_1", "refund_id": "ref_1"}}), Some("pay_1"), Some("ref_1")),
            (json!({"payment_intent": {"id": "pi_1", "metadata": {"payment_id": "pay_2"}}}), Some("pay_2"), None),
            (json!({"metadata": {}}), None, None),
        ] {
            let refund = refund(Some("succeeded"), &other);
            assert_eq!(refund.payment().as_ref().map(PaymentId::as_str), payment);
            assert_eq!(refund.read().unwrap().id.as_ref().map(payments_core::RefundId::as_str), id);
        }
    }
}
