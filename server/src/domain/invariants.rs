//! Invariants of every payment, whatever engine stores it.

use payments_core::{Environment, EventKind, LedgerAccount, Payment, RawStatus};

use super::Session;

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
        (payment.refund.is_some() == is_refunded, "its refund does not match its state"),
        (
            payment
                .refund
                .as_ref()
                .is_none_or(|refund| refund.amount == payment.amount && refund.currency == payment.currency),
            "its refund is not for the whole amount",
        ),
        (payment.is_simulated == is_test, "isSimulated does not match its environment"),
        (!is_test || !is_refunded, "is a refunded test payment"),
        (!is_test || session.attempt.is_none(), "is a test payment with a gateway attempt"),
        (payment.raw_status != RawStatus::Processing || session.attempt.is_some(), "is processing without an attempt"),
        (session.version > 0 || payment.raw_status == RawStatus::Created, "changed its state at version 0"),
        (payment.updated_at >= payment.created_at, "updated_at is before created_at"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// Each kind of event, and whether the payment's state requires it. A payment has each required event exactly once.
pub(crate) fn expected_events(payment: &Payment) -> [(EventKind, bool); 3] {
    [
        (EventKind::PaymentCreated, true),
        (EventKind::PaymentCompleted, payment.paid_at.is_some()),
        (EventKind::PaymentRefunded, payment.raw_status == RawStatus::Refunded),
    ]
}

/// The ledger postings that a payment's state requires, one list per change: oldest first, in minor units.
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
