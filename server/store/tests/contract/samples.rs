//! Sample records, and helpers that commit and read them.

use std::sync::Arc;

use payments_core::{
    Amount, Cause, CreatePayment, Decision, DeliveryId, DeliveryStatus, DisputeId, DisputeReport, DisputeStatus,
    Environment, EventId, EventKind, FeeRate, LoggedRequest, NewPayment, NewRefund, Page, PageRequest, Payment,
    PaymentId, PaymentMethod, RANDOM_BYTES, RawJson, RawStatus, RefundId, SimulateOutcome, Slot, Status, Timestamp,
    TransactionId, UnknownFields, WebhookId, WorkspaceId,
};
use payments_store::{
    BookingWrite, Change, ClaimEnd, CommitError, Committed, EventWrite, Lease, NewResponse, PaymentJson, PaymentWrite,
    Store, Write,
    domain::{
        ClaimToken, Endpoint, GatewayAttempt, GatewayName, IdempotencyKey, KeyClaim, Limits, LogPart, ManualReview,
        Outgoing, Scope, Session, Workspace, faults,
    },
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

pub(super) const SECOND: i64 = 1_000;
pub(super) const DAY: i64 = 24 * 60 * 60 * SECOND;

/// A time in milliseconds after an evening in November 2023.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis).unwrap()
}

pub(super) fn scope() -> Scope {
    Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Live }
}

pub(super) fn workspace(version: u64) -> Workspace {
    Workspace {
        version,
        id: WorkspaceId::new(Slot::FIRST, at(0), [1; RANDOM_BYTES]),
        developer_id: scope().developer_id,
        name: "Shop".into(),
        slug: "shop".into(),
        website: None,
        status: "active".into(),
        created_at: at(0),
        resets: 0,
        ways: Vec::new(),
        limits: Limits::default(),
    }
}

/// Commits writes without other conditions.
pub(super) async fn commit(store: &Arc<Store>, writes: Vec<Write>) -> Result<Committed, CommitError> {
    store.commit(Change { writes, ..Change::default() }).await
}

/// The outcome of a commit as text.
pub(super) fn outcome(committed: Result<Committed, CommitError>) -> String {
    match committed {
        Ok(_) => "committed".into(),
        Err(CommitError::Conflict(conflict)) => conflict.to_string(),
        Err(CommitError::Store(error)) => panic!("{error}"),
    }
}

pub(super) const COMMITTED: &str = "committed";
pub(super) const STALE: &str = "the record has changed meanwhile";
pub(super) const WORK_LOST: &str = "the claim on this work was taken over";
pub(super) const KEY_USED: &str = "the idempotency key was used";
pub(super) const KEY_CLAIMED: &str = "the idempotency key is claimed";
pub(super) const CLAIM_LOST: &str = "the claim on the idempotency key was taken over";

/// A payment that is created at a time, with its event.
pub(super) fn new_payment(nth: u8, created_at: Timestamp) -> PaymentWrite {
    new_payment_with(nth, created_at, "")
}

/// As [`new_payment`], with more fields of its request, each with a comma after it.
pub(super) fn new_payment_with(nth: u8, created_at: Timestamp, fields: &str) -> PaymentWrite {
    new_payment_in(&scope(), nth, created_at, fields)
}

/// As [`new_payment_with`], in a scope.
pub(super) fn new_payment_in(scope: &Scope, nth: u8, created_at: Timestamp, fields: &str) -> PaymentWrite {
    // Metadata stays as it was written, with its line breaks.
    let body = r#""amount": 100, "currency": "BDT", "success_url": "https://a.example/",
        "cancel_url": "https://a.example/", "metadata": {"order":
            1.10}}"#;
    let body = format!("{{{fields}{body}");
    let params = CreatePayment::from_json(body.as_bytes(), scope.environment).unwrap();
    let new = NewPayment {
        id: PaymentId::new(scope.developer_id.slot(), created_at, [nth; RANDOM_BYTES]),
        developer_id: scope.developer_id.clone(),
        app_id: None,
        environment: scope.environment,
        fee_rate: FeeRate::from_basis_points(250).unwrap(),
        checkout_url: String::new(),
        now: created_at,
    };
    let decision = payments_core::create(params, new);
    let session = Session::new(decision.payment, created_at.plus_millis(60 * 1000));
    let (json, event) = (json_of(&session), event(&session, decision.event));
    PaymentWrite::new(session, json, decision.booking, event)
}

