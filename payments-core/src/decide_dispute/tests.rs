use super::*;
use crate::{
    Cause, CreatePayment, CreateRefund, DeveloperId, Environment, ErrorCode, FeeRate, LedgerAccount, Money, NewPayment,
    NewRefund, PaymentId, RANDOM_BYTES, RawStatus, RefundId, SimulateOutcome, Slot, create, decide,
};

fn now() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000).unwrap()
}

fn created(environment: Environment) -> Payment {
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now(), [1; RANDOM_BYTES]),
        developer_id: DeveloperId::new(Slot::FIRST, now(), [2; RANDOM_BYTES]),
        app_id: None,
        environment,
        checkout_url: String::new(),
        fee_rate: FeeRate::from_basis_points(500).unwrap(),
        now: now(),
    };
    let params = CreatePayment::of(Money::paisa(1_000));
    create(params.success_url("https://a.example/ok").cancel_url("https://a.example/no"), new).payment
}

/// A payment of 10.00 with a fee of 0.50.
fn paid() -> Payment {
    decide(&created(Environment::Live), Cause::GatewayConfirmed, now()).unwrap().payment
}

fn minor(minor: u64) -> Amount {
    Amount::from_minor(minor)
}

fn report(status: DisputeStatus, amount: u64, withdrawn: u64, reinstated: u64) -> DisputeReport {
    DisputeReport {
        id: "dsp_1".parse().unwrap(),
        amount: minor(amount),
        reason: Some("fraudulent".into()),
        status,
        evidence_due_by: Some(now().plus_seconds(60)),
        withdrawn: minor(withdrawn),
        reinstated: minor(reinstated),
        returns_fee: false,
    }
}

/// Applies all of a report. Returns the payment after it, and each event and booking.
fn apply(payment: &Payment, report: &DisputeReport) -> (Payment, Vec<String>) {
    let (mut payment, mut steps) = (payment.clone(), Vec::new());
    while let Some(decision) = decide_dispute(&payment, report, now()).unwrap() {
        assert!(decision.payment.updated_at > payment.updated_at);
        payment = decision.payment;
        let booked = decision.booking.map(|it| format!("{:?} {} {}", it.kind, it.minor, it.fee_minor));
        let event = decision.event.map(|it| format!("{it}, {}", payment.dispute().unwrap().status));
        steps.push([booked, event].into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
    (payment, steps)
}

#[test]
fn each_report_is_applied_step_by_step_and_once() {
    use DisputeStatus::{Lost, NeedsResponse, UnderReview, Warning, Won};
    type Case = (DisputeStatus, u64, u64, &'static [&'static str]);
    let histories: [&[Case]; 6] = [
        &[
            (NeedsResponse, 700, 0, &["DisputeWithdrawn 700 0; payment.disputed, needs_response"]),
            (UnderReview, 700, 0, &[""]),
            (NeedsResponse, 700, 0, &[]),
            (NeedsResponse, 0, 0, &[]),
            (Lost, 700, 0, &["payment.dispute_closed, lost"]),
            (UnderReview, 700, 0, &[]),
            (Won, 700, 0, &[]),
            (Won, 700, 700, &["DisputeReinstated 700 0; payment.dispute_closed, won"]),
            (Lost, 700, 0, &[]),
            (NeedsResponse, 1_400, 700, &["DisputeWithdrawn 700 0"]),
        ],
        &[
            (Warning, 0, 0, &["payment.disputed, warning"]),
            (UnderReview, 700, 0, &["DisputeWithdrawn 700 0; payment.disputed, under_review"]),
            (Warning, 0, 0, &[]),
            (Won, 700, 700, &["DisputeReinstated 700 0; payment.dispute_closed, won"]),
        ],
        &[
            (Warning, 0, 0, &["payment.disputed, warning"]),
            (Won, 0, 0, &["payment.dispute_closed, won"]),
            (Warning, 0, 0, &[]),
        ],
        &[
            (Warning, 0, 0, &["payment.disputed, warning"]),
            (Lost, 0, 0, &["payment.disputed, under_review", "payment.dispute_closed, lost"]),
        ],
        // All events before this one were lost.
        &[(
            Won,
            700,
            600,
            &[
                "DisputeWithdrawn 700 0; payment.disputed, under_review",
                "DisputeReinstated 600 0; payment.dispute_closed, won",
            ],
        )],
        &[
            (
                Won,
                700,
                700,
                &[
                    "DisputeWithdrawn 700 0; payment.disputed, under_review",
                    "DisputeReinstated 700 0; payment.dispute_closed, won",
                ],
            ),
            (Lost, 1_400, 700, &["DisputeWithdrawn 700 0; payment.dispute_closed, lost"]),
            (Won, 1_400, 1_400, &["DisputeReinstated 700 0; payment.dispute_closed, won"]),
        ],
    ];
    for (nth, history) in histories.into_iter().enumerate() {
        let mut payment = paid();
        for (status, withdrawn, reinstated, expected) in history {
            let report = report(status.clone(), 700, *withdrawn, *reinstated);
            let (after, steps) = apply(&payment, &report);
            assert_eq!(steps, *expected, "history {nth}: {report:?}");
            assert_eq!(after.raw_status, RawStatus::Paid);
            let dispute = after.dispute().unwrap();
            assert_eq!(dispute.closed_at.is_some(), dispute.status.is_closed());
            payment = after;
        }
    }
}

#[test]
fn a_report_may_change_the_amount_the_reason_and_the_date_for_evidence_while_the_dispute_is_open() {
    let open = apply(&paid(), &report(DisputeStatus::Warning, 700, 0, 0)).0;
    let changed = DisputeReport { reason: None, evidence_due_by: None, ..report(DisputeStatus::Warning, 500, 0, 0) };
    let (after, steps) = apply(&open, &changed);
    let dispute = after.dispute().unwrap();
    assert_eq!((dispute.amount, &dispute.reason, dispute.evidence_due_by), (minor(500), &None, None));
    assert_eq!((steps, DisputeReport::of(dispute)), (vec![String::new()], changed));
    let charged = apply(&after, &report(DisputeStatus::NeedsResponse, 500, 500, 0)).0;
    let older = DisputeReport { reason: None, ..report(DisputeStatus::NeedsResponse, 400, 0, 0) };
    assert_eq!(apply(&charged, &older).0, charged);
    let closed = apply(&after, &report(DisputeStatus::Won, 500, 0, 0)).0;
    assert_eq!(apply(&closed, &report(DisputeStatus::Won, 700, 0, 0)).0, closed);
}

#[test]
fn a_refunded_payment_and_a_simulated_one_can_be_disputed_and_one_that_was_never_paid_cannot() {
    let chargeback = report(DisputeStatus::NeedsResponse, 1_000, 1_000, 0);
    let refund = Cause::Refunded(NewRefund::made(RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES])));
    let refunded = decide(&paid(), refund, now()).unwrap().payment;
    let simulated = Cause::Simulated(SimulateOutcome::Completed);
    let simulated = decide(&created(Environment::Test), simulated, now()).unwrap().payment;
    for payment in [refunded, simulated] {
        let (after, steps) = apply(&payment, &chargeback);
        assert_eq!(steps, ["DisputeWithdrawn 1000 0; payment.disputed, needs_response"]);
        assert_eq!(after.raw_status, payment.raw_status);
    }
    let refusal = decide_dispute(&created(Environment::Live), &chargeback, now()).unwrap_err();
    assert_eq!(refusal.to_string(), "a payment that is created cannot be disputed; only one that was paid can");
}

