//! Manual settlement of refunds, and manual review of discrepancies.

use payments_core::{Cause, Currency, NewRefund, PaymentId, RawStatus, RefundId, Refusal, TimelineKind, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Directory, Result, Retention, operator_text::invalid, payments::EventData, retry_on_conflict};
use crate::{
    domain::{ManualSettlement, Resolution, Session},
    gateway::{AttemptState, Gateways, Receipt},
    store::{Change, Write},
};

const CONFIRMED: Cause = Cause::GatewayConfirmed;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundRow {
    pub payment: PaymentId,
    pub refund: RefundId,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    /// The gateway's id of the payment's transaction.
    pub transaction: Option<String>,
    pub customer_phone: Option<String>,
    pub created_at: Timestamp,
    /// When the money should have been sent.
    pub due_at: Timestamp,
    pub is_overdue: bool,
}

const SECONDS_A_DAY: u32 = 24 * 60 * 60;

/// When a refund that was made at a time must have been sent by hand.
pub(super) fn due_at(created_at: Timestamp, days: u16) -> Timestamp {
    created_at.plus_seconds(u32::from(days) * SECONDS_A_DAY)
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRow {
    pub payment: PaymentId,
    pub raw_status: RawStatus,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    pub what: String,
    pub found_at: Timestamp,
}

/// The outcome of a payment, or of its pending refund, as a person decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManualOutcome {
    /// The money arrived.
    Paid,
    /// No money arrived.
    Failed,
    /// The gateway made the pending refund, or the one that the review is about.
    Refunded,
    /// The gateway did not make that refund and never will.
    NotRefunded,
}