/// The payment of a session as the API serves it.
fn json_of(session: &Session) -> RawJson {
    RawJson::of(&session.payment).unwrap()
}

fn event(session: &Session, kind: Option<EventKind>) -> Option<EventWrite> {
    let Payment { id, updated_at, .. } = &session.payment;
    let mut random = [0; RANDOM_BYTES];
    random.copy_from_slice(&Sha256::digest(format!("{id} {}", session.version))[..RANDOM_BYTES]);
    let (id, data) = (EventId::new(id.slot(), *updated_at, random), json_of(session));
    kind.map(|kind| EventWrite { id, kind, created_at: *updated_at, data })
}

/// The next gateway attempt of a session, different from the ended ones.
fn attempt(session: &Session) -> GatewayAttempt {
    let nth = session.ended_attempts.len() + 1;
    GatewayAttempt {
        gateway: GatewayName::of("bkash"),
        invoice: format!("inv_{nth}"),
        external_id: format!("ext_{nth}"),
        customer_url: "https://pay.example/".into(),
        capture_sent_at: None,
        transaction: None,
        failure: None,
        failure_code: None,
        paid_url: None,
        silent_since: None,
    }
}

/// The transition of a payment by a cause, if there is one.
pub(super) fn try_moved(before: &Session, cause: Cause, now: Timestamp) -> Option<PaymentWrite> {
    let decision = payments_core::decide(&before.payment, cause, now).ok()?;
    let mut session = Session { payment: decision.payment, ..before.next() };
    if session.payment.raw_status == RawStatus::Processing {
        session.attempt = Some(attempt(&session));
    }
    if session.payment.raw_status == RawStatus::Pending {
        session.end_attempt(now);
        session.keep_asking();
    }
    let (json, event) = (json_of(&session), event(&session, decision.event));
    Some(PaymentWrite::new(session, json, decision.booking, event))
}

pub(super) fn paid(before: &Session, now: Timestamp) -> PaymentWrite {
    let cause = match before.payment.environment {
        Environment::Live | Environment::Other(_) => Cause::GatewayConfirmed,
        Environment::Test => Cause::Simulated(SimulateOutcome::Completed),
    };
    try_moved(before, cause, now).unwrap()
}

/// A change of the session that leaves the payment as it is.
pub(super) fn changed(before: &Session, change: impl FnOnce(&mut Session)) -> PaymentWrite {
    let mut session = before.next();
    change(&mut session);
    let json = json_of(&session);
    PaymentWrite::new(session, json, None, None)
}

/// A decision that has no event.
pub(super) fn without_event(before: &Session, decision: Decision) -> PaymentWrite {
    let write = changed(before, |session| session.payment = decision.payment);
    let Payment { id, updated_at: created_at, .. } = &write.session.payment;
    let random = [u8::try_from(write.session.version).unwrap(); RANDOM_BYTES];
    let booking = decision.booking.map(|booking| {
        let id = TransactionId::new(id.slot(), *created_at, random);
        BookingWrite { id, created_at: *created_at, booking }
    });
    PaymentWrite { without_event: booking.into_iter().collect(), ..write }
}

pub(super) fn dispute_id() -> DisputeId {
    DisputeId::new(Slot::FIRST, at(2), [7; RANDOM_BYTES])
}

/// The next change of a payment whose dispute about 40.00 has come this far.
pub(super) fn reported(before: &Session, status: DisputeStatus, withdrawn: u64) -> PaymentWrite {
    let report = DisputeReport {
        id: dispute_id(),
        amount: Amount::from_minor(4_000),
        reason: None,
        status,
        evidence_due_by: None,
        withdrawn: Amount::from_minor(withdrawn),
        reinstated: Amount::ZERO,
        returns_fee: false,
    };
    let decision = payments_core::decide_dispute(&before.payment, &report, at(2)).unwrap().unwrap();
    let kind = decision.event.clone();
    let write = without_event(before, decision);
    let event = event(&write.session, kind);
    PaymentWrite { event, ..write }
}

