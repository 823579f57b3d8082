use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use async_trait::async_trait;
use bytes::Bytes;
use payments_core::{
    CreatePayment, Currency, Environment, FeeRate, Money, NewPayment, Payment, PaymentId, RANDOM_BYTES, Slot, Timestamp,
};

use super::*;
use crate::{
    domain::{GatewayAttempt, GatewayName, new_attempt},
    gateway::{self, AttemptRequest, AttemptState, BeginOutcome, Declaration, Gateways},
    service::in_memory::{caller, service, service_with},
    store::Change,
};

static BUSY: OnceLock<Arc<Service>> = OnceLock::new();
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A gateway of a busy payment: another change of it is committed before the gateway answers. It has no idempotency keys.
struct Busy;

#[async_trait]
impl Gateway for Busy {
    fn declared(&self) -> &'static Declaration {
        gateway::declared("stripe").unwrap()
    }
    async fn begin(&self, _: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        unreachable!()
    }
    async fn query(&self, _: &Payment, _: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        unreachable!()
    }
    async fn cancel(&self, _: &Payment, _: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        unreachable!()
    }
    async fn refund(
        &self,
        payment: &Payment,
        _: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        assert!(!refund.is_repeated);
        let was_sent = ASKED.fetch_add(1, SeqCst) > 0;
        let service = BUSY.get().unwrap();
        let session = service.session(payment.id.as_str()).await.unwrap();
        service.commit_without_event(session.next()).await.unwrap();
        if !was_sent {
            let what = "no connection".to_owned();
            return Err(GatewayError::Unanswered { gateway: self.name(), what, was_sent });
        }
        let (reference, amount) = ("re_1".to_owned(), refund.amount.unwrap_or(payment.amount));
        let state = GatewayRefundState::Succeeded;
        Ok(RefundOutcome::Made(GatewayRefund { reference, id: None, amount, state }))
    }
}

#[tokio::test]
async fn a_gateway_is_asked_once_despite_conflicts_and_again_only_if_nothing_was_sent() {
    let service = BUSY.get_or_init(|| service_with(Gateways::of(Busy)));
    let session = paid(service, Money::dollars(100)).await;
    let id = session.payment.id.as_str();
    assert!(service.refund_at_gateway(id, &CreateRefund::default(), None, None).await.is_err());
    let waiting = service.session(id).await.unwrap();
    assert!(waiting.pending_refund.as_ref().is_some_and(|pending| pending.is_unsent && pending.tries == 1));
    service.finish_pending_refund(&waiting).await.unwrap();
    let made = service.session(id).await.unwrap().payment;
    assert_eq!((made.refunds.len(), ASKED.load(SeqCst)), (1, 2));
}

fn made(pending: &PendingRefund) -> NewRefund {
    NewRefund::made(pending.id.clone())
}

/// A live payment that is paid.
async fn paid(service: &Service, money: Money) -> Session {
    let now = service.ambient.now();
    let params = CreatePayment::of(money).success_url("https://a.example/").cancel_url("https://a.example/");
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now, [1; RANDOM_BYTES]),
        developer_id: "dev_1".parse().unwrap(),
        app_id: None,
        environment: Environment::Live,
        fee_rate: FeeRate::from_basis_points(250).unwrap(),
        checkout_url: String::new(),
        now,
    };
    let created = payments_core::create(params, new);
    let created = service.records().created(created, now.plus_seconds(60), EventData::Payment).unwrap();
    let session = created.session.clone();
    service.commit(Change::of(Write::Payment(Box::new(created)))).await.unwrap();
    let decision = payments_core::decide(&session.payment, Cause::GatewayConfirmed, now).unwrap();
    let gateway = GatewayName::of(if session.payment.currency == Currency::Usd { "stripe" } else { "bkash" });
    let attempt = Some(GatewayAttempt { gateway, ..new_attempt("a") });
    let next = Session { attempt, ..session.next() };
    let payment = service.records().commit_decision(&session, next, decision).await.unwrap();
    service.session(payment.id.as_str()).await.unwrap()
}

