//! Invariants of every payment, wherever it is stored.

use payments_core::{
    Amount, Booking, BookingKind, Environment, EventKind, MAX_REFUNDS, Payment, RawStatus, Refund, RefundStatus,
};

use super::{GatewayCost, MAX_ATTEMPTS, MAX_SETTLED, PaymentRow, Session, dispute::dispute_faults};

/// The invariants that a session violates, checked without any other record.
pub fn faults(session: &Session) -> Vec<&'static str> {
    let payment = &session.payment;
    let is_test = payment.environment == Environment::Test;
    let is_refunded = payment.raw_status == RawStatus::Refunded;
    let was_paid = payment.was_paid();
    let rules = [
        (!matches!(payment.raw_status, RawStatus::Other(_)), "is in an unknown state"),
        (payment.status == payment.raw_status.public(), "its public status does not match its internal status"),
        (
            payment.amount.checked_sub(payment.platform_fee_amount) == Some(payment.net_amount),
            "amount is not fee + net",
        ),
        (payment.platform_fee_amount == payment.fee_percentage.fee_on(payment.amount), "fee does not match rate"),
        (payment.paid_at.is_some() == was_paid, "paid_at does not match its state"),
        (was_paid || payment.refunds.is_empty(), "has a refund and was not paid"),
        (
            (was_paid && payment.amount_refunded() == payment.amount) == is_refunded,
            "the sum of its refunds does not match its state",
        ),
        (payment.amount_refunded() <= payment.amount, "its refunds sum to more than its amount"),
        (
            payment.disputes.iter().any(|it| it.fee_returned.is_some()) || fee_returned_is_in_proportion(payment),
            "its refunds return another part of the fee than of the amount",
        ),
        (fee_returned(payment) <= payment.platform_fee_amount, "its refunds and disputes return more than its fee"),
        (payment.refunds.len() <= MAX_REFUNDS, "has more refunds than a payment may have"),
        (
            payment.refunds.iter().all(|it| it.amount > Amount::ZERO && it.currency == payment.currency),
            "has a refund of nothing, or in another currency",
        ),
        (
            session.pending_refund.as_ref().is_none_or(|it| {
                payment.raw_status == RawStatus::Paid && it.amount.unwrap_or_default() <= payment.amount_not_refunded()
            }),
            "has a pending refund of more than is left",
        ),
        (payment.is_simulated == is_test, "isSimulated does not match its environment"),
        (!is_test || !is_refunded, "is a refunded test payment"),
        (!is_test || session.attempt.is_none(), "is a test payment with a gateway attempt"),
        (payment.raw_status != RawStatus::Processing || session.attempt.is_some(), "is processing without an attempt"),
        (!is_test || session.ended_attempts.is_empty(), "is a test payment with an ended gateway attempt"),
        (session.ended_attempts.len() < MAX_ATTEMPTS, "has more gateway attempts than a payment may have"),
        (
            payment.raw_status != RawStatus::Pending || session.attempt.is_none() || session.needs_manual_review(),
            "has a gateway attempt that can be paid after it failed",
        ),
        (
            session.ended_attempts.iter().all(|it| session.attempt.as_ref() != Some(&it.attempt)),
            "has a gateway attempt that ended and can be paid",
        ),
        (
            session.check_at.is_some() || session.needs_manual_review() || session.next_late_check().is_none(),
            "does not ask again about an ended gateway attempt",
        ),
        (
            session.refund_check_at.is_some() || payment.refunds.iter().all(|it| it.status != RefundStatus::Pending),
            "does not ask again about a refund that the gateway has accepted",
        ),
        (
            session.check_at.is_some() || session.needs_manual_review() || session.refund_check_at.is_none(),
            "does not ask again about its refunds",
        ),
        (was_paid || session.settled.is_empty(), "has a settled row and was not paid"),
        (session.settled.len() <= MAX_SETTLED, "has more settled rows than a payment may have"),
        (
            session
                .settled
                .iter()
                .enumerate()
                .all(|(nth, it)| session.settled[..nth].iter().all(|other| other.row != it.row)),
            "has a settled row twice",
        ),
        (session.version > 0 || payment.raw_status == RawStatus::Created, "changed its state at version 0"),
        (payment.updated_at >= payment.created_at, "updated_at is before created_at"),
    ];
    let of_disputes = dispute_faults(session);
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).chain(of_disputes).collect()
}