/// The open part of a log.
pub(super) fn log_part(version: u64) -> LogPart {
    let request = LoggedRequest {
        id: "req_1".into(),
        method: "GET".into(),
        path: "/api/v1/payments".into(),
        status: 200,
        error: None,
        key_last4: "1234".into(),
        duration_ms: 1,
        created_at: at(0),
        count: None,
        unknown: UnknownFields::new(),
    };
    LogPart { version, requests: vec![request], ..LogPart::first(scope()) }
}

/// A session that needs manual review, or needs it no longer.
pub(super) fn reviewed(before: &Session, is_needed: bool) -> PaymentWrite {
    changed(before, |session| {
        let found_at = session.payment.updated_at;
        // A pending payment has a payable attempt only during manual review.
        let has_attempt = is_needed || session.payment.raw_status != RawStatus::Pending;
        session.attempt = has_attempt.then(|| attempt(session));
        session.review = is_needed.then(|| ManualReview { what: "another amount".into(), found_at, resolved: None });
    })
}

/// The cause of a payment's transition.
pub(super) fn cause_of(cause: u8, nth: u8, time: i64) -> Cause {
    let refund = || NewRefund::by_hand(RefundId::new(Slot::FIRST, at(time), [nth; RANDOM_BYTES]));
    match cause {
        0 => Cause::GatewayConfirmed,
        1 => Cause::GatewayFailed,
        2 => Cause::GatewayCancelled,
        3 => Cause::SessionEnded,
        4 => Cause::SentToGateway(PaymentMethod::Mfs),
        5 => Cause::PartRefunded { refund: refund(), amount: Amount::from_minor(1) },
        7 => Cause::AttemptFailed,
        _ => Cause::Refunded(refund()),
    }
}

/// A session whose gateway is queried at `time`; without a time, when the next query about late money is due.
pub(super) fn asked(before: &Session, time: Option<i64>) -> PaymentWrite {
    let asked = time.map(|time| at(time * 100));
    changed(before, |session| session.check_at = asked.or(session.next_late_check()))
}

pub(super) fn payment(write: PaymentWrite) -> Write {
    Write::Payment(Box::new(write))
}

pub(super) fn endpoint(nth: u8) -> Endpoint {
    let id = WebhookId::new(Slot::FIRST, at(0), [nth; RANDOM_BYTES]);
    let endpoint = serde_json::json!({"id": id, "developerId": "dev_1", "appId": null, "url": "https://a.example/",
        "secret": "whsec_1", "events": ["*"], "isActive": true, "createdAt": at(0), "updatedAt": at(0)});
    Endpoint {
        version: 0,
        environment: Environment::Live,
        endpoint: serde_json::from_value(endpoint).unwrap(),
        only_its_app: false,
        previous_secrets: Vec::new(),
        failing_since: None,
    }
}

pub(super) fn added(endpoint: Endpoint, at_most: usize) -> Write {
    Write::EndpointAdded { endpoint: Box::new(endpoint), at_most }
}

/// A pending delivery of a ping.
pub(super) fn ping(nth: u8, created_at: Timestamp, to: &Endpoint) -> Outgoing {
    let slot = to.endpoint.id.slot();
    let id = DeliveryId::new(slot, created_at, [nth; RANDOM_BYTES]);
    let event = EventId::new(slot, created_at, [nth; RANDOM_BYTES]);
    let envelope = serde_json::json!({"id": event, "event": "test.ping", "createdAt": created_at, "data": {"a": 1}});
    let envelope = RawJson::of(&envelope).unwrap();
    Outgoing::new(id, &to.scope(), &to.endpoint.id, &EventKind::TestPing, envelope, created_at)
}

