//! Refunds: by the gateway if it makes refunds, otherwise by manual settlement.
//!
//! The server commits a pending refund before it calls the gateway. The refund's id is the idempotency key there. So a
//! merchant's retry or the reconciler can repeat the call, and the gateway refunds once. A request with an idempotency
//! key [claims](super::claims) it first, so other requests with the key wait for its response.
//!
//! A payment is refunded as a whole or in parts, one at a time. A part needs an idempotency key, because the same request
//! again would be another part.

mod amounts;

use std::{collections::HashMap, sync::Arc};

use payments_core::{
    Amount, Cause, CreateRefund, Currency, Environment, ErrorCode, Invalid, NewRefund, RawJson, RefundId, TimelineKind,
    Timestamp,
};
use tokio::sync::OnceCell;

pub use self::amounts::known_refunds;
use self::amounts::{amount_asked, amount_at_gateway, refunded_elsewhere};
use super::{
    Answer, Caller, IdempotentRequest, Result, Service, ServiceError, claims::Effect, payments::EventData,
    records::Records, retry_on_conflict,
};
use crate::{
    domain::{GatewayRefund, GatewayRefundState, LONGEST_REFUND_BACKOFF_SECONDS, PendingRefund, Session},
    gateway::{Gateway, GatewayError, RefundOutcome, RefundRequest, RefundWay, Rejection},
    store::{Change, PaymentWrite, Write},
};

/// How long a request may take for a refund, beside its calls to the gateway.
const REQUEST_HEAD_START_SECONDS: u32 = 15;
/// The calls for a refund, if two workers must not ask at once: for a token, twice for the refunds so far, for the refund, and
/// twice for them again.
const MOST_CALLS: u32 = 6;
/// The first backoff interval. It doubles up to the longest one.
const FIRST_BACKOFF_SECONDS: u32 = 5;

/// How much of a payment a caller may have refunded, by currency; nothing in other currencies.
pub type RefundCaps = HashMap<Currency, Amount>;

impl Service {
    /// Refunds a paid payment, or a part of it, and commits its event. With this refund, no more of the payment than `caps` says
    /// may be refunded.
    pub async fn refund_payment(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        params: CreateRefund,
        request: Option<&IdempotentRequest>,
        caps: Option<&RefundCaps>,
    ) -> Result<Answer> {
        retry_on_conflict(|| async {
            let session = self.own_session(caller, id).await?;
            let cap = caps.map(|caps| caps.get(&session.payment.currency).copied().unwrap_or(Amount::ZERO));
            // Refuse before claiming the key.
            let pending = self.pending_refund(&session, &params, request, cap)?;
            let way = session.attempt.as_ref().and_then(|attempt| self.gateways.refund_way(attempt.gateway));
            // A payment without an attempt was paid by hand, or is a test payment.
            let is_manual = match way {
                Some(way) => way == RefundWay::Manual || self.has_most_refunds(&session),
                None if session.attempt.is_none() => true,
                None => return Err(ServiceError::NoGateway(session.payment.currency)),
            };
            if session.pending_refund.is_none() && is_manual {
                let next = session.after_refund(self.ambient.now());
                let (refund, overdraft) = (NewRefund::by_hand(pending.id.clone()), self.overdraft(&session));
                return self.records().commit_refund(&session, next, pending, refund, request, overdraft).await;
            }
            let (id, params) = (id.to_owned(), params.clone());
            let refund = move |service: Arc<Self>, request: Option<IdempotentRequest>| async move {
                service.refund_at_gateway(&id, &params, request.as_ref(), cap).await
            };
            let developer = &caller.scope.developer_id;
            self.once(Effect::Refund, developer, request, self.settings.gateway_timeout, refund).await
        })
        .await
    }

