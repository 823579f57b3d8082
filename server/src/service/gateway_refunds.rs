//! Follows the refunds that a gateway reports: those that it accepted and that succeed or fail later, and those that a person
//! made in its dashboard.
//!
//! An event is only a reason to ask. [A worker](super::gateway_lists) reads the gateway's list of refunds again and again, so a
//! lost event loses no refund.

use std::slice;

use payments_core::{Cause, NewRefund, PaymentId, RefundId, RefundSource, TimelineKind};

use super::{Result, Service, ServiceError, payments::EventData, refund::known_refunds, retry_on_conflict};
use crate::{
    domain::{GatewayRefund, GatewayRefundState, RefundChange, Session},
    store::{Change, Write},
};

impl Service {
    /// Asks the gateway about the refunds of a payment and records what it lacks. Returns [`ServiceError::RefundInProgress`]
    /// while this server asks for a refund of the payment: its outcome comes first.
    pub(super) async fn follow_refunds(&self, id: &PaymentId) -> Result<()> {
        retry_on_conflict(|| async {
            let Some(mut session) = self.store.session(id).await? else { return Ok(()) };
            if session.pending_refund.is_some() {
                return Err(ServiceError::RefundInProgress);
            }
            let Some(attempt) = session.attempt.as_ref().filter(|attempt| attempt.transaction.is_some()) else {
                return Ok(());
            };
            let reported = self.gateways.of_attempt(attempt)?.refunds(attempt, &known_refunds(&session)).await?;
            while let Some(change) = session.refund_change(&reported) {
                match self.follow(&session, change).await? {
                    Some(next) => session = next,
                    // A person decides.
                    None => return Ok(()),
                }
            }
            match session.unclear_refund(&reported) {
                Some(what) => self.review_once(&session, what).await,
                None => Ok(()),
            }
        })
        .await
    }

    /// Follows the refunds of a payment when a question is due, and plans the next one whatever the answer is. If that opens a
    /// review, the question stays due until a person resolves it, as it does if a gateway's list opened the review.
    pub(super) async fn check_refunds(&self, id: &PaymentId) -> Result<()> {
        let followed = self.follow_refunds(id).await;
        retry_on_conflict(|| async {
            let now = self.ambient.now();
            let session = self.store.session(id).await?;
            let is_due = |it: &Session| !it.needs_manual_review() && it.refund_check_at.is_some_and(|at| at <= now);
            let Some(session) = session.filter(is_due) else {
                return Ok(());
            };
            let mut next = Session { check_at: None, ..session.next() };
            next.plan_refund_check(followed.is_ok(), now);
            self.commit_without_event(next).await
        })
        .await?;
        followed
    }

    /// Commits a change that follows from the gateway's refunds. `None` if it contradicts the payment, which then needs a manual
    /// review.
    async fn follow(&self, session: &Session, change: RefundChange) -> Result<Option<Session>> {
        let now = self.ambient.now();
        let mut next = session.next();
        let reason_of = |id: &RefundId| {
            let refund = session.payment.refunds.iter().find(|refund| refund.id == *id);
            EventData::Refund { reason: refund.and_then(|refund| refund.reason.clone()) }
        };
        let (decision, data) = match change {
            RefundChange::Failed(id, reason) => {
                let data = reason_of(&id);
                (payments_core::decide(&session.payment, Cause::RefundFailed { id, reason }, now), data)
            }
            RefundChange::Settled(id) => (payments_core::settle_refund(&session.payment, &id, now), EventData::Payment),
            RefundChange::Found(found) => {
                let refund = self.new_refund(session, &found);
                next.refer(refund.id.clone(), found.reference.clone());
                let cause = refund.cause(&session.payment, Some(found.amount));
                let decided = cause.and_then(|cause| payments_core::decide(&session.payment, cause, now));
                if let Err(refusal) = &decided {
                    let GatewayRefund { reference, amount, .. } = &found;
                    let what = format!("a refund {reference} of {amount} {}", session.payment.currency);
                    return self.review_reported(session, &what, &refusal.to_string()).await.map(|()| None);
                }
                (decided, EventData::Refund { reason: None })
            }
        };
        // Both are planned anew by the refunds as they are then.
        (next.refund_check_at, next.check_at) = (None, None);
        let write = self.records().decided(decision?, next, session, data)?;
        let after = write.session.clone();
        self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
        let (payment, status) = (&after.payment.id, after.payment.raw_status.as_str());
        tracing::info!(%payment, status, "followed the gateway's refunds");
        Ok(Some(after))
    }

    /// A refund that the gateway has and the payment lacks. Its id is known if this server asked for it and has lost its record.
    fn new_refund(&self, session: &Session, found: &GatewayRefund) -> NewRefund {
        let slot = session.payment.developer_id.slot();
        let new = || RefundId::new(slot, self.ambient.now(), self.ambient.id_bytes());
        let source = found.id.is_none().then_some(RefundSource::Gateway);
        let id = found.id.clone().unwrap_or_else(new);
        let refund = match found.state {
            GatewayRefundState::Pending => NewRefund::accepted(id),
            _ => NewRefund::made(id),
        };
        NewRefund { source, ..refund }
    }

    /// Leaves something that the gateway has and the payment cannot have to a person, once.
    pub(super) async fn review_reported(&self, session: &Session, what: &str, why: &str) -> Result<()> {
        self.review_once(session, &format!("the gateway has {what}, which this payment cannot have: {why}")).await
    }

    async fn review_once(&self, session: &Session, what: &str) -> Result<()> {
        if session.review.as_ref().is_some_and(|review| review.what == what) {
            return Ok(());
        }
        if session.needs_manual_review() {
            // A person resolves another discrepancy first.
            return Err(ServiceError::RefundInProgress);
        }
        let mut next = session.next();
        next.record(self.ambient.now(), TimelineKind::GatewayError, what);
        self.request_review(session, next, what).await.map(drop)
    }

    /// Follows a refund of the gateway's list, if the payment lacks it.
    pub(super) async fn follow_if_unknown(&self, payment: &PaymentId, refund: &GatewayRefund) -> Result<()> {
        let Some(session) = self.store.session(payment).await? else { return Ok(()) };
        let is_under_way = session.pending_refund.is_some() || session.needs_manual_review();
        match session.refund_change(slice::from_ref(refund)) {
            Some(_) if !is_under_way => self.follow_refunds(payment).await,
            _ => Ok(()),
        }
    }
}