/// The delivery after it has ended.
pub(super) fn ended(mut outgoing: Outgoing) -> Outgoing {
    outgoing.version += 1;
    outgoing.delivery.status = DeliveryStatus::Success;
    outgoing.delivery.response_status = Some(200);
    outgoing.delivery.response_body = Some("thanks".into());
    outgoing.delivery.duration_ms = Some(7);
    outgoing.delivery.attempts = 1;
    outgoing.delivery.delivered_at = Some(outgoing.delivery.created_at);
    outgoing
}

pub(super) fn delivery(outgoing: &Outgoing) -> Write {
    Write::Delivery(Box::new(outgoing.clone()))
}

pub(super) fn end(outgoing: &Outgoing) -> Write {
    Write::DeliveryChanged(Box::new(ended(outgoing.clone())))
}

/// A delivery after a failed attempt, which waits for the next one.
pub(super) fn wait(outgoing: &Outgoing, until: Timestamp) -> Write {
    let mut outgoing = outgoing.clone();
    outgoing.version += 1;
    outgoing.delivery.attempts += 1;
    outgoing.delivery.next_attempt_at = Some(until);
    Write::DeliveryChanged(Box::new(outgoing))
}

pub(super) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(&scope(), "POST", "/api/v1/payments", text)
}

pub(super) fn token(nth: u8) -> ClaimToken {
    ClaimToken::new([nth; 16])
}

/// A response with a number, which makes it different from others.
pub(super) fn response(number: i64) -> RawJson {
    RawJson::of(&serde_json::json!({"id": "wh_1", "number": number})).unwrap()
}

/// A change that stores the response with this number under a key.
pub(super) fn keeping(text: &str, number: i64, created_at: Timestamp, claim: ClaimEnd) -> Change {
    let keep = NewResponse { key: key(text), fingerprint: "v2:1".into(), created_at, body: response(number), claim };
    Change { idempotency: Some(keep), ..Change::default() }
}

pub(super) fn claiming(text: &str, nth: u8, claimed_at: Timestamp, until: Timestamp) -> Write {
    let claim = KeyClaim { token: token(nth), fingerprint: "v2:1".into(), claimed_at, until };
    Write::KeyClaimed(Box::new((key(text), claim)))
}

/// A lease of a server for ten seconds.
pub(super) fn lease(_server: u8, millis: i64) -> Lease {
    Lease::new(at(millis), 10)
}

pub(super) fn page_of(page: u32, limit: u32) -> PageRequest {
    PageRequest::from_query(Some(&page.to_string()), Some(&limit.to_string())).unwrap()
}

/// A page of payments, of one public status or of all.
pub(super) async fn payment_page(store: &Arc<Store>, status: Option<&Status>, page: PageRequest) -> Page<Payment> {
    parsed(store.payments(&scope(), status, page).await.unwrap())
}

pub(super) fn parsed(page: Page<PaymentJson>) -> Page<Payment> {
    let Page { items, total, page, limit, unknown } = page;
    let items = items.iter().map(|json| serde_json::from_str(&json.0).unwrap()).collect();
    Page { items, total, page, limit, unknown }
}

/// The ids of a page of payments of every status.
pub(super) async fn payments(store: &Arc<Store>, page: u32, limit: u32) -> Page<PaymentId> {
    let Page { items, total, page, limit, unknown } = payment_page(store, None, page_of(page, limit)).await;
    Page { items: items.into_iter().map(|payment| payment.id).collect(), total, page, limit, unknown }
}

proptest! {
    /// Otherwise random changes would compare records that no server writes.
    #[test]
    fn the_changes_of_a_payment_break_no_invariant(
        steps in prop::collection::vec((0..10_u8, 0..1_500_i64, any::<bool>()), 0..30),
    ) {
        let mut session = new_payment(1, at(0)).session;
        for (step, time, choice) in steps {
            let write = match step {
                8 => Some(reviewed(&session, choice)),
                9 => Some(asked(&session, choice.then_some(time))),
                cause => try_moved(&session, cause_of(cause, 1, time), at(time * 100)),
            };
            session = write.map_or(session, |write| write.session);
            prop_assert_eq!(faults(&session), Vec::<&str>::new(), "{:?}", session);
        }
    }
}