#[test]
fn a_report_that_contradicts_itself_or_the_payment_is_refused() {
    let open = DisputeStatus::NeedsResponse;
    for (status, amount, withdrawn, reinstated) in [
        (open.clone(), 0, 0, 0),
        (open.clone(), 1_001, 0, 0),
        (open.clone(), 700, 701, 0),
        (open.clone(), 700, 100, 101),
        (DisputeStatus::Other("lost_in_the_post".into()), 700, 0, 0),
    ] {
        let refused = decide_dispute(&paid(), &report(status, amount, withdrawn, reinstated), now());
        assert_eq!(refused, Err(Refusal::DisputeContradicts), "{amount} {withdrawn} {reinstated}");
    }
    let nth = |nth: usize| DisputeReport {
        id: format!("dsp_{nth}").parse().unwrap(),
        ..report(DisputeStatus::Warning, 700, 0, 0)
    };
    let full = (0..MAX_DISPUTES).fold(paid(), |payment, it| apply(&payment, &nth(it)).0);
    assert_eq!(decide_dispute(&full, &nth(MAX_DISPUTES), now()), Err(Refusal::TooManyDisputes));
    assert_eq!(decide_dispute(&full, &nth(0), now()), Ok(None));
}

#[test]
fn an_open_or_lost_dispute_is_not_refunded_and_a_warning_or_a_win_holds_nothing() {
    use DisputeStatus::{Lost, NeedsResponse, UnderReview, Warning, Won};
    for (status, withdrawn, reinstated, left) in [
        (Warning, 0, 0, 1_000),
        (NeedsResponse, 0, 0, 300),
        (UnderReview, 700, 700, 300),
        (Lost, 700, 0, 300),
        (Lost, 700, 100, 400),
        (Lost, 0, 0, 1_000),
        (Won, 700, 700, 1_000),
        (Won, 700, 0, 300),
    ] {
        let payment = apply(&paid(), &report(status.clone(), 700, withdrawn, reinstated)).0;
        assert_eq!(payment.amount_left(), minor(left), "{status} {withdrawn} {reinstated}");
        assert_eq!(payment.amount_disputed(), minor(1_000 - left));
    }
}