impl Directory {
    /// Lists the refunds that need manual settlement, the oldest first.
    pub(super) async fn list_refunds(&self, due_days: Option<u16>) -> Result<Vec<RefundRow>> {
        let (sessions, now) = (self.store.manual_settlements().await?, self.ambient.now());
        let days = due_days.unwrap_or(Retention::default().manual_refund_days);
        let rows = sessions.iter().flat_map(|session| {
            let (payment, attempt) = (&session.payment, session.attempt.as_ref());
            session.unsettled_refunds().map(move |refund| RefundRow {
                refund: refund.id.clone(),
                payment: payment.id.clone(),
                amount: refund.amount.to_string(),
                currency: payment.currency,
                transaction: attempt.and_then(|attempt| attempt.transaction.clone()),
                customer_phone: payment.customer.phone.clone(),
                created_at: refund.created_at,
                due_at: due_at(refund.created_at, days),
                is_overdue: due_at(refund.created_at, days) <= now,
            })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|one, other| (one.created_at, &one.refund).cmp(&(other.created_at, &other.refund)));
        Ok(rows)
    }

    /// Records that a person sent a refund's money, with the reference of the transfer. `id` is the refund's id, or its
    /// payment's id if exactly one refund of it waits.
    pub(super) async fn settle_refund(&self, id: &str, reference: &str) -> Result<(PaymentId, ManualSettlement)> {
        retry_on_conflict(|| async {
            let session = match id.starts_with(RefundId::PREFIX) {
                true => self.session_of_refund(id).await?,
                false => self.records().session(id).await?,
            };
            let payment = session.payment.id.clone();
            let is_this = |refund: &RefundId| refund.as_str() == id || payment.as_str() == id;
            // First look for an earlier run of the same command: by now another refund may wait.
            let is_same = |known: &&ManualSettlement| known.reference == reference && is_this(&known.refund);
            if let Some(known) = session.settlements.iter().find(is_same) {
                return Ok((payment.clone(), known.clone()));
            }
            let mut waiting = session.unsettled_refunds().map(|refund| &refund.id).filter(|refund| is_this(refund));
            let refund = match (waiting.next(), waiting.next()) {
                (Some(refund), None) => refund.clone(),
                (Some(_), Some(_)) => {
                    let message =
                        "several refunds of this payment wait for manual settlement: settle each by its own id";
                    return Err(invalid(message));
                }
                (None, _) => return Err(Refusal::NothingToSettle.into()),
            };
            let now = self.ambient.now();
            let decision = payments_core::settle_refund(&session.payment, &refund, now)?;
            let settlement = ManualSettlement { refund, reference: reference.to_owned(), settled_at: now };
            let mut next = session.next();
            next.settlements.push(settlement.clone());
            self.records().commit_decision(&session, next, decision).await?;
            Ok((payment, settlement))
        })
        .await
    }

    /// The session of a refund that waits for manual settlement.
    async fn session_of_refund(&self, id: &str) -> Result<Session> {
        let waiting = self.store.manual_settlements().await?;
        let of_refund =
            waiting.into_iter().find(|session| session.unsettled_refunds().any(|refund| refund.id.as_str() == id));
        of_refund.ok_or_else(|| {
            invalid("no refund with this id waits for manual settlement; perhaps it is settled: see its payment")
        })
    }

    /// Lists the payments that need manual review.
    pub(super) async fn list_reviews(&self) -> Result<Vec<ReviewRow>> {
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
        gateways: &Gateways,
        id: &str,
        note: &str,
        outcome: Option<ManualOutcome>,
        transaction: Option<&str>,
    ) -> Result<RawStatus> {
        if transaction.is_some() && outcome != Some(ManualOutcome::Paid) {
            return Err(invalid("a transaction is what paid the payment: give it with --as paid"));
        }
        retry_on_conflict(|| async {
            let session = self.records().session(id).await?;
            let now = self.ambient.now();
            let mut next = session.next();
            let Some(review) = next.review.as_mut().filter(|review| review.resolved.is_none()) else {
                return Err(invalid("this payment does not need a manual review"));
            };
            review.resolved = Some(Resolution { note: note.to_owned(), resolved_at: now });
            let cause = match outcome {
                Some(made @ (ManualOutcome::Refunded | ManualOutcome::NotRefunded)) => {
                    return self.resolve_refund(&session, next, made == ManualOutcome::Refunded).await;
                }
                Some(ManualOutcome::Paid) => {
                    // Refuse before asking the gateway.
                    payments_core::transition(&session.payment.raw_status, session.payment.environment, &CONFIRMED)?;
                    let paid_by = transaction_of(gateways, &session, transaction).await?;
                    if let Some(attempt) = &mut next.attempt {
                        attempt.transaction = Some(paid_by);
                    }
                    CONFIRMED
                }
                Some(ManualOutcome::Failed) => Cause::GatewayFailed,
                None if session.refund_in_review().is_some() => {
                    let message = "a refund is pending: say how it ended with --as refunded or --as not-refunded";
                    return Err(invalid(message));
                }
                None if session.payment.raw_status.is_open() => {
                    let message = "this payment is still open: say how it ended with --as paid or --as failed";
                    return Err(invalid(message));
                }
                None => {
                    self.records().commit_without_event(next).await?;
                    return Ok(session.payment.raw_status);
                }
            };
            let decision = payments_core::decide(&session.payment, cause, now)?;
            Ok(self.records().commit_decision(&session, next, decision).await?.raw_status)
        })
        .await
    }

    /// Ends a pending refund, or one that the gateway accepted; `is_made` is what a person found there. `next` is the session
    /// afterwards, except for the refund.
    async fn resolve_refund(&self, session: &Session, mut next: Session, is_made: bool) -> Result<RawStatus> {
        next.check_at = None;
        let Some(pending) = next.pending_refund.take() else {
            let refund = session.refund_in_review().ok_or_else(|| invalid("this payment has no pending refund"))?;
            let (payment, id, now) = (&session.payment, refund.id.clone(), self.ambient.now());
            let reason = Some("the gateway did not send it".to_owned());
            let decision = match is_made {
                true => payments_core::settle_refund(payment, &id, now)?,
                false => payments_core::decide(payment, Cause::RefundFailed { id, reason }, now)?,
            };
            next.refund_check_at = None;
            let data = if is_made { EventData::Payment } else { EventData::Refund { reason: refund.reason.clone() } };
            let write = self.records().decided(decision, next, session, data)?;
            let status = write.session.payment.raw_status.clone();
            self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
            return Ok(status);
        };
        if is_made {
            let made = NewRefund::made(pending.id.clone());
            self.records().record_refund(session, next, &pending, made).await?;
            return Ok(self.records().session(session.payment.id.as_str()).await?.payment.raw_status);
        }
        let words = "The operator found that the gateway did not make the refund.";
        next.record(self.ambient.now(), TimelineKind::RefundRefused, words);
        self.records().commit_without_event(next).await?;
        Ok(session.payment.raw_status.clone())
    }
}

/// The gateway's transaction of a payment that a person found paid: the given one, or the one that the gateway names.
async fn transaction_of(gateways: &Gateways, session: &Session, given: Option<&str>) -> Result<String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let attempt = session.attempt.as_ref().ok_or_else(|| invalid("this payment has no attempt at a gateway"))?;
    let asked = async { gateways.of_attempt(attempt)?.query(&session.payment, attempt).await };
    let why = match asked.await {
        Ok(
            AttemptState::Paid(Receipt { transaction, .. })
            | AttemptState::Discrepancy { transaction: Some(transaction), .. },
        ) => {
            return Ok(transaction);
        }
        Ok(_) => "the gateway does not say that it has the money".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(invalid(format!("{why}; name the transaction that paid it with --transaction, so that it can be refunded")))
}
