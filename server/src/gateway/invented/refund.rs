//! Refunds: Coinpost makes one for each reference of ours, however often it is asked.
//!
//! | state | meaning |
//! |---|---|
//! | `accepted` | the money goes back later |
//! | `sent` | the money is back |
//! | `lost` | the money was not sent back |
//! | `refused` | no money goes back |

use payments_core::{Amount, Payment};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Invented;
use crate::{
    domain::{GatewayAttempt, GatewayRefund, GatewayRefundState},
    gateway::{
        answer::Names,
        contract::{KnownRefund, RefundOutcome, RefundRequest},
        error::GatewayError,
    },
};

#[derive(Debug, Deserialize)]
struct Refund {
    id: String,
    reference: String,
    minor: u64,
    state: String,
    why: Option<String>,
}

impl Names for Refund {
    fn names(&self, reference: &str) -> bool {
        self.reference == reference
    }
}

impl Refund {
    /// `None` if no money goes back, or its state is unknown.
    fn state(&self) -> Option<GatewayRefundState> {
        match &*self.state {
            "accepted" => Some(GatewayRefundState::Pending),
            "sent" => Some(GatewayRefundState::Succeeded),
            "lost" => Some(GatewayRefundState::Failed { reason: self.why.clone() }),
            _ => None,
        }
    }
}

impl Invented {
    pub(super) async fn send_refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        let amount = refund.amount.unwrap_or(payment.amount);
        let body = json!({"reference": refund.reference, "order": attempt.invoice, "minor": amount.as_minor()});
        let made: Refund = self.call("refund", Method::POST, "/refunds", &body).await?;
        let made = self.about(made, refund.reference)?;
        match made.state() {
            None if made.state == "refused" => {
                let no = self.client.rejection("refused", made.why.as_deref().unwrap_or_default());
                Ok(RefundOutcome::Rejected(made.final_rejection(no)))
            }
            None | Some(GatewayRefundState::Failed { .. }) => {
                Err(self.client.unanswered("the refund has no known state"))
            }
            Some(state) => Ok(RefundOutcome::Made(GatewayRefund {
                reference: made.id.clone(),
                id: Some(refund.id.clone()),
                amount: Amount::from_minor(made.minor),
                state,
            })),
        }
    }

    pub(super) async fn all_refunds(
        &self,
        attempt: &GatewayAttempt,
        known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        let path = format!("/orders/{}/refunds", attempt.invoice);
        let all: Vec<Refund> = self.call("list refunds", Method::GET, &path, &Value::Null).await?;
        let read = |it: &Refund| {
            let id = known.iter().find(|known| known.reference == it.id).map(|known| known.id.clone());
            let (reference, amount) = (it.id.clone(), Amount::from_minor(it.minor));
            Some(GatewayRefund { reference, id, amount, state: it.state()? })
        };
        Ok(all.iter().filter_map(read).collect())
    }
}