    /// The pending refund that a request finishes: a new one, or the stored one if it belongs to the request.
    fn pending_refund(
        &self,
        session: &Session,
        params: &CreateRefund,
        request: Option<&IdempotentRequest>,
        cap: Option<Amount>,
    ) -> Result<PendingRefund> {
        if let Some(pending) = session.pending_refund.as_ref().filter(|_| !crate::planted!(PendingRefundReplaced)) {
            return match request.zip(pending.request.as_ref()) {
                Some((this, parts)) if this.matches(parts) => Ok(pending.clone()),
                Some((this, parts)) if *this.key() == parts.0 => Err(ServiceError::IdempotencyKeyReused),
                _ => Err(ServiceError::RefundInProgress),
            };
        }
        let now = self.ambient.now();
        let id = RefundId::new(session.payment.developer_id.slot(), now, self.ambient.id_bytes());
        let refund = NewRefund::made(id.clone());
        let cause = match crate::planted!(RefundAfterDispute) {
            true => refund.cause(&session.payment, params.amount)?,
            false => params.cause(&session.payment, refund)?,
        };
        let amount = match &cause {
            Cause::PartRefunded { amount, .. } => Some(*amount),
            _ => None,
        };
        payments_core::decide(&session.payment, cause, now)?;
        if amount.is_some() && request.is_none() {
            return Err(Invalid::new(ErrorCode::IdempotencyKeyRequired, PART_WITHOUT_KEY).into());
        }
        if let Some(cap) = cap {
            let left = session.payment.amount_not_refunded();
            let left = left.checked_sub(amount.unwrap_or(left)).unwrap_or(Amount::ZERO);
            if session.payment.amount.checked_sub(left).is_none_or(|refunded| refunded > cap) {
                return Err(ServiceError::RefundCapExceeded { cap });
            }
        }
        let reason = params.reason.clone();
        let reference = self.refunder(session).and_then(|gateway| gateway.declared().reference.own(&*self.ambient));
        let request = request.map(IdempotentRequest::to_parts);
        Ok(PendingRefund { id, amount, reason, request, tries: 0, is_unsent: false, reference })
    }

