//! Giving a payment back: by the gateway where it can, by a person where it cannot.
//!
//! A gateway is asked under the refund's id, which was committed before. So whatever is lost, the same refund is asked
//! for again, by the merchant's retry or by the reconciler, and it happens once. A request that carries an idempotency key
//! [claims](super::claims) it first, so that others with the key wait for its answer.

use std::sync::Arc;

use payments_core::{Cause, CreateRefund, Decision, Payment, PaymentId, RawJson, RefundId};

use super::{
    Answer, Caller, IdempotentRequest, Refused, Service,
    payments::{EventData, Moved, NO_PAYMENT},
    retry_on_conflict,
};
use crate::{
    domain::{RefundAsked, Review, Session},
    gateway::{GatewayError, RefundFault, RefundOrder, RefundWay},
};

/// How long the reconciler leaves a refund to the request that asked for it.
const LEFT_TO_ITS_REQUEST_SECONDS: u32 = 45;
/// The first pause before a refund is asked for again; it grows to an hour.
const FIRST_BACKOFF_SECONDS: u32 = 5;
const LONGEST_BACKOFF_SECONDS: u32 = 3600;

impl Service {
    /// Gives a paid payment back and owes the merchant's endpoints `payment.refunded`.
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
            // A key is claimed only for what can be done.
            let next = self.next_of_refund(&session, params.reason.clone(), request)?;
            match next {
                Next::ByHand(decision) => self.refund_by_hand(session, *decision, params.reason.clone(), request).await,
                Next::Ask(_) | Next::SeeThrough => {
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

    /// What a request for a refund does next with a payment as it stands.
    fn next_of_refund(
        &self,
        session: &Session,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Next, Refused> {
        if let Some(asked) = &session.refund_asked {
            return match request.zip(asked.request.as_ref()) {
                Some((this, asked)) if this.is_of(asked) => Ok(Next::SeeThrough),
                Some((this, asked)) if *this.key() == asked.0 => Err(Refused::IdempotencyKeyReused),
                _ => Err(Refused::RefundUnderWay),
            };
        }
        let now = self.ambient.now();
        let refund = RefundId::new(now, self.ambient.id_bytes());
        let cause = Cause::Refunded { id: refund.clone(), reason: reason.clone() };
        let decision = payments_core::decide(&session.payment, cause, now)?;
        if self.refund_way(session) == RefundWay::ByHand {
            return Ok(Next::ByHand(Box::new(decision)));
        }
        let mut next = session.next();
        let request = request.map(IdempotentRequest::to_parts);
        next.refund_asked = Some(RefundAsked { id: refund, reason, request, tries: 0 });
        next.check_at = Some(now.plus_seconds(LEFT_TO_ITS_REQUEST_SECONDS));
        Ok(Next::Ask(Box::new(next)))
    }

    async fn refund_by_hand(
        &self,
        session: Session,
        decision: Decision,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        let data = EventData::Refund { reason };
        let next = session.next();
        let Moved { change, body, .. } = self.change_for(decision, next, Some(&session), data, request).await?;
        self.commit_once(change, body, request).await
    }

    /// Writes a refund down, then sees it through. The request holds the claim on its key.
    async fn refund_at_gateway(
        &self,
        id: &str,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            match self.next_of_refund(&session, reason.clone(), request)? {
                Next::ByHand(decision) => self.refund_by_hand(session, *decision, reason.clone(), request).await,
                Next::SeeThrough => self.see_refund_through(id, request).await,
                Next::Ask(next) => match self.commit_beside(&session, *next).await {
                    Ok(()) => self.see_refund_through(id, request).await,
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

    /// Asks the gateway for a refund that was written down, and writes down what it says. [`Refused::Moved`] if somebody
    /// else did, and it was refused.
    pub(super) async fn see_refund_through(
        &self,
        id: &str,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        let outcome = retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let (Some(asked), Some(attempt)) = (&session.refund_asked, &session.attempt) else {
                // Somebody else saw it through, and kept the answer under the key.
                let kept = match request {
                    Some(request) => self.replay(request).await?,
                    None => None,
                };
                return match kept {
                    None if session.payment.refund.is_some() => answer_of(&session.payment).map(Some),
                    kept => Ok(kept),
                };
            };
            let gateway = self.gateways.named(attempt.gateway);
            let gateway = gateway.ok_or(Refused::NoGateway(session.payment.currency))?;
            let order = RefundOrder { id: asked.id.as_str(), reason: asked.reason.as_deref() };
            match gateway.refund(&session.payment, attempt, &order).await {
                Ok(()) => self.refund_made(&session, asked).await.map(Some),
                Err(refused @ GatewayError::Refused { .. }) => {
                    let mut next = session.next();
                    (next.refund_asked, next.check_at) = (None, None);
                    self.commit_beside(&session, next).await.and(Err(refused.into()))
                }
                Err(unanswered) => {
                    let mut next = session.next();
                    next.check_at = Some(self.ambient.now().plus_seconds(backoff_after(asked.tries)));
                    if let Some(asked) = &mut next.refund_asked {
                        asked.tries += 1;
                    }
                    self.commit_beside(&session, next).await.and(Err(unanswered.into()))
                }
            }
        });
        outcome.await?.ok_or(Refused::Moved)
    }

    async fn refund_made(&self, session: &Session, asked: &RefundAsked) -> Result<Answer, Refused> {
        let cause = Cause::Refunded { id: asked.id.clone(), reason: asked.reason.clone() };
        let decision = payments_core::decide(&session.payment, cause, self.ambient.now())?;
        let mut next = session.next();
        (next.refund_asked, next.check_at) = (None, None);
        let data = EventData::Refund { reason: asked.reason.clone() };
        let request = asked.request.clone().map(IdempotentRequest::of_parts);
        let Moved { change, body, .. } = self.change_for(decision, next, Some(session), data, request.as_ref()).await?;
        self.commit_once(change, body, request.as_ref()).await
    }

    /// The gateway took a refund back after it had been made. The merchant's books say it was made, so a person decides.
    pub(super) async fn refund_failed_later(&self, id: &PaymentId, fault: &RefundFault) -> Result<(), Refused> {
        let RefundFault { refund, what } = fault;
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            let is_it = |known: &RefundId| refund.as_deref().is_none_or(|refund| refund == known.as_str());
            if session.refund_asked.as_ref().is_some_and(|asked| is_it(&asked.id)) {
                // Its request has yet to write down what became of it. The gateway tells again.
                return Err(Refused::RefundUnderWay);
            }
            // One that never counted as made was refused to whoever asked for it.
            let counts = session.payment.refund.as_ref().is_some_and(|refund| is_it(&refund.id));
            if !counts || session.review.is_some() {
                return Ok(());
            }
            tracing::error!(payment = %id, what, "a person must look: payments-server reconcile list");
            let mut next = session.next();
            next.review = Some(Review { what: what.clone(), found_at: self.ambient.now(), resolved: None });
            self.commit_beside(&session, next).await
        })
        .await
    }
}

/// What a request for a refund does next.
enum Next {
    /// Commit this decision: a person sends the money.
    ByHand(Box<Decision>),
    /// Write this session down, then ask the gateway.
    Ask(Box<Session>),
    /// It is written down: ask the gateway.
    SeeThrough,
}

fn answer_of(payment: &Payment) -> Result<Answer, Refused> {
    Ok(Answer::fresh(RawJson::of(payment)?))
}

fn backoff_after(tries: u32) -> u32 {
    FIRST_BACKOFF_SECONDS.saturating_mul(1 << tries.min(16)).min(LONGEST_BACKOFF_SECONDS)
}
