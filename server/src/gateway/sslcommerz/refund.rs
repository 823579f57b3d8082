//! Refunds. They begin with a call and end later. SSLCommerz has no list of refunds, and no query by our id.
//!
//! | where | status | meaning |
//! |---|---|---|
//! | start | `success`, `processing` | accepted: the money goes back later |
//! | start | `failed` | no money goes back |
//! | query | `processing` | not yet |
//! | query | `refunded` | the money is back |
//! | query | `cancelled` | unclear, because SSLCommerz's documents contradict each other: a person checks |
//! | both | another | not decided |

use payments_core::Payment;
use serde_json::Value;

use super::{
    SslCommerz, TRANSACTION,
    row::{cut, text},
    session::one_line,
};
use crate::{
    domain::{GatewayAttempt, GatewayRefund, GatewayRefundState},
    gateway::{
        answer::{About, Names},
        contract::{Gateway, KnownRefund, RefundOutcome, RefundRequest},
        decimal::with_two_decimals,
        error::GatewayError,
    },
};

#[derive(Debug)]
struct Reply {
    bank_tran_id: String,
    refund_ref_id: String,
    status: String,
    error: String,
}

impl Names for Reply {
    fn names(&self, transaction: &str) -> bool {
        self.bank_tran_id == transaction
    }
}

impl SslCommerz {
    async fn about_refund(
        &self,
        what: &'static str,
        transaction: &str,
        fields: &[(&str, &str)],
    ) -> Result<About<Reply>, GatewayError> {
        let reply: Value = self.get(what, TRANSACTION, fields).await?;
        let text = |field| text(&reply, field);
        let reply = Reply {
            bank_tran_id: text("bank_tran_id"),
            refund_ref_id: text("refund_ref_id"),
            status: text("status"),
            error: text("errorReason"),
        };
        About::new(reply, transaction).ok_or_else(|| self.client.unanswered("the response is about something else"))
    }

    /// Sends a refund, at most once: after a lost answer nothing tells whether it was made.
    pub(super) async fn send_refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        let transaction = self.transaction_of(payment, attempt).await?;
        let (reference, amount) = (refund.reference, refund.amount.unwrap_or(payment.amount));
        if refund.is_repeated {
            let what = format!(
                "SSLCommerz may have made this refund of {amount} {}, and cannot tell: look in its panel for refund_trans_id \
                 {reference} of transaction {transaction}, and refund it there only if it is missing",
                payment.currency.code()
            );
            return Ok(RefundOutcome::ForAPerson { what });
        }
        let reason = one_line(refund.reason.unwrap_or_default());
        let fields = [
            ("bank_tran_id", &*transaction),
            ("refund_trans_id", reference),
            ("refund_amount", &with_two_decimals(amount)),
            ("refund_remarks", if reason.is_empty() { "Refund" } else { &cut(&reason, 255) }),
        ];
        let reply = self.about_refund("refund", &transaction, &fields).await?;
        match &*reply.status {
            "success" | "processing" if !reply.refund_ref_id.is_empty() => Ok(RefundOutcome::Made(GatewayRefund {
                reference: reply.refund_ref_id.clone(),
                id: Some(refund.id.clone()),
                amount,
                state: GatewayRefundState::Pending,
            })),
            "failed" => {
                let no = self.client.rejection("failed", one_line(&reply.error));
                Ok(RefundOutcome::Rejected(reply.final_rejection(no)))
            }
            _ => Err(self.client.unanswered("the refund has no known status or no refund_ref_id")),
        }
    }

    pub(super) async fn known_refund(
        &self,
        transaction: &str,
        known: &KnownRefund<'_>,
    ) -> Result<GatewayRefund, GatewayError> {
        let reference = known.reference;
        let reply = self.about_refund("query refund", transaction, &[("refund_ref_id", reference)]).await?;
        if reply.refund_ref_id != reference {
            return Err(self.client.unanswered("the response is about another refund"));
        }
        let state = match &*reply.status {
            "refunded" => GatewayRefundState::Succeeded,
            "cancelled" => GatewayRefundState::Unclear {
                what: format!(
                    "SSLCommerz calls refund {reference} of {} cancelled, which may mean that its money went back or that it \
                     did not: look in SSLCommerz's panel",
                    known.amount
                ),
            },
            _ => GatewayRefundState::Pending,
        };
        Ok(GatewayRefund { reference: reference.to_owned(), id: Some(known.id.clone()), amount: known.amount, state })
    }
}