    /// Commits a pending refund, then finishes it at the gateway. The request holds the claim on its key.
    async fn refund_at_gateway(
        &self,
        id: &str,
        params: &CreateRefund,
        request: Option<&IdempotentRequest>,
        cap: Option<Amount>,
    ) -> Result<Answer> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            // Another worker may have made this refund since the request claimed its key. Then the key has the response. If
            // that happens after this check, the session's version changes.
            if session.pending_refund.is_none()
                && let Some(request) = request
                && let Some(answer) = self.replay(request).await?
            {
                return Ok(answer);
            }
            let pending = self.pending_refund(&session, params, request, cap)?;
            let refund = pending.id.clone();
            if session.pending_refund.as_ref().is_none_or(|known| known.id != refund) {
                let check_at = Some(self.turn_until(self.refunder(&session)));
                let mut next = Session { pending_refund: Some(pending), check_at, ..session.next() };
                let words = "The merchant asked for a refund, and the server asks the gateway for it.";
                next.record(self.ambient.now(), TimelineKind::RefundRequested, words);
                let write = PaymentWrite { overdraft: self.overdraft(&session), ..self.records().without_event(next)? };
                self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
                return self.finish_refund(id, &refund, false, request).await;
            }
            self.finish_refund(id, &refund, true, request).await
        })
        .await
    }

    /// Whether a payment's gateway makes no more refunds of it.
    fn has_most_refunds(&self, session: &Session) -> bool {
        let made = session.payment.refunds.iter().filter(|it| it.is_by_gateway() && it.stands()).count();
        self.refunder(session).and_then(|it| it.declared().most_refunds).is_some_and(|most| made >= most)
    }

    /// How far a refund of a payment may overdraw the merchant's balance, if the operator limits that.
    fn overdraft(&self, session: &Session) -> Option<Amount> {
        let is_live = session.payment.environment == Environment::Live;
        self.settings.payouts.overdraft.get(&session.payment.currency).copied().filter(|_| is_live)
    }

    /// Finishes a pending refund for the reconciler.
    pub(super) async fn finish_pending_refund(&self, session: &Session) -> Result<()> {
        let Some(pending) = &session.pending_refund else { return Ok(()) };
        self.finish_refund(session.payment.id.as_str(), &pending.id, true, None).await.map(drop)
    }

    /// Requests a pending refund from the gateway and commits the result. Returns [`ServiceError::Conflict`] if another worker
    /// asked first and the gateway refused.
    async fn finish_refund(
        &self,
        id: &str,
        refund: &RefundId,
        is_repeated: bool,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        let is_unsent = is_repeated && self.take_unsent(id, refund).await?;
        // A conflict between the gateway's answer and its record does not ask again: not every gateway has idempotency keys.
        let answer = OnceCell::new();
        let outcome = retry_on_conflict(|| async {
            let mut session = self.session(id).await?;
            let is_pending = session.pending_refund.as_ref().is_some_and(|pending| pending.id == *refund);
            if is_repeated && !is_unsent && answer.get().is_none() && is_pending {
                session = self.turn_to_ask_again(session).await?;
            }
            let pending = session.pending_refund.as_ref().filter(|pending| pending.id == *refund);
            let (Some(pending), Some(attempt)) = (pending, &session.attempt) else {
                // Another worker finished it and stored the response under the key.
                let stored = match request {
                    Some(request) => self.replay(request).await?,
                    None => None,
                };
                let is_made = session.payment.refunds.iter().any(|known| known.id == *refund);
                return match stored {
                    None if is_made => Ok(Some(Answer::fresh(RawJson::of(&session.payment)?))),
                    stored => Ok(stored),
                };
            };
            let order = RefundRequest {
                id: &pending.id,
                reference: pending.reference.as_deref().unwrap_or(pending.id.as_str()),
                amount: amount_at_gateway(&session, pending),
                is_repeated: !is_unsent && (is_repeated || pending.tries > 0),
                known: &known_refunds(&session),
                reason: pending.reason.as_deref(),
            };
            let asked = || async {
                let gateway = self.gateways.of_attempt(attempt)?;
                let outcome = gateway.refund(&session.payment, attempt, &order).await?;
                let elsewhere = refunded_elsewhere(gateway, &session, pending, &outcome).await?;
                Ok((outcome, elsewhere))
            };
            let outcome: Result<_, GatewayError> = answer.get_or_init(asked).await.clone();
            let now = self.ambient.now();
            let (mut next, kind, error) = match outcome {
                Ok((RefundOutcome::Made(made), elsewhere)) => {
                    return self.record_made(&session, pending, made, elsewhere).await.map(Some);
                }
                Ok((RefundOutcome::ForAPerson { what }, _)) => {
                    let mut next = session.after_refund(now);
                    next.record(now, TimelineKind::GatewayError, what);
                    let refund = NewRefund::by_hand(pending.id.clone());
                    return self.records().record_refund(&session, next, pending, refund).await.map(Some);
                }
                Ok((RefundOutcome::Rejected(rejection), _)) => {
                    let mut next = session.after_refund(now);
                    // The money may have gone back in the gateway's dashboard.
                    next.refund_check_at = Some(now);
                    (next, TimelineKind::RefundRefused, ServiceError::from(Rejection::from(rejection)))
                }
                Err(error) => {
                    let backoff = FIRST_BACKOFF_SECONDS.saturating_mul(1 << pending.tries.min(16));
                    let check_at = Some(now.plus_seconds(backoff.min(LONGEST_REFUND_BACKOFF_SECONDS)));
                    let is_unsent = !order.is_repeated && !error.was_sent();
                    let pending = PendingRefund { tries: pending.tries + 1, is_unsent, ..pending.clone() };
                    let next = Session { pending_refund: Some(pending), check_at, ..session.next() };
                    (next, TimelineKind::GatewayError, ServiceError::from(error))
                }
            };
            next.record(now, kind, error.to_string());
            let silent = next.pending_refund.as_ref().filter(|it| it.is_for_a_person(now));
            if let Some(silence) = silent.filter(|_| !session.needs_manual_review()).map(PendingRefund::silence) {
                return self.request_review(&session, next, &silence).await.and(Err(error));
            }
            self.commit_without_event(next).await.and(Err(error))
        });
        outcome.await?.ok_or(ServiceError::Conflict)
    }

    /// Whether no request for a pending refund has reached the gateway. First commits that the next one may.
    async fn take_unsent(&self, id: &str, refund: &RefundId) -> Result<bool> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let pending = session.pending_refund.clone().filter(|pending| pending.id == *refund && pending.is_unsent);
            let Some(pending) = pending else { return Ok(false) };
            let check_at = Some(self.turn_until(self.refunder(&session)));
            let pending_refund = Some(PendingRefund { is_unsent: false, ..pending });
            self.commit_without_event(Session { pending_refund, check_at, ..session.next() }).await.map(|()| true)
        })
        .await
    }

    /// Lets one worker at a time ask again, if the gateway would not notice that two ask for the same refund.
    async fn turn_to_ask_again(&self, session: Session) -> Result<Session> {
        let gateway = self.refunder(&session);
        if gateway.is_none_or(Gateway::knows_repeated_refunds) {
            return Ok(session);
        }
        if session.check_at.is_some_and(|at| at > self.ambient.now()) {
            return Err(ServiceError::RefundInProgress);
        }
        let next = Session { check_at: Some(self.turn_until(gateway)), ..session.next() };
        self.commit_without_event(next.clone()).await?;
        Ok(next)
    }

    fn refunder(&self, session: &Session) -> Option<&dyn Gateway> {
        session.attempt.as_ref().and_then(|attempt| self.gateways.named(attempt.gateway))
    }

    /// Until when a refund is left to the worker that asks for it, which then has its answer. If two must not ask at once, all
    /// calls of that one have ended then.
    fn turn_until(&self, gateway: Option<&dyn Gateway>) -> Timestamp {
        let timeout = u32::try_from(self.settings.gateway_timeout.as_secs()).unwrap_or(u32::MAX);
        let seconds = match gateway.is_none_or(Gateway::knows_repeated_refunds) {
            true => timeout.saturating_add(REQUEST_HEAD_START_SECONDS),
            false => timeout.saturating_mul(MOST_CALLS),
        };
        self.ambient.now().plus_seconds(seconds)
    }

    /// Commits a refund that the gateway has made or accepted. `elsewhere` is what went back in its dashboard instead.
    async fn record_made(
        &self,
        session: &Session,
        pending: &PendingRefund,
        made: GatewayRefund,
        elsewhere: Amount,
    ) -> Result<Answer> {
        let now = self.ambient.now();
        let mut next = session.after_refund(now);
        if elsewhere > Amount::ZERO {
            next.refund_check_at = Some(now);
        }
        let refund = match made.state {
            GatewayRefundState::Pending => NewRefund::accepted(pending.id.clone()),
            _ => NewRefund::made(pending.id.clone()),
        };
        next.refer(pending.id.clone(), made.reference);
        let rest = amount_asked(session, pending).checked_sub(elsewhere).filter(|rest| *rest > Amount::ZERO);
        let amount = rest.unwrap_or(made.amount);
        let pending = PendingRefund { amount: Some(amount), ..pending.clone() };
        self.records().record_refund(session, next, &pending, refund).await
    }
}

