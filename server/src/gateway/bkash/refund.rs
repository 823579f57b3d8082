//! Refunds by bKash's API.
//!
//! bKash takes no id of ours for a refund. So after a lost reply the server lists the payment's refunds. If one of them
//! has the amount and the server does not know it yet, that is this refund. Otherwise the server sends the refund
//! again. A payment has one pending refund at a time, and only one worker sends it.

use payments_core::{Amount, Payment};

use super::Bkash;
use crate::{
    domain::{GatewayAttempt, GatewayRefund},
    gateway::{
        answer::{About, Names, Rejection},
        contract::{Gateway, RefundOutcome, RefundRequest},
        decimal::with_two_decimals,
        error::GatewayError,
    },
};

/// How long `sku` and `reason` may be, in bytes.
const MAX_BYTES: usize = 255;
/// The balance of the merchant, or of the customer, is too small.
const INSUFFICIENT_BALANCE: &str = "2023";
const UNKNOWN_TRANSACTION: &str = "2033";

/// bKash's refusal of a refund. It names nothing, so its code tells whether it is about the refund.
struct Refused(Rejection);

impl Names for Refused {
    fn names(&self, _transaction: &str) -> bool {
        is_about_the_refund(&self.0.code)
    }
}

/// Whether bKash refuses a refund for good with this code: its time, its amount, its fields, its transaction, or the merchant's
/// permission. After any other code the outcome is unknown.
pub(super) fn is_about_the_refund(code: &str) -> bool {
    matches!(code.parse::<u16>(), Ok(2071..=2078 | 2080..=2082))
}

/// As much of a text as bKash takes.
fn cut(text: &str) -> String {
    let ends = text.char_indices().map(|(at, char)| (at + char.len_utf8(), char));
    ends.take_while(|(end, _)| *end <= MAX_BYTES).map(|(_, char)| char).collect()
}

/// A refund to make.
struct Asked<'a> {
    payment: &'a Payment,
    attempt: &'a GatewayAttempt,
    transaction: &'a str,
    amount: Amount,
    refund: &'a RefundRequest<'a>,
}

impl Bkash {
    pub(super) async fn send_back(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        let transaction = self.transaction_of(payment, attempt).await?;
        let amount = refund.amount.unwrap_or(payment.amount);
        let asked = Asked { payment, attempt, transaction: &transaction, amount, refund };
        if refund.is_repeated
            && let Some(outcome) = self.found(&asked).await?
        {
            return Ok(outcome);
        }
        let reason = refund.reason.filter(|reason| !reason.trim().is_empty()).unwrap_or("Refund");
        let mut body = self.dialect.about_transaction(&attempt.external_id, &transaction);
        body[self.dialect.refund_amount] = with_two_decimals(amount).into();
        body["sku"] = payment.id.as_str().into();
        body["reason"] = cut(reason).into();
        let rejection = match self.call("refund", self.dialect.refund, &body).await? {
            Ok(reply) => {
                let made = About::new(reply, &transaction).and_then(|reply| reply.refund());
                let made = made.ok_or_else(|| self.client.unanswered("the response is not about this refund"))?;
                return Ok(asked.made(made));
            }
            Err(rejection) => rejection,
        };
        let error = match rejection.code.as_str() {
            INSUFFICIENT_BALANCE => format!("{rejection}: top up the merchant account at bKash"),
            _ => rejection.to_string(),
        };
        let no = About::new(Refused(rejection), &transaction).ok_or_else(|| self.client.unanswered(&error))?;
        // An earlier request may have been slow.
        if refund.is_repeated
            && let Some(outcome) = self.found(&asked).await?
        {
            return Ok(outcome);
        }
        Ok(RefundOutcome::Rejected(no.final_rejection(no.0.clone())))
    }

    /// What became of an earlier request for a refund; `None` if bKash has not made it.
    async fn found(&self, asked: &Asked<'_>) -> Result<Option<RefundOutcome>, GatewayError> {
        let listed = || self.listed(asked.attempt, asked.transaction);
        let listed = match listed().await {
            Err(GatewayError::Unanswered { .. }) => listed().await?,
            listed => listed?,
        };
        let is_complete = self.dialect.lists_refunds;
        let known = asked.refund.known;
        let lacks = |reference| !listed.iter().any(|it| it.reference == reference);
        if known.iter().any(|it| lacks(it.reference)) && (is_complete || listed.is_empty()) {
            return Err(self.client.unanswered("its refunds lack one that it had made"));
        }
        let is_new = |it: &&GatewayRefund| !known.iter().any(|known| known.reference == it.reference);
        let new: Vec<_> = listed.iter().filter(is_new).collect();
        let equal = new.iter().find(|it| it.amount == asked.amount);
        // A person who sends a refund there leaves no reference.
        let is_by_hand = |it: &payments_core::Refund| !it.is_by_gateway() && it.amount == asked.amount;
        let may_be_by_hand = asked.payment.refunds.iter().any(is_by_hand);
        Ok(match equal {
            Some(found) if !may_be_by_hand => Some(asked.made(GatewayRefund::clone(found))),
            None if is_complete || new.is_empty() => None,
            _ => Some(RefundOutcome::ForAPerson {
                what: format!(
                    "bKash has refunds of transaction {} that this server did not make: look there whether {} {} went back for \
                     refund {}, and send it by hand if not",
                    asked.transaction,
                    asked.amount,
                    asked.payment.currency.code(),
                    asked.refund.id,
                ),
            }),
        })
    }

    /// The refunds of a transaction: all of them, or the last one.
    pub(super) async fn listed(
        &self,
        attempt: &GatewayAttempt,
        transaction: &str,
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        let body = self.dialect.about_transaction(&attempt.external_id, transaction);
        let reply = match self.call("refund status", self.dialect.refund_status, &body).await? {
            Ok(reply) => reply,
            Err(rejection) if rejection.code == UNKNOWN_TRANSACTION && !self.dialect.lists_refunds => {
                return Ok(Vec::new());
            }
            Err(rejection) => return Err(self.client.unanswered(&rejection.to_string())),
        };
        let refunds = About::new(reply, transaction).and_then(|reply| reply.refunds());
        refunds.ok_or_else(|| self.client.unanswered("the response does not tell the transaction's refunds"))
    }
}

impl Asked<'_> {
    fn made(&self, made: GatewayRefund) -> RefundOutcome {
        RefundOutcome::Made(GatewayRefund { id: Some(self.refund.id.clone()), ..made })
    }
}
