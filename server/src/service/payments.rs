//! Creating, reading and moving payments.

use payments_core::{
    Cause, CreatePayment, Decision, Delivery, DeliveryId, DeliveryStatus, Envelope, Environment, EventId, EventKind,
    NewPayment, Page, PageRequest, Payment, PaymentId, RawJson, RefundId, Status, Timestamp, WebhookId,
    aliased::UnknownFields,
};

use super::{Answer, Caller, IdempotentRequest, Refused, Service};
use crate::store::{
    Change, CommitError, Conflict, EventWrite, Outgoing, PaymentWrite, Scope, Session, StoreError, Write,
};

impl Service {
    /// Creates a payment and owes the merchant's endpoints `payment.created`.
    pub(crate) async fn create_payment(
        &self,
        caller: &Caller,
        params: CreatePayment,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        if caller.scope.environment == Environment::Live {
            return Err(Refused::NoGateway(params.currency));
        }
        let now = self.ambient.now();
        let id = PaymentId::new(now, self.ambient.id_bytes());
        let expires_at = now.plus_seconds(self.settings.session_ttl_seconds);
        let decision = payments_core::create(params, self.new_payment(caller, id, now));
        let Moved { change, body, .. } =
            self.change_for(decision, None, expires_at, EventData::Payment, request).await?;
        self.commit_once(change, body, request).await
    }

    /// What the platform adds to a merchant's parameters.
    pub(super) fn new_payment(&self, caller: &Caller, id: PaymentId, now: Timestamp) -> NewPayment {
        NewPayment {
            checkout_url: format!("{}/checkout/{id}", self.settings.base_url),
            id,
            developer_id: caller.scope.developer_id.clone(),
            environment: caller.scope.environment,
            fee_rate: self.settings.fee_rate,
            now,
        }
    }

    /// Gives a paid payment back and owes the merchant's endpoints `payment.refunded`.
    pub(crate) async fn refund_payment(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<String>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        loop {
            let session = self.session(id).await?;
            if session.scope() != caller.scope {
                return Err(NO_PAYMENT);
            }
            let now = self.ambient.now();
            let cause = Cause::Refunded { id: RefundId::new(now, self.ambient.id_bytes()), reason: reason.clone() };
            let decision = payments_core::decide(&session.payment, cause, now)?;
            let data = EventData::Refund { reason: reason.clone() };
            let Moved { change, body, .. } =
                self.change_for(decision, Some(&session), session.expires_at, data, request).await?;
            match self.commit_once(change, body, request).await {
                Err(Refused::Moved) => {}
                outcome => return outcome,
            }
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
        match (self.store.commit(change).await, request) {
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
        loop {
            let session = self.session(id).await?;
            let now = self.ambient.now();
            let mut payment = session.payment.clone();
            if session.expires_at <= now
                && cause != Cause::SessionEnded
                && let Ok(expired) = payments_core::decide(&payment, Cause::SessionEnded, now)
            {
                payment = expired.payment;
            }
            let decision = payments_core::decide(&payment, cause.clone(), now)?;
            let expires_at = session.expires_at;
            let moved = self.change_for(decision, Some(&session), expires_at, EventData::Payment, None).await?;
            match self.store.commit(moved.change).await.map_err(Refused::from) {
                Ok(()) => return Ok(moved.payment),
                // Someone else moved it first: look again and decide anew.
                Err(Refused::Moved) => {}
                Err(refused) => return Err(refused),
            }
        }
    }

    /// A decision as one commit: the payment, its postings, its event, a delivery for each endpoint that wants it, and
    /// the kept response.
    pub(super) async fn change_for(
        &self,
        decision: Decision,
        was: Option<&Session>,
        expires_at: Timestamp,
        data: EventData,
        request: Option<&IdempotentRequest>,
    ) -> Result<Moved, Refused> {
        let Decision { payment, postings, event } = decision;
        let body = RawJson::of(&payment).map_err(StoreError::engine)?;
        let scope = Scope { developer_id: payment.developer_id.clone(), environment: payment.environment };
        let now = payment.updated_at;
        let session = Session { version: was.map_or(0, |was| was.version + 1), expires_at, payment: payment.clone() };
        let was = was.map(|was| was.payment.status.clone());
        let mut writes = vec![Write::Payment(Box::new(PaymentWrite { session, was, postings }))];
        if let Some(kind) = event {
            let data = data.of(&kind, &payment, &body)?;
            writes.push(Write::Event(self.event(&scope, kind, &data, now).await?));
        }
        let idempotency = request.map(|request| request.keep(&body, now));
        Ok(Moved { change: Change { idempotency, writes }, body, payment })
    }

    /// An event, and a delivery of it for each endpoint that wants it.
    async fn event(
        &self,
        scope: &Scope,
        kind: EventKind,
        data: &RawJson,
        now: Timestamp,
    ) -> Result<EventWrite, StoreError> {
        let id = EventId::new(now, self.ambient.id_bytes());
        let envelope = Envelope { id: &id, event: kind.clone(), created_at: now, data };
        let envelope = RawJson::of(&envelope).map_err(StoreError::engine)?;
        let endpoints = self.store.endpoints(scope).await?;
        let wanted = endpoints.into_iter().filter(|endpoint| endpoint.is_active && endpoint.events.wants(&kind));
        let deliveries = wanted.map(|endpoint| self.outgoing(scope, &endpoint.id, &kind, &envelope, now));
        Ok(EventWrite { deliveries: deliveries.collect(), id, envelope })
    }

    /// A delivery that is still to be made.
    pub(super) fn outgoing(
        &self,
        scope: &Scope,
        endpoint: &WebhookId,
        kind: &EventKind,
        envelope: &RawJson,
        now: Timestamp,
    ) -> Outgoing {
        Outgoing {
            environment: scope.environment,
            delivery: Delivery {
                id: DeliveryId::new(now, self.ambient.id_bytes()),
                webhook_id: endpoint.clone(),
                developer_id: scope.developer_id.clone(),
                event: kind.clone(),
                payload: envelope.clone(),
                response_status: None,
                response_body: None,
                attempts: 0,
                status: DeliveryStatus::Pending,
                delivered_at: None,
                created_at: now,
                unknown: UnknownFields::default(),
            },
        }
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
    fn of(self, kind: &EventKind, payment: &Payment, body: &RawJson) -> Result<RawJson, StoreError> {
        match self {
            Self::Payment => Ok(body.clone()),
            Self::Refund { reason } => {
                let mut with_reason = payment.clone();
                with_reason.unknown.insert("refund_reason", RawJson::of(&reason).map_err(StoreError::engine)?);
                RawJson::of(&with_reason).map_err(StoreError::engine)
            }
            Self::Wrapped => {
                #[derive(serde::Serialize)]
                struct Wrapped<'w> {
                    event: &'w EventKind,
                    payment: &'w RawJson,
                }
                RawJson::of(&Wrapped { event: kind, payment: body }).map_err(StoreError::engine)
            }
        }
    }
}

const NO_PAYMENT: Refused = Refused::NotFound { what: "payment" };