impl Records<'_> {
    /// Commits a refund that the gateway has made or accepted.
    pub(super) async fn record_refund(
        self,
        session: &Session,
        next: Session,
        pending: &PendingRefund,
        refund: NewRefund,
    ) -> Result<Answer> {
        let request = pending.request.clone().map(IdempotentRequest::of_parts);
        let answer =
            self.commit_refund(session, next.clone(), pending.clone(), refund.clone(), request.as_ref(), None).await?;
        if answer.replayed {
            // The key has the response of another refund: an earlier server could begin a second refund under one key. The
            // gateway has made this one too, so it counts. If another worker recorded this very refund, the session's version
            // has changed.
            return self.commit_refund(session, next, pending.clone(), refund, None, None).await;
        }
        Ok(answer)
    }

    async fn commit_refund(
        self,
        session: &Session,
        next: Session,
        pending: PendingRefund,
        refund: NewRefund,
        request: Option<&IdempotentRequest>,
        overdraft: Option<Amount>,
    ) -> Result<Answer> {
        let data = EventData::Refund { reason: pending.reason.clone() };
        // It is a fact, whatever a dispute holds since it was allowed.
        let cause = NewRefund { reason: pending.reason, ..refund }.cause(&session.payment, pending.amount)?;
        let decision = payments_core::decide(&session.payment, cause, self.ambient.now())?;
        let write = PaymentWrite { overdraft, ..self.decided(decision, next, session, data)? };
        let body = write.json.clone();
        self.commit_once(vec![Write::Payment(Box::new(write))], body, request).await
    }
}

const PART_WITHOUT_KEY: &str = "a refund of a part needs an Idempotency-Key header, because the same request again would be \
                                another refund";

#[cfg(test)]
mod tests;
