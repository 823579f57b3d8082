//! What always holds of a payment, whatever engine stores it.

use payments_core::{Environment, EventKind, LedgerAccount, Payment, RawStatus};

use super::Session;

/// What is wrong with a payment by itself: the table of states and the arithmetic.
pub(crate) fn faults(session: &Session) -> Vec<&'static str> {
    let payment = &session.payment;
    let is_test = payment.environment == Environment::Test;
    let is_refunded = payment.raw_status == RawStatus::Refunded;
    let was_paid = is_refunded || payment.raw_status == RawStatus::Paid;
    let rules = [
        (!matches!(payment.raw_status, RawStatus::Other(_)), "is in a state that the table does not have"),
        (payment.status == payment.raw_status.public(), "its public status is not that of its internal one"),
        (
            payment.amount.checked_sub(payment.platform_fee_amount) == Some(payment.net_amount),
            "amount is not fee and net",
        ),
        (payment.platform_fee_amount == payment.fee_percentage.fee_on(payment.amount), "its fee is not its rate's"),
        (payment.paid_at.is_some() == was_paid, "paid_at and its state do not agree"),
        (payment.refund.is_some() == is_refunded, "its refund and its state do not agree"),
        (
            payment
                .refund
                .as_ref()
                .is_none_or(|refund| refund.amount == payment.amount && refund.currency == payment.currency),
            "its refund is not of the whole payment",
        ),
        (payment.is_simulated == is_test, "isSimulated and its environment do not agree"),
        (!is_test || !is_refunded, "is a test payment and was refunded"),
        (!is_test || session.attempt.is_none(), "is a test payment and was sent to a gateway"),
        (payment.raw_status != RawStatus::Processing || session.attempt.is_some(), "is processing and at no gateway"),
        (session.version > 0 || payment.raw_status == RawStatus::Created, "has moved without a change"),
        (payment.updated_at >= payment.created_at, "changed before it was made"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// The events that a payment has exactly once, and whether its state comes to them.
pub(crate) fn expected_events(payment: &Payment) -> [(EventKind, bool); 3] {
    [
        (EventKind::PaymentCreated, true),
        (EventKind::PaymentCompleted, payment.paid_at.is_some()),
        (EventKind::PaymentRefunded, payment.raw_status == RawStatus::Refunded),
    ]
}

/// What a payment's changes posted, as its state has it: oldest first, in minor units.
pub(crate) fn expected_postings(payment: &Payment) -> Vec<Vec<(LedgerAccount, i128)>> {
    let amount = i128::from(payment.amount.as_minor());
    let completion = [
        (LedgerAccount::GatewayClearing, -amount),
        (LedgerAccount::Merchant, i128::from(payment.net_amount.as_minor())),
        (LedgerAccount::PlatformFee, i128::from(payment.platform_fee_amount.as_minor())),
    ];
    let directions: &[i128] = match payment.raw_status {
        RawStatus::Paid => &[1],
        RawStatus::Refunded => &[1, -1],
        _ => &[],
    };
    let posted = directions.iter().map(|direction| completion.map(|(account, minor)| (account, direction * minor)));
    posted.map(Vec::from).collect()
}