/// A refund of 10.00 and its request.
fn ten(session: &Session) -> (CreateRefund, IdempotentRequest) {
    let params = CreateRefund { amount: Some("10".parse().unwrap()), reason: None };
    let body = Bytes::from_static(b"{\"amount\":10}");
    (params, IdempotentRequest::new(&session.scope(), "POST", "/api/v1/payments/1/refund", "key", &body))
}

/// A paid payment and the request that got 10.00 of it back, with its answer.
async fn refunded(service: &Service) -> (Session, CreateRefund, IdempotentRequest, Answer) {
    let session = paid(service, Money::taka(100)).await;
    let (params, request) = ten(&session);
    let pending = service.pending_refund(&session, &params, Some(&request), None).unwrap();
    let made = service
        .records()
        .record_refund(&session, session.after_refund(service.ambient.now()), &pending, made(&pending))
        .await
        .unwrap();
    (service.session(session.payment.id.as_str()).await.unwrap(), params, request, made)
}

#[tokio::test]
async fn a_card_refund_without_the_processors_credentials_does_not_count_as_made() {
    let service = service();
    let session = paid(&service, Money::dollars(100)).await;
    let caller = caller(session.scope());
    let outcome =
        service.refund_payment(&caller, session.payment.id.as_str(), CreateRefund::default(), None, None).await;
    assert!(matches!(outcome, Err(ServiceError::NoGateway(Currency::Usd))), "{outcome:?}");
}

#[tokio::test]
async fn a_refund_without_an_answer_for_a_day_needs_a_review_and_is_still_asked_about() {
    let service = service();
    let mut session = paid(&service, Money::dollars(100)).await;
    let (params, request) = ten(&session);
    let day_ago = Timestamp::from_millis(service.ambient.now().as_millis() - 86_400_000).unwrap();
    for (tries, is_told) in [(0, false), (11, true), (12, true)] {
        let mut pending = service.pending_refund(&session, &params, Some(&request), None).unwrap();
        (pending.id, pending.tries) = (RefundId::new(Slot::FIRST, day_ago, [tries; RANDOM_BYTES]), tries.into());
        let attempt = Some(GatewayAttempt { gateway: GatewayName::of("stripe"), ..new_attempt("a") });
        let next = Session { pending_refund: Some(pending.clone()), attempt, review: None, ..session.next() };
        service.commit_without_event(next.clone()).await.unwrap();
        assert!(service.finish_pending_refund(&next).await.is_err());
        let after = service.session(session.payment.id.as_str()).await.unwrap();
        assert_eq!(after.needs_manual_review(), is_told, "after {tries} tries");
        assert!(after.check_at.is_some() && after.pending_refund.as_ref().unwrap().tries == pending.tries + 1);
        let finished = after.after_refund(service.ambient.now());
        assert!(!finished.needs_manual_review() && finished.pending_refund.is_none());
        session = Session { pending_refund: None, ..after.next() };
        service.commit_without_event(session.clone()).await.unwrap();
    }
}

#[tokio::test]
async fn a_request_whose_key_got_a_response_after_the_claim_begins_no_second_refund() {
    let service = service();
    let (session, params, request, made) = refunded(&service).await;
    let id = session.payment.id.as_str();
    let answer = service.refund_at_gateway(id, &params, Some(&request), None).await.unwrap();
    assert_eq!((answer.replayed, answer.body), (true, made.body));
    let after = service.session(id).await.unwrap();
    assert_eq!((after.pending_refund, after.payment.refunds.len()), (None, 1));
}

#[tokio::test]
async fn a_refund_made_by_the_gateway_counts_even_if_its_key_has_another_refunds_response() {
    let service = service();
    let (session, params, request, _) = refunded(&service).await;
    let second = service.pending_refund(&session, &params, Some(&request), None).unwrap();
    let next = session.after_refund(service.ambient.now());
    service.records().record_refund(&session, next.clone(), &second, made(&second)).await.unwrap();
    let payment = service.session(session.payment.id.as_str()).await.unwrap().payment;
    assert_eq!(payment.amount_refunded(), "20".parse().unwrap());
    // Recording it again is refused.
    assert!(matches!(
        service.records().record_refund(&session, next, &second, made(&second)).await,
        Err(ServiceError::Conflict)
    ));
}
