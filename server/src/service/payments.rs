//! Creating, reading and moving payments.

use payments_core::{
    Cause, CreatePayment, Decision, EventId, EventKind, NewPayment, Page, PageRequest, Payment, PaymentId, RawJson,
    Status, Timestamp,
};

use super::{Answer, Caller, IdempotentRequest, Refused, Service, retry_on_conflict};
use crate::domain::Session;
use crate::store::{Change, CommitError, Conflict, EventWrite, PaymentWrite, Write};

impl Service {
    /// Creates a payment and owes the merchant's endpoints `payment.created`.
    pub(crate) async fn create_payment(
        &self,
        caller: &Caller,
        params: CreatePayment,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        // Said now, not when the customer wants to pay.
        if self.gateways.of(caller.scope.environment, params.currency).is_none() {
            return Err(Refused::NoGateway(params.currency));
        }
        let now = self.ambient.now();
        let id = PaymentId::new(now, self.ambient.id_bytes());
        let expires_at = now.plus_seconds(self.settings.session_ttl_seconds);
        let decision = payments_core::create(params, self.new_payment(caller, id, now));
        let session = Session::new(decision.payment.clone(), expires_at);
        let Moved { change, body, .. } = self.change_for(decision, session, None, EventData::Payment, request).await?;
        self.commit_once(change, body, request).await
    }

    /// What the platform adds to a merchant's parameters.
    pub(super) fn new_payment(&self, caller: &Caller, id: PaymentId, now: Timestamp) -> NewPayment {
        NewPayment {
            checkout_url: format!("{}/checkout/{id}", self.settings.base_url),
            id,
            developer_id: caller.scope.developer_id.clone(),
            app_id: caller.app_id.clone(),
            environment: caller.scope.environment,
            fee_rate: self.settings.fee_rate,
            now,
        }
    }

    /// Commits what a request asks for, unless another request with its key was faster: its effect is the one effect,
    /// and its answer the answer to both.
    pub(super) async fn commit_once(
        &self,
        change: Change,
        body: RawJson,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        match (self.commit(change).await, request) {
            (Ok(()), _) => Ok(Answer::fresh(body)),
            (Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(kept))), Some(request)) => {
                request.answer_from(*kept)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// A developer's payment.
    pub(crate) async fn payment(&self, caller: &Caller, id: &str) -> Result<Payment, Refused> {
        let session = self.session(id).await?;
        if session.scope() == caller.scope { Ok(session.payment) } else { Err(NO_PAYMENT) }
    }

    /// A page of a developer's payments, newest first.
    pub(crate) async fn payments(
        &self,
        caller: &Caller,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<Payment>, Refused> {
        Ok(self.store.payments(&caller.scope, status, page).await?)
    }

    /// A payment with its session, whoever it belongs to: for the keyless checkout routes. A session whose life is over
    /// reads as expired from that moment on.
    pub(super) async fn session(&self, id: &str) -> Result<Session, Refused> {
        let id: PaymentId = id.parse().map_err(|_| NO_PAYMENT)?;
        self.store.session(&id).await?.ok_or(NO_PAYMENT)
    }

    /// Moves a payment, if the table of states has the move, and owes the merchant's endpoints the event.
    pub(super) async fn move_payment(&self, id: &str, cause: Cause) -> Result<Payment, Refused> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let now = self.ambient.now();
            let ended = self.ended(&session, now);
            let payment = ended.as_ref().unwrap_or(&session.payment);
            let decision = payments_core::decide(payment, cause.clone(), now)?;
            self.commit_move(&session, session.next(), decision).await
        })
        .await
    }

    /// The payment as it reads once its session's life is over, where no gateway has a word in it.
    pub(super) fn ended(&self, session: &Session, now: Timestamp) -> Option<Payment> {
        let ended = session.attempt.is_none() && session.expires_at <= now;
        let decision = ended.then(|| payments_core::decide(&session.payment, Cause::SessionEnded, now));
        decision?.ok().map(|decision| decision.payment)
    }

    /// Commits a decision on a session as it was read; `next` is the session after it, but for the payment.
    pub(super) async fn commit_move(
        &self,
        was: &Session,
        next: Session,
        decision: Decision,
    ) -> Result<Payment, Refused> {
        let moved = self.change_for(decision, next, Some(was), EventData::Payment, None).await?;
        self.commit(moved.change).await?;
        Ok(moved.payment)
    }

    /// Commits what the server keeps beside a payment, whose status stays as it is.
    pub(super) async fn commit_beside(&self, was: &Session, next: Session) -> Result<(), Refused> {
        let write = PaymentWrite::new(Some(was), next, Vec::new(), None);
        Ok(self.commit(Change::of(Write::Payment(Box::new(write)))).await?)
    }

    /// A decision as one commit: the payment, its postings, its event, and the stored response. `next` is the session after
    /// it, but for the payment; `was` the session before it, if there was one.
    pub(super) async fn change_for(
        &self,
        decision: Decision,
        next: Session,
        was: Option<&Session>,
        data: EventData,
        request: Option<&IdempotentRequest>,
    ) -> Result<Moved, Refused> {
        let Decision { payment, postings, event } = decision;
        let body = RawJson::of(&payment)?;
        let now = payment.updated_at;
        let session = Session { payment: payment.clone(), ..next };
        let event = match event {
            Some(kind) => {
                let data = data.of(&kind, &payment, &body)?;
                // An endpoint that is added at this moment may or may not get the event.
                let is_pending = self.store.has_endpoints(&session.scope()).await?;
                let id = EventId::new(now, self.ambient.id_bytes());
                Some(EventWrite { id, kind, created_at: now, data, is_pending })
            }
            None => None,
        };
        let write = PaymentWrite::new(was, session, postings, event);
        let idempotency = request.map(|request| request.keep(body.clone(), now));
        Ok(Moved { change: Change { idempotency, ..Change::of(Write::Payment(Box::new(write))) }, body, payment })
    }
}

/// A decision, ready to be committed.
pub(super) struct Moved {
    pub(super) change: Change,
    /// The payment as it is to stand on the wire.
    pub(super) body: RawJson,
    pub(super) payment: Payment,
}

/// What an event carries (API specification, "Data shapes").
pub(super) enum EventData {
    /// The payment exactly as the API returns it.
    Payment,
    /// The payment, and why it was refunded.
    Refund { reason: Option<String> },
    /// `{event, payment}`: sessions that the simulator of the sandbox made.
    Wrapped,
}

impl EventData {
    fn of(self, kind: &EventKind, payment: &Payment, body: &RawJson) -> Result<RawJson, serde_json::Error> {
        match self {
            Self::Payment => Ok(body.clone()),
            Self::Refund { reason } => {
                let mut with_reason = payment.clone();
                with_reason.unknown.insert("refund_reason", RawJson::of(&reason)?);
                RawJson::of(&with_reason)
            }
            Self::Wrapped => {
                #[derive(serde::Serialize)]
                struct Wrapped<'w> {
                    event: &'w EventKind,
                    payment: &'w RawJson,
                }
                RawJson::of(&Wrapped { event: kind, payment: body })
            }
        }
    }
}

pub(super) const NO_PAYMENT: Refused = Refused::NotFound { what: "payment" };