#[test]
fn a_refund_beside_a_lost_dispute_leaves_the_payment_paid() {
    let id = |nth| NewRefund::made(RefundId::new(Slot::FIRST, now(), [nth; RANDOM_BYTES]));
    let lost = apply(&paid(), &report(DisputeStatus::Lost, 700, 700, 0)).0;
    let refusal = CreateRefund::part(minor(301)).cause(&lost, id(1)).unwrap_err();
    assert_eq!(refusal.to_string(), "disputes hold or took 7 of this payment, so 3 is left to refund");
    assert_eq!(refusal.code(), ErrorCode::RefundAmountTooLarge);
    for params in [CreateRefund::rest(), CreateRefund::part(minor(300))] {
        let rest = decide(&lost, params.cause(&lost, id(1)).unwrap(), now()).unwrap();
        assert_eq!(rest.event, Some(EventKind::PaymentPartiallyRefunded));
        assert_eq!((rest.payment.raw_status.clone(), rest.payment.amount_left()), (RawStatus::Paid, minor(0)));
        assert_eq!(rest.booking, Some(Booking::new(BookingKind::Refunded, minor(300), minor(15))));
        for params in [CreateRefund::rest(), CreateRefund::part(minor(1))] {
            let refusal = params.cause(&rest.payment, id(2)).unwrap_err();
            assert_eq!(refusal.code(), ErrorCode::PaymentDisputed, "{refusal}");
        }
        // The money came back, so the rest can be refunded.
        let won = apply(&rest.payment, &report(DisputeStatus::Won, 700, 700, 700)).0;
        let whole = decide(&won, CreateRefund::rest().cause(&won, id(2)).unwrap(), now()).unwrap();
        assert_eq!((whole.payment.raw_status, whole.event), (RawStatus::Refunded, Some(EventKind::PaymentRefunded)));
    }
}

#[test]
fn a_refund_that_was_made_counts_even_if_a_dispute_opened_meanwhile() {
    let disputed = apply(&paid(), &report(DisputeStatus::NeedsResponse, 1_000, 1_000, 0)).0;
    for (amount, status) in [(None, RawStatus::Refunded), (Some(minor(400)), RawStatus::Paid)] {
        let made = NewRefund::made(RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES]));
        let after = decide(&disputed, made.cause(&disputed, amount).unwrap(), now()).unwrap().payment;
        assert_eq!((after.raw_status, after.refunds[0].amount), (status, amount.unwrap_or(minor(1_000))));
        assert_eq!(after.disputes, disputed.disputes);
    }
}

#[test]
fn a_dispute_that_returns_fees_returns_its_part_and_takes_back_exactly_that() {
    let with_fee = |status, withdrawn, reinstated| DisputeReport {
        returns_fee: true,
        ..report(status, 333, withdrawn, reinstated)
    };
    let (lost, steps) = apply(&paid(), &with_fee(DisputeStatus::NeedsResponse, 333, 0));
    assert_eq!(steps, ["DisputeWithdrawn 333 17; payment.disputed, needs_response"]);
    assert_eq!(lost.dispute().unwrap().fee_returned, Some(minor(17)));
    let (part, steps) = apply(&lost, &with_fee(DisputeStatus::NeedsResponse, 333, 100));
    assert_eq!(
        (steps, part.dispute().unwrap().fee_returned),
        (vec!["DisputeReinstated 100 5".into()], Some(minor(12)))
    );
    let (won, steps) = apply(&part, &with_fee(DisputeStatus::Won, 333, 333));
    assert_eq!(steps, ["DisputeReinstated 233 12; payment.dispute_closed, won"]);
    assert_eq!(won.dispute().unwrap().fee_returned, Some(minor(0)));
    // A refund of the rest returns the rest of the fee.
    let made = NewRefund::made(RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES]));
    let rest = CreateRefund::rest().cause(&lost, made).unwrap();
    let booked = decide(&lost, rest, now()).unwrap().booking.unwrap();
    assert_eq!((booked.minor, booked.fee_minor), (667, 33));
    assert_eq!(booked.change_of(LedgerAccount::Merchant), -634);
}

#[test]
fn a_disputed_payment_serializes_its_disputes_and_the_last_one() {
    let second = DisputeReport { id: "dsp_2".parse().unwrap(), ..report(DisputeStatus::Warning, 300, 0, 0) };
    let payment = apply(&apply(&paid(), &report(DisputeStatus::Lost, 700, 700, 0)).0, &second).0;
    let json = serde_json::to_value(&payment).unwrap();
    assert_eq!(json["dispute"], json["disputes"][1]);
    let mut names: Vec<_> = json["disputes"][0].as_object().unwrap().keys().cloned().collect();
    names.sort_unstable();
    let mut expected = ["id", "amount", "currency", "reason", "status", "evidenceDueBy", "amountWithdrawn"].to_vec();
    expected.extend(["amountReinstated", "openedAt", "closedAt"]);
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(serde_json::from_value::<Payment>(json).unwrap(), payment);
    let json = serde_json::to_value(paid()).unwrap();
    assert!(json.get("dispute").is_none() && json.get("disputes").is_none());
}
