//! Refunds: by the gateway if it makes refunds, otherwise by manual settlement.
//!
//! The server commits a pending refund before it calls the gateway. The refund's id is the idempotency key there. So a
//! merchant's retry or the reconciler can repeat the call, and the gateway refunds once. A request with an idempotency
//! key [claims](super::claims) it first, so other requests with the key wait for its response.

use std::sync::Arc;

use payments_core::{Cause, CreateRefund, Decision, Payment, PaymentId, RawJson, RefundId};

use super::{
    Answer, Caller, IdempotentRequest, Refused, Service,
    payments::{EventData, NO_PAYMENT, Prepared},
    retry_on_conflict,
};
use crate::{
    domain::{ManualReview, PendingRefund, Session},
    gateway::{GatewayError, RefundFault, RefundOrder, RefundWay},
};

/// How long the reconciler leaves a refund to its request.
const REQUEST_HEAD_START_SECONDS: u32 = 45;
/// The first backoff interval. It doubles up to an hour.
const FIRST_BACKOFF_SECONDS: u32 = 5;
const LONGEST_BACKOFF_SECONDS: u32 = 3600;

impl Service {
    /// Refunds a paid payment and commits its `payment.refunded` event.
    pub(crate) async fn refund_payment(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        params: CreateRefund,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            if session.scope() != caller.scope {
                return Err(NO_PAYMENT);
            }
            params.check_against(session.payment.amount)?;
            // Refuse before claiming the key.
            let next = self.next_step(&session, params.reason.clone(), request)?;
            match next {
                Step::Manual(decision) => {
                    self.refund_manually(session, *decision, params.reason.clone(), request).await
                }
                Step::Begin(_) | Step::Finish => {
                    let (id, reason) = (id.to_owned(), params.reason.clone());
                    let refund = move |service: Arc<Self>, request: Option<IdempotentRequest>| {
                        let (id, reason) = (id.clone(), reason.clone());
                        async move { service.refund_at_gateway(&id, reason, request.as_ref()).await }
                    };
                    self.once(request, self.settings.gateway_timeout, refund).await
                }
            }
        })
        .await
    }

    /// Decides what a request for a refund does next.
    fn next_step(
        &self,
        session: &Session,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Step, Refused> {
        if let Some(pending) = &session.pending_refund {
            return match request.zip(pending.request.as_ref()) {
                Some((this, pending)) if this.matches(pending) => Ok(Step::Finish),
                Some((this, pending)) if *this.key() == pending.0 => Err(Refused::IdempotencyKeyReused),
                _ => Err(Refused::RefundUnderWay),
            };
        }
        let now = self.ambient.now();
        let refund = RefundId::new(now, self.ambient.id_bytes());
        let cause = Cause::Refunded { id: refund.clone(), reason: reason.clone() };
        let decision = payments_core::decide(&session.payment, cause, now)?;
        if self.refund_way(session) == RefundWay::ByHand {
            return Ok(Step::Manual(Box::new(decision)));
        }
        let mut next = session.next();
        let request = request.map(IdempotentRequest::to_parts);
        next.pending_refund = Some(PendingRefund { id: refund, reason, request, tries: 0 });
        next.check_at = Some(now.plus_seconds(REQUEST_HEAD_START_SECONDS));
        Ok(Step::Begin(Box::new(next)))
    }

    async fn refund_manually(
        &self,
        session: Session,
        decision: Decision,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        let data = EventData::Refund { reason };
        let next = session.next();
        let Prepared { change, body, .. } = self.prepare(decision, next, Some(&session), data, request)?;
        self.commit_once(change, body, request).await
    }

    /// Commits a pending refund, then finishes it at the gateway. The request holds the claim on its key.
    async fn refund_at_gateway(
        &self,
        id: &str,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            match self.next_step(&session, reason.clone(), request)? {
                Step::Manual(decision) => self.refund_manually(session, *decision, reason.clone(), request).await,
                Step::Finish => self.finish_refund(id, request).await,
                Step::Begin(next) => match self.commit_without_event(&session, *next).await {
                    Ok(()) => self.finish_refund(id, request).await,
                    Err(refused) => Err(refused),
                },
            }
        })
        .await
    }

    fn refund_way(&self, session: &Session) -> RefundWay {
        let gateway = session.attempt.as_ref().and_then(|attempt| self.gateways.named(attempt.gateway));
        gateway.map_or(RefundWay::ByHand, |gateway| gateway.refund_way())
    }

    /// Requests a pending refund from the gateway and commits the result. Returns [`Refused::Moved`] if another worker
    /// did so and the gateway refused.
    pub(super) async fn finish_refund(&self, id: &str, request: Option<&IdempotentRequest>) -> Result<Answer, Refused> {
        let outcome = retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let (Some(pending), Some(attempt)) = (&session.pending_refund, &session.attempt) else {
                // Another worker finished it and stored the response under the key.
                let stored = match request {
                    Some(request) => self.replay(request).await?,
                    None => None,
                };
                return match stored {
                    None if session.payment.refund.is_some() => answer_of(&session.payment).map(Some),
                    stored => Ok(stored),
                };
            };
            let gateway = self.gateways.named(attempt.gateway);
            let gateway = gateway.ok_or(Refused::NoGateway(session.payment.currency))?;
            let order = RefundOrder { id: pending.id.as_str(), reason: pending.reason.as_deref() };
            match gateway.refund(&session.payment, attempt, &order).await {
                Ok(()) => self.commit_refund(&session, pending).await.map(Some),
                Err(refused @ GatewayError::Refused { .. }) => {
                    let mut next = session.next();
                    (next.pending_refund, next.check_at) = (None, None);
                    self.commit_without_event(&session, next).await.and(Err(refused.into()))
                }
                Err(unanswered) => {
                    let mut next = session.next();
                    next.check_at = Some(self.ambient.now().plus_seconds(backoff_after(pending.tries)));
                    if let Some(pending) = &mut next.pending_refund {
                        pending.tries += 1;
                    }
                    self.commit_without_event(&session, next).await.and(Err(unanswered.into()))
                }
            }
        });
        outcome.await?.ok_or(Refused::Moved)
    }

    async fn commit_refund(&self, session: &Session, pending: &PendingRefund) -> Result<Answer, Refused> {
        let cause = Cause::Refunded { id: pending.id.clone(), reason: pending.reason.clone() };
        let decision = payments_core::decide(&session.payment, cause, self.ambient.now())?;
        let mut next = session.next();
        (next.pending_refund, next.check_at) = (None, None);
        let data = EventData::Refund { reason: pending.reason.clone() };
        let request = pending.request.clone().map(IdempotentRequest::of_parts);
        let Prepared { change, body, .. } = self.prepare(decision, next, Some(session), data, request.as_ref())?;
        self.commit_once(change, body, request.as_ref()).await
    }

    /// Requests a manual review of a refund that failed at the gateway after it had succeeded.
    pub(super) async fn refund_failed_later(&self, id: &PaymentId, fault: &RefundFault) -> Result<(), Refused> {
        let RefundFault { refund, what } = fault;
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            let is_this = |known: &RefundId| refund.as_deref().is_none_or(|refund| refund == known.as_str());
            if session.pending_refund.as_ref().is_some_and(|pending| is_this(&pending.id)) {
                // The refund's request has not committed its result yet. The gateway sends the event again.
                return Err(Refused::RefundUnderWay);
            }
            // If the refund never succeeded here, its request was refused.
            let succeeded = session.payment.refund.as_ref().is_some_and(|refund| is_this(&refund.id));
            if !succeeded || session.review.is_some() {
                return Ok(());
            }
            tracing::error!(payment = %id, what, "needs manual review: payments-server reconcile list");
            let mut next = session.next();
            next.review = Some(ManualReview { what: what.clone(), found_at: self.ambient.now(), resolved: None });
            self.commit_without_event(&session, next).await
        })
        .await
    }
}

/// The next step of a request for a refund.
enum Step {
    /// Commit this decision. The refund then needs manual settlement.
    Manual(Box<Decision>),
    /// Commit this session with its pending refund, then finish the refund.
    Begin(Box<Session>),
    /// Finish the pending refund at the gateway.
    Finish,
}

fn answer_of(payment: &Payment) -> Result<Answer, Refused> {
    Ok(Answer::fresh(RawJson::of(payment)?))
}

fn backoff_after(tries: u32) -> u32 {
    FIRST_BACKOFF_SECONDS.saturating_mul(1 << tries.min(16)).min(LONGEST_BACKOFF_SECONDS)
}
