//! The steps of payouts.

use payments_core::{
    Environment, EventId, Payout, PayoutDecision, PayoutDestination, PayoutId, PayoutStatus, PayoutStep, RawJson,
    Timestamp, TransactionId, decide_payout,
};

use super::{Answer, IdempotentRequest, Record, Result, ServiceError, records::Records, retry_on_conflict};
use crate::{
    domain::{Actor, PayoutCondition, PayoutRecord, may_approve, owner_of},
    store::{BookingWrite, EventWrite, PayoutWrite, Write},
};

/// How old a destination must be before money goes there: whoever stole a key cannot empty the balance at once.
const DESTINATION_AGE_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl Records<'_> {
    /// Commits a decision, once for each request.
    pub(super) async fn commit_payout(
        self,
        record: PayoutRecord,
        decision: PayoutDecision,
        condition: PayoutCondition,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        let (write, json) = self.payout_write(record, decision, condition)?;
        self.commit_once(vec![write], json, request).await
    }

    /// The write of a decision, and the payout after it as JSON.
    pub(super) fn payout_write(
        self,
        record: PayoutRecord,
        decision: PayoutDecision,
        condition: PayoutCondition,
    ) -> Result<(Write, RawJson)> {
        let PayoutDecision { payout, booking, event } = decision;
        let (slot, created_at, json) = (record.scope.developer_id.slot(), payout.updated_at, RawJson::of(&payout)?);
        let event = event.map(|kind| {
            let id = EventId::new(slot, created_at, self.ambient.id_bytes());
            EventWrite { id, kind, created_at, data: json.clone() }
        });
        let booking = booking.map(|booking| {
            let id = TransactionId::new(slot, created_at, self.ambient.id_bytes());
            BookingWrite { id, created_at, booking }
        });
        let write = PayoutWrite { record: PayoutRecord { payout, ..record }, event, booking, condition };
        Ok((Write::Payout(Box::new(write)), json))
    }

    /// Applies a step to a payout. A step that was made before changes nothing.
    pub(super) async fn step_payout(
        self,
        id: &PayoutId,
        step: &PayoutStep,
        by: &Actor,
        batch: Option<&str>,
    ) -> Result<PayoutRecord> {
        retry_on_conflict(|| async {
            let none = || ServiceError::NotFound { what: Record::Payout };
            let before = self.store.payout(id).await?.ok_or_else(none)?;
            if was_made(&before.payout, step) {
                return Ok(before);
            }
            let now = self.ambient.now();
            let decision = decide_payout(&before.payout, step.clone(), now)?;
            let mut next = before.next();
            let condition = match step {
                PayoutStep::Approved if !may_approve(&before, by) => return Err(ServiceError::MayNotApprove),
                PayoutStep::Approved => {
                    next.approved_by = Some(by.clone());
                    PayoutCondition::None
                }
                PayoutStep::Sent => {
                    let is_test = before.payout.environment == Environment::Test;
                    if is_too_new(&before.payout.destination, now) && !is_test {
                        return Err(ServiceError::DestinationTooNew);
                    }
                    let workspace = self.store.workspace_of(&owner_of(&before.scope.developer_id)).await?;
                    if workspace.is_some_and(|workspace| workspace.status != "active") {
                        return Err(ServiceError::NotActive);
                    }
                    next.batch = batch.map(str::to_owned);
                    PayoutCondition::NotOverdrawn
                }
                PayoutStep::Paid { .. } => {
                    next.ends_statement = before.payout.status != PayoutStatus::Failed;
                    PayoutCondition::None
                }
                _ => PayoutCondition::None,
            };
            let payout = decision.payout.clone();
            self.commit_payout(next.clone(), decision, condition, None).await?;
            Ok(PayoutRecord { payout, ..next })
        })
        .await
    }
}

/// Whether a destination is too new for money to go there.
pub(super) fn is_too_new(destination: &PayoutDestination, now: Timestamp) -> bool {
    now.as_millis() - destination.created_at.as_millis() < DESTINATION_AGE_MILLIS
}

/// Whether a payout has made this step.
pub(super) fn was_made(payout: &Payout, step: &PayoutStep) -> bool {
    match (&payout.status, step) {
        (PayoutStatus::Approved, PayoutStep::Approved) | (PayoutStatus::Cancelled, PayoutStep::Cancelled { .. }) => {
            true
        }
        (PayoutStatus::Paid | PayoutStatus::Returned, PayoutStep::Paid { reference }) => {
            payout.reference.as_ref() == Some(reference)
        }
        (PayoutStatus::Failed, PayoutStep::Failed { reason })
        | (PayoutStatus::Unknown, PayoutStep::Unknown { reason })
        | (PayoutStatus::Returned, PayoutStep::Returned { reason }) => payout.reason.as_ref() == Some(reason),
        // A payout is sent once.
        _ => false,
    }
}
