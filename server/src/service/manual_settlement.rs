//! Manual settlement of refunds, and manual review of discrepancies.

use payments_core::{Cause, Currency, Invalid, PaymentId, RawStatus, RefundId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Refused, Service, retry_on_conflict};
use crate::domain::{ManualSettlement, Resolution, Session};

/// A refund that needs manual settlement.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RefundRow {
    pub(crate) payment: PaymentId,
    pub(crate) refund: RefundId,
    /// In major units, exact.
    pub(crate) amount: String,
    pub(crate) currency: Currency,
    /// The gateway's id of the payment's transaction.
    pub(crate) transaction: Option<String>,
    pub(crate) customer_phone: Option<String>,
    pub(crate) created_at: Timestamp,
}

/// A payment that needs manual review.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewRow {
    pub(crate) payment: PaymentId,
    pub(crate) raw_status: RawStatus,
    /// In major units, exact.
    pub(crate) amount: String,
    pub(crate) currency: Currency,
    pub(crate) what: String,
    pub(crate) found_at: Timestamp,
}

/// A payment's outcome as a person decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ManualOutcome {
    /// The money arrived.
    Paid,
    /// No money arrived.
    Failed,
}

impl Service {
    /// Lists the refunds that need manual settlement.
    pub(super) async fn list_refunds(&self) -> Result<Vec<RefundRow>, Refused> {
        let sessions = self.store.manual_settlements().await?;
        let rows = sessions.into_iter().filter_map(|session| {
            let payment = session.payment;
            Some(RefundRow {
                refund: payment.refund?.id,
                payment: payment.id,
                amount: payment.amount.to_string(),
                currency: payment.currency,
                transaction: session.attempt.and_then(|attempt| attempt.transaction),
                customer_phone: payment.customer.phone,
                created_at: payment.updated_at,
            })
        });
        Ok(rows.collect())
    }

    /// Records that a person sent a refund's money, with the reference of the transfer.
    pub(super) async fn settle_refund(&self, id: &str, reference: &str) -> Result<ManualSettlement, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            if let Some(settlement) = session.settlement.as_ref().filter(|known| known.reference == reference) {
                // The same command again.
                return Ok(settlement.clone());
            }
            let now = self.ambient.now();
            let payment = payments_core::settle_refund(&session.payment, now)?;
            let settlement = ManualSettlement { reference: reference.to_owned(), settled_at: now };
            let next = Session { payment, settlement: Some(settlement.clone()), ..session.next() };
            self.commit_without_event(&session, next).await?;
            Ok(settlement)
        })
        .await
    }

    /// Lists the payments that need manual review.
    pub(super) async fn list_reviews(&self) -> Result<Vec<ReviewRow>, Refused> {
        let sessions = self.store.manual_reviews().await?;
        let rows = sessions.into_iter().filter_map(|Session { payment, review, .. }| {
            let review = review?;
            Some(ReviewRow {
                payment: payment.id,
                raw_status: payment.raw_status,
                amount: payment.amount.to_string(),
                currency: payment.currency,
                what: review.what,
                found_at: review.found_at,
            })
        });
        Ok(rows.collect())
    }

    /// Records how a person resolved a discrepancy. Returns the payment's status afterwards.
    pub(super) async fn resolve_review(
        &self,
        id: &str,
        note: &str,
        outcome: Option<ManualOutcome>,
    ) -> Result<RawStatus, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let now = self.ambient.now();
            let mut next = session.next();
            let Some(review) = next.review.as_mut().filter(|review| review.resolved.is_none()) else {
                return Err(Invalid::new("this payment does not need a manual review").into());
            };
            review.resolved = Some(Resolution { note: note.to_owned(), resolved_at: now });
            let cause = match outcome {
                Some(ManualOutcome::Paid) => Cause::GatewayConfirmed,
                Some(ManualOutcome::Failed) => Cause::GatewayFailed,
                None if session.payment.raw_status.is_open() => {
                    let message = "this payment is still open: say how it ended with --as paid or --as failed";
                    return Err(Invalid::new(message).into());
                }
                None => {
                    self.commit_without_event(&session, next).await?;
                    return Ok(session.payment.raw_status);
                }
            };
            let decision = payments_core::decide(&session.payment, cause, now)?;
            Ok(self.commit_decision(&session, next, decision).await?.raw_status)
        })
        .await
    }
}