/// The part of the fee that the refunds that stand and the disputes return.
fn fee_returned(payment: &Payment) -> Amount {
    let refunds = payment.refunds.iter().filter(|refund| refund.stands()).map(|refund| refund.fee_returned);
    let fees = refunds.chain(payment.disputes.iter().map(|dispute| dispute.fee_returned));
    Amount::from_minor(fees.map(|fee| fee.unwrap_or_default().as_minor()).fold(0, u64::saturating_add))
}

/// The refunds that stand return the same part of the fee as of the amount, but for the rounding of refunds that failed.
fn fee_returned_is_in_proportion(payment: &Payment) -> bool {
    let returned = |refund: &Refund| u128::from(refund.fee_returned.unwrap_or_default().as_minor());
    let returned: u128 = payment.refunds.iter().filter(|refund| refund.stands()).map(returned).sum();
    let (fee, amount) = (u128::from(payment.platform_fee_amount.as_minor()), u128::from(payment.amount.as_minor()));
    let refunded = u128::from(payment.amount_refunded().as_minor());
    let failed = payment.refunds.iter().filter(|refund| !refund.stands()).count() as u128;
    (fee * refunded).abs_diff(returned * amount) <= amount * (1 + failed)
}

/// How a payment's events differ in number from what its state requires.
pub fn event_count_faults(payment: &Payment, count: impl Fn(&EventKind) -> usize) -> Vec<String> {
    let (refunds, failed) = (payment.refunds.len(), payment.refunds.iter().filter(|refund| !refund.stands()).count());
    let disputes = payment.disputes.len();
    let closed = payment.disputes.iter().filter(|dispute| dispute.status.is_closed()).count();
    let whole = count(&EventKind::PaymentRefunded);
    let expected = [
        (EventKind::PaymentCreated, 1),
        (EventKind::PaymentCompleted, usize::from(payment.paid_at.is_some())),
        (EventKind::PaymentPartiallyRefunded, refunds.saturating_sub(whole)),
        // A refund of the whole may have failed, and another one followed.
        (EventKind::PaymentRefunded, whole.clamp(usize::from(payment.raw_status == RawStatus::Refunded), refunds)),
        (EventKind::PaymentRefundFailed, failed),
        // A warning may have become a chargeback, and the end of a dispute may have been reversed.
        (EventKind::PaymentDisputed, count(&EventKind::PaymentDisputed).clamp(disputes, 2 * disputes)),
        (
            EventKind::PaymentDisputeClosed,
            if closed == 0 { 0 } else { count(&EventKind::PaymentDisputeClosed).max(closed) },
        ),
    ];
    let differs = expected.into_iter().map(|(kind, expected)| (count(&kind), expected, kind));
    let differs = differs.filter(|(found, expected, _)| found != expected);
    differs
        .map(|(found, expected, kind)| format!("has {found} events {kind}, and its state comes to {expected}"))
        .collect()
}

/// The bookings that a session requires, in the order of their kinds and amounts, with those of disputes summed.
pub fn expected_bookings(session: &Session) -> Vec<Booking> {
    let payment = &session.payment;
    let paid = payment.paid_at.map(|_| Booking::new(BookingKind::Paid, payment.amount, payment.platform_fee_amount));
    let of_refund = |refund: &Refund| {
        let fee = refund.fee_returned.unwrap_or_default();
        let is_sent = refund.requires_manual_settlement && refund.status == RefundStatus::Succeeded;
        let booked = Booking::new(BookingKind::Refunded, refund.amount, fee);
        let sent = is_sent.then(|| Booking::new(BookingKind::RefundSent, refund.amount, Amount::ZERO));
        let failed = (!refund.stands()).then(|| Booking::new(BookingKind::RefundFailed, refund.amount, fee));
        [Some(booked), sent, failed].into_iter().flatten()
    };
    let of_disputes = payment.disputes.iter().flat_map(|it| {
        let withdrawn = Booking::new(BookingKind::DisputeWithdrawn, it.withdrawn, it.fee_returned.unwrap_or_default());
        [withdrawn, Booking::new(BookingKind::DisputeReinstated, it.reinstated, Amount::ZERO)]
    });
    let costs = session.costs.iter().map(GatewayCost::booking);
    let settled = session.settled.iter().filter_map(PaymentRow::booking);
    let refunds = payment.refunds.iter().flat_map(of_refund);
    with_disputes_summed(paid.into_iter().chain(refunds).chain(of_disputes).chain(costs).chain(settled))
}

