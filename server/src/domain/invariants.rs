//! Invariants of every payment, whatever engine stores it.

use payments_core::{Amount, Environment, EventKind, MAX_REFUNDS, Payment, Posting, RawStatus, ledger};

use super::{MAX_ATTEMPTS, Session};

/// The invariants that a session violates, checked without any other record.
pub(crate) fn faults(session: &Session) -> Vec<&'static str> {
    let payment = &session.payment;
    let is_test = payment.environment == Environment::Test;
    let is_refunded = payment.raw_status == RawStatus::Refunded;
    let was_paid = is_refunded || payment.raw_status == RawStatus::Paid;
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
        (payment.refunds.len() <= MAX_REFUNDS, "has more refunds than a payment may have"),
        (
            payment.refunds.iter().all(|it| it.amount > Amount::ZERO && it.currency == payment.currency),
            "has a refund of nothing, or in another currency",
        ),
        (
            session.pending_refund.as_ref().is_none_or(|it| {
                payment.raw_status == RawStatus::Paid && it.amount.unwrap_or_default() <= payment.amount_left()
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
        (session.version > 0 || payment.raw_status == RawStatus::Created, "changed its state at version 0"),
        (payment.updated_at >= payment.created_at, "updated_at is before created_at"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// Each kind of event, and how many of it the payment's state requires.
pub(crate) fn expected_events(payment: &Payment) -> [(EventKind, usize); 4] {
    let whole = usize::from(payment.raw_status == RawStatus::Refunded);
    [
        (EventKind::PaymentCreated, 1),
        (EventKind::PaymentCompleted, usize::from(payment.paid_at.is_some())),
        (EventKind::PaymentPartiallyRefunded, payment.refunds.len().saturating_sub(whole)),
        (EventKind::PaymentRefunded, whole),
    ]
}

/// The ledger postings that a payment's state requires, one list per change: oldest first, in minor units.
pub(crate) fn expected_postings(payment: &Payment) -> Vec<Vec<Posting>> {
    let completion = payment.paid_at.map(|_| ledger::of_completion(payment));
    let refunds = (0..payment.refunds.len()).map(|nth| ledger::of_refund(payment, nth));
    completion.into_iter().chain(refunds).collect()
}
