//! Giving a payment back: by the gateway where it can, by a person where it cannot.
//!
//! A gateway is asked under the refund's id, which was committed before. So whatever is lost, the same refund is asked
//! for again, by the merchant's retry or by the reconciler, and it happens once.

use payments_core::{Cause, CreateRefund, Payment, PaymentId, RawJson, RefundId};

use super::{
    Answer, Caller, IdempotentRequest, Refused, Service,
    payments::{EventData, Moved, NO_PAYMENT},
};
use crate::{
    gateway::{GatewayError, RefundOrder, RefundWay},
    store::{RefundAsked, Review, Session, StoreError},
};

/// How long the reconciler leaves a refund to the request that asked for it.
const LEFT_TO_ITS_REQUEST_SECONDS: u32 = 45;
/// The first pause before a refund is asked for again; it grows to an hour.
const FIRST_PAUSE_SECONDS: u32 = 5;
const LONGEST_PAUSE_SECONDS: u32 = 3600;

impl Service {
    /// Gives a paid payment back and owes the merchant's endpoints `payment.refunded`.
    pub(crate) async fn refund_payment(
        &self,
        caller: &Caller,
        id: &str,
        params: CreateRefund,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        loop {
            let session = self.session(id).await?;
            if session.scope() != caller.scope {
                return Err(NO_PAYMENT);
            }
            params.check_against(session.payment.amount)?;
            if let Some(asked) = &session.refund_asked {
                let is_this = request.zip(asked.request.as_ref()).is_some_and(|(this, asked)| this.is_of(asked));
                return if is_this { self.see_refund_through(id).await } else { Err(Refused::RefundUnderWay) };
            }
            let now = self.ambient.now();
            let refund = RefundId::new(now, self.ambient.id_bytes());
            let cause = Cause::Refunded { id: refund.clone(), reason: params.reason.clone() };
            let decision = payments_core::decide(&session.payment, cause, now)?;
            let outcome = if self.refund_way(&session) == RefundWay::ByHand {
                let was = Some(session.payment.status.clone());
                let data = EventData::Refund { reason: params.reason.clone() };
                let Moved { change, body, .. } = self.change_for(decision, session.next(), was, data, request).await?;
                self.commit_once(change, body, request).await
            } else {
                let mut next = session.next();
                let request = request.map(IdempotentRequest::to_parts);
                next.refund_asked = Some(RefundAsked { id: refund, reason: params.reason.clone(), request, tries: 0 });
                next.check_at = Some(now.plus_seconds(LEFT_TO_ITS_REQUEST_SECONDS));
                match self.commit_beside(next).await {
                    Ok(()) => self.see_refund_through(id).await,
                    Err(refused) => Err(refused),
                }
            };
            match outcome {
                Err(Refused::Moved) => {}
                outcome => return outcome,
            }
        }
    }

    fn refund_way(&self, session: &Session) -> RefundWay {
        let gateway = session.attempt.as_ref().and_then(|attempt| self.gateways.named(attempt.gateway));
        gateway.map_or(RefundWay::ByHand, |gateway| gateway.refund_way())
    }

    /// Asks the gateway for a refund that was written down, and writes down what it says.
    pub(super) async fn see_refund_through(&self, id: &str) -> Result<Answer, Refused> {
        loop {
            let session = self.session(id).await?;
            let (Some(asked), Some(attempt)) = (&session.refund_asked, &session.attempt) else {
                // Somebody else saw it through.
                return answer_of(&session.payment);
            };
            let gateway = self.gateways.named(attempt.gateway);
            let gateway = gateway.ok_or(Refused::NoGateway(session.payment.currency))?;
            let order = RefundOrder { id: asked.id.as_str(), reason: asked.reason.as_deref() };
            let outcome = match gateway.refund(&session.payment, attempt, &order).await {
                Ok(()) => self.refund_made(&session, asked).await,
                Err(refused @ GatewayError::Refused { .. }) => {
                    let mut next = session.next();
                    (next.refund_asked, next.check_at) = (None, None);
                    self.commit_beside(next).await.and(Err(refused.into()))
                }
                Err(unanswered) => {
                    let mut next = session.next();
                    next.check_at = Some(self.ambient.now().plus_seconds(pause_after(asked.tries)));
                    if let Some(asked) = &mut next.refund_asked {
                        asked.tries += 1;
                    }
                    self.commit_beside(next).await.and(Err(unanswered.into()))
                }
            };
            match outcome {
                Err(Refused::Moved) => {}
                outcome => return outcome,
            }
        }
    }

    async fn refund_made(&self, session: &Session, asked: &RefundAsked) -> Result<Answer, Refused> {
        let cause = Cause::Refunded { id: asked.id.clone(), reason: asked.reason.clone() };
        let decision = payments_core::decide(&session.payment, cause, self.ambient.now())?;
        let mut next = session.next();
        (next.refund_asked, next.check_at) = (None, None);
        let was = Some(session.payment.status.clone());
        let data = EventData::Refund { reason: asked.reason.clone() };
        let request = asked.request.clone().map(IdempotentRequest::of_parts);
        let Moved { change, body, .. } = self.change_for(decision, next, was, data, request.as_ref()).await?;
        self.commit_once(change, body, request.as_ref()).await
    }

    /// The gateway took a refund back after it had been made. The merchant's books say it was made, so a person decides.
    pub(super) async fn refund_failed_later(&self, id: &PaymentId, what: String) -> Result<(), Refused> {
        loop {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            if session.review.is_some() {
                return Ok(());
            }
            tracing::error!(payment = %id, what, "a person must look: payments-server reconcile list");
            let mut next = session.next();
            next.review = Some(Review { what: what.clone(), found_at: self.ambient.now(), resolved: None });
            match self.commit_beside(next).await {
                Err(Refused::Moved) => {}
                outcome => return outcome,
            }
        }
    }
}

fn answer_of(payment: &Payment) -> Result<Answer, Refused> {
    Ok(Answer::fresh(RawJson::of(payment).map_err(StoreError::engine)?))
}

fn pause_after(tries: u32) -> u32 {
    FIRST_PAUSE_SECONDS.saturating_mul(1 << tries.min(16)).min(LONGEST_PAUSE_SECONDS)
}
