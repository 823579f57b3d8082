//! Creates, reads and changes payments.

use std::collections::BTreeMap;

use payments_core::{
    Booking, CreatePayment, Decision, EventId, EventKind, NewPayment, Payment, PaymentId, RawJson, Timestamp,
    TransactionId,
};

use super::{Answer, Caller, IdempotentRequest, Result, Service, ServiceError, error::NO_PAYMENT, records::Records};
use crate::domain::{Session, moves_money};
use crate::gateway;
use crate::store::{BookingWrite, Change, EventWrite, PaymentJson, PaymentWrite, Write};

impl Service {
    /// Creates a payment and its `payment.created` event.
    pub async fn create_payment(
        &self,
        caller: &Caller,
        params: CreatePayment,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        // Refuse now, not when the customer wants to pay.
        self.gateways.check_amount(params.amount, params.currency)?;
        if self.gateways.ways(caller.scope.environment, params.currency).is_empty() {
            return Err(ServiceError::NoGateway(params.currency));
        }
        if let Some(named) = &params.ways {
            self.gateways.check_ways(named, &params, caller.scope.environment)?;
        }
        let reference =
            params.merchant_transaction_id.as_ref().filter(|_| params.merchant_transaction_id_must_be_unique);
        let unique = match reference {
            Some(reference) => self.unique_reference(caller, reference).await?,
            None => None,
        };
        let now = self.ambient.now();
        let id = PaymentId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes());
        let expires_at = now.plus_seconds(self.settings.session_ttl_seconds);
        let decision = payments_core::create(params, self.new_payment(caller, id, now));
        let created = self.records().created(decision, expires_at, EventData::Payment)?;
        let body = created.json.clone();
        let write = Write::Payment(Box::new(PaymentWrite { unique, ..created }));
        self.records().commit_once(vec![write], body, request).await
    }

    /// The platform's parameters of a new payment.
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

    /// Reads a developer's payment as the API serves it.
    pub async fn payment(&self, caller: &Caller, id: &str) -> Result<PaymentJson> {
        let id: PaymentId = id.parse().map_err(|_| NO_PAYMENT)?;
        let payment = self.store.payment_json(&caller.scope, &id).await?;
        payment.filter(|payment| caller.sees(&payment.0)).ok_or(NO_PAYMENT)
    }

    pub(super) async fn own_session(&self, caller: &Caller, id: &str) -> Result<Session> {
        let session = self.session(id).await?;
        let is_own = session.scope() == caller.scope && caller.sees_app(session.payment.app_id.as_ref());
        if is_own { Ok(session) } else { Err(NO_PAYMENT) }
    }

    /// The expired payment, if its session has ended without a gateway attempt.
    pub(super) fn expired(&self, session: &Session, now: Timestamp) -> Option<Payment> {
        let has_expired = session.attempt.is_none() && session.expires_at <= now;
        let decision = has_expired.then(|| payments_core::decide(&session.payment, session.cause_of_end(), now));
        decision?.ok().map(|decision| decision.payment)
    }
}

impl Records<'_> {
    /// Commits a decision on the session `before`. `next` is the session afterwards, except for the payment.
    pub(super) async fn commit_decision(self, before: &Session, next: Session, decision: Decision) -> Result<Payment> {
        let write = self.decided(decision, next, before, EventData::Payment)?;
        let payment = write.session.payment.clone();
        self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
        Ok(payment)
    }

    /// Commits a change of a session that leaves the payment's status and has no event.
    pub(super) async fn commit_without_event(self, next: Session) -> Result<()> {
        let write = self.without_event(next)?;
        Ok(self.commit(Change::of(Write::Payment(Box::new(write)))).await?)
    }

    /// The write of a change of a session that leaves the payment's status and has no event.
    pub(super) fn without_event(self, mut next: Session) -> Result<PaymentWrite> {
        next.keep_asking();
        let json = RawJson::of(&next.payment)?;
        Ok(PaymentWrite::new(next, json, None, None))
    }

    /// The write of a new payment, with its event.
    pub(super) fn created(self, decision: Decision, expires_at: Timestamp, data: EventData) -> Result<PaymentWrite> {
        let Decision { payment, booking, event } = decision;
        self.write(Session::new(payment, expires_at), booking, event, data)
    }

    /// The write of a decision on the session `before`, with its booking and event. `next` is the session afterwards, except for
    /// the payment.
    pub(super) fn decided(
        self,
        decision: Decision,
        next: Session,
        before: &Session,
        data: EventData,
    ) -> Result<PaymentWrite> {
        let Decision { payment, booking, event } = decision;
        let mut session = Session { payment, ..next };
        if session.payment.paid_at.is_some() {
            session.payment.gateway_transaction_id = session.attempt.as_ref().and_then(|it| it.transaction.clone());
        }
        session.record_change(before, gateway::title);
        session.keep_asking();
        self.write(session, booking, event, data)
    }

    fn write(
        self,
        session: Session,
        booking: Option<Booking>,
        event: Option<EventKind>,
        data: EventData,
    ) -> Result<PaymentWrite> {
        let payment = &session.payment;
        let json = RawJson::of(payment)?;
        let created_at = payment.updated_at;
        let slot = payment.developer_id.slot();
        let (with_event, without_event) = match event.as_ref().is_some_and(moves_money) {
            true => (booking, None),
            false => (None, booking),
        };
        let event = match event {
            Some(kind) => {
                let data = data.of(&kind, payment, &json)?;
                Some(EventWrite { id: EventId::new(slot, created_at, self.ambient.id_bytes()), kind, created_at, data })
            }
            None => None,
        };
        let without_event = without_event.map(|booking| {
            let id = TransactionId::new(slot, created_at, self.ambient.id_bytes());
            BookingWrite { id, created_at, booking }
        });
        let without_event = without_event.into_iter().collect();
        Ok(PaymentWrite { without_event, ..PaymentWrite::new(session, json, with_event, event) })
    }
}

/// The form of an event's data (API specification, "Data shapes").
pub(super) enum EventData {
    /// The payment exactly as the API returns it.
    Payment,
    /// The payment and the refund's reason.
    Refund { reason: Option<String> },
    /// `{event, payment}`, for demo sessions.
    Wrapped,
}

impl EventData {
    pub(super) fn of(self, kind: &EventKind, payment: &Payment, body: &RawJson) -> Result<RawJson, serde_json::Error> {
        match self {
            Self::Payment => Ok(body.clone()),
            Self::Refund { reason } => {
                let mut with_reason = payment.clone();
                with_reason.unknown.insert("refund_reason", RawJson::of(&reason)?);
                RawJson::of(&with_reason)
            }
            Self::Wrapped => RawJson::of(&BTreeMap::from([("event", RawJson::of(kind)?), ("payment", body.clone())])),
        }
    }
}