/// Bookings in order, those of disputes as one withdrawal with the fee that it returned in the end, and one reinstatement: a
/// payment's state has only their sums.
pub fn with_disputes_summed(bookings: impl Iterator<Item = Booking>) -> Vec<Booking> {
    let of_kind = |kind| Booking { kind, minor: 0, fee_minor: 0 };
    let mut withdrawn = of_kind(BookingKind::DisputeWithdrawn);
    let mut reinstated = of_kind(BookingKind::DisputeReinstated);
    let mut summed: Vec<Booking> = bookings
        .filter(|booking| {
            match booking.kind {
                BookingKind::DisputeWithdrawn => {
                    withdrawn.minor += booking.minor;
                    withdrawn.fee_minor += booking.fee_minor;
                }
                BookingKind::DisputeReinstated => {
                    reinstated.minor += booking.minor;
                    withdrawn.fee_minor -= booking.fee_minor;
                }
                _ => return true,
            }
            false
        })
        .collect();
    summed.extend([withdrawn, reinstated].into_iter().filter(|sum| (sum.minor, sum.fee_minor) != (0, 0)));
    summed.sort();
    summed
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, NewRefund, PaymentMethod, RANDOM_BYTES, RefundId, Slot};

    use super::*;
    use crate::domain::{
        Session,
        attempts::tests::pending_refund,
        samples::{at, attempt, session},
    };

    fn after(session: &Session, cause: Cause) -> Session {
        let decided = payments_core::decide(&session.payment, cause, at(9)).unwrap();
        Session { payment: decided.payment, ..session.next() }
    }

    fn refund_of(minor: u64) -> Cause {
        let amount = Amount::from_minor(minor);
        let id = RefundId::new(Slot::FIRST, at(9), [2; RANDOM_BYTES]);
        Cause::PartRefunded { refund: NewRefund::made(id), amount }
    }

    /// A payment of 100.00 by wallet, of which 40.00 were sent back.
    fn paid() -> Session {
        let mut sent = after(&session(), Cause::SentToGateway(PaymentMethod::Mfs));
        sent.attempt = Some(attempt("a"));
        after(&after(&sent, Cause::GatewayConfirmed), refund_of(4_000))
    }

    /// The same payment, with the rest sent back too.
    fn refunded() -> Session {
        after(&paid(), Cause::Refunded(NewRefund::made(RefundId::new(Slot::FIRST, at(9), [3; RANDOM_BYTES]))))
    }

    fn change_refund(session: &mut Session, field: &str, value: serde_json::Value) {
        let mut refunds = serde_json::to_value(&*session.payment.refunds).unwrap();
        refunds[0][field] = value;
        session.payment.refunds = serde_json::from_value(refunds).unwrap();
    }

    #[test]
    fn payments_that_follow_the_rules_have_no_faults() {
        let new = session();
        let sent = Session { attempt: Some(attempt("a")), ..after(&new, Cause::SentToGateway(PaymentMethod::Mfs)) };
        let mut again = after(&sent, Cause::AttemptFailed);
        again.end_attempt(at(9));
        again.keep_asking();
        for (nth, sound) in [new, sent, paid(), refunded(), again].iter().enumerate() {
            assert_eq!(faults(sound), Vec::<&str>::new(), "{nth}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        type Case<'c> = (&'c str, &'c dyn Fn(&mut Session));
        let pending = |minor| pending_refund(Some(Amount::from_minor(minor)));
        let ended: fn(&mut Session, &str) = |it, invoice| {
            let present = it.attempt.replace(attempt(invoice));
            it.end_attempt(at(9));
            it.attempt = present;
        };
        let cases: [Case<'_>; 20] = [
            ("is in an unknown state", &|it| it.payment.raw_status = RawStatus::Other("lost".into())),
            ("its public status does not match", &|it| it.payment.status = payments_core::Status::Failed),
            ("amount is not fee + net", &|it| it.payment.net_amount = Amount::ZERO),
            ("fee does not match rate", &|it| it.payment.platform_fee_amount = Amount::ZERO),
            ("paid_at does not match its state", &|it| it.payment.paid_at = None),
            ("has a refund and was not paid", &|it| it.payment.raw_status = RawStatus::Failed),
            ("the sum of its refunds does not match", &|it| change_refund(it, "amount", 100.into())),
            ("its refunds sum to more than its amount", &|it| change_refund(it, "amount", 101.into())),
            ("return another part of the fee", &|it| change_refund(it, "feeReturned", 3.into())),
            ("has a refund of nothing", &|it| change_refund(it, "amount", 0.into())),
            ("or in another currency", &|it| change_refund(it, "currency", "USD".into())),
            ("has a pending refund of more than is left", &|it| it.pending_refund = Some(pending(6_001))),
            ("isSimulated does not match", &|it| it.payment.is_simulated = true),
            ("has more gateway attempts", &|it| (0..MAX_ATTEMPTS).for_each(|nth| ended(it, &nth.to_string()))),
            ("that ended and can be paid", &|it| ended(it, "a")),
            ("does not ask again", &|it| {
                ended(it, "b");
                it.check_at = None;
            }),
            ("changed its state at version 0", &|it| it.version = 0),
            ("about a refund that the gateway has accepted", &|it| change_refund(it, "status", "pending".into())),
            ("does not ask again about its refunds", &|it| it.refund_check_at = Some(at(9))),
            ("updated_at is before created_at", &|it| it.payment.created_at = at(10)),
        ];
        for (fault, break_it) in cases {
            let mut broken = paid();
            break_it(&mut broken);
            let found = faults(&broken);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
        let the_rest_is_pending = Session { pending_refund: Some(pending(6_000)), ..paid() };
        assert_eq!(faults(&the_rest_is_pending), Vec::<&str>::new());
        let of_nothing = Session { pending_refund: Some(pending(0)), ..session() };
        assert_eq!(faults(&of_nothing), ["has a pending refund of more than is left"]);
        let without_attempt = after(&session(), Cause::SentToGateway(PaymentMethod::Mfs));
        assert_eq!(faults(&without_attempt), ["is processing without an attempt"]);
        let mut simulated = session();
        (simulated.payment.environment, simulated.payment.is_simulated) = (Environment::Test, true);
        assert_eq!(faults(&simulated), Vec::<&str>::new());
        simulated.payment.raw_status = RawStatus::Refunded;
        assert!(faults(&simulated).contains(&"is a refunded test payment"));
    }

    #[test]
    fn the_events_and_bookings_of_a_payment_follow_from_its_state() {
        let events = |it: &Session, counts: [usize; 5]| {
            let kinds = [
                EventKind::PaymentCreated,
                EventKind::PaymentCompleted,
                EventKind::PaymentPartiallyRefunded,
                EventKind::PaymentRefunded,
                EventKind::PaymentRefundFailed,
            ];
            let count = |kind: &EventKind| kinds.iter().position(|it| it == kind).map_or(0, |nth| counts[nth]);
            event_count_faults(&it.payment, count).join("; ")
        };
        let booking = |kind, minor, fee_minor| Booking { kind, minor, fee_minor };
        let (completed, part) = (booking(BookingKind::Paid, 10_000, 250), booking(BookingKind::Refunded, 4_000, 100));
        let rest = booking(BookingKind::Refunded, 6_000, 150);
        let fail = |it: &Session| {
            let id = it.payment.refund().unwrap().id.clone();
            after(it, Cause::RefundFailed { id, reason: None })
        };
        let failed = booking(BookingKind::RefundFailed, 6_000, 150);
        for (session, counts, bookings) in [
            (session(), [1, 0, 0, 0, 0], vec![]),
            (paid(), [1, 1, 1, 0, 0], vec![completed, part]),
            (refunded(), [1, 1, 1, 1, 0], vec![completed, part, rest]),
            (fail(&refunded()), [1, 1, 1, 1, 1], vec![completed, part, rest, failed]),
        ] {
            assert_eq!((events(&session, counts), expected_bookings(&session)), (String::new(), bookings));
        }
        assert_eq!(events(&refunded(), [1, 1, 2, 0, 0]), "has 0 events payment.refunded, and its state comes to 1");
        assert_eq!(events(&session(), [0, 0, 0, 0, 0]), "has 0 events payment.created, and its state comes to 1");
    }
}
