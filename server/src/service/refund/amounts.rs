//! What a refund asks a gateway for, and what the gateway has given back.

use payments_core::Amount;

use crate::{
    domain::{PendingRefund, RefundReference, Session},
    gateway::{Gateway, GatewayError, KnownRefund, RefundOutcome},
};

/// The amount of a pending refund: the named one, or all that is not refunded.
pub(super) fn amount_asked(session: &Session, pending: &PendingRefund) -> Amount {
    pending.amount.unwrap_or(session.payment.amount_not_refunded())
}

/// The amount that the gateway is asked to refund; `None` for the whole payment, even if the request named its amount.
pub(super) fn amount_at_gateway(session: &Session, pending: &PendingRefund) -> Option<Amount> {
    Some(amount_asked(session, pending)).filter(|amount| *amount != session.payment.amount)
}

/// The refunds of a payment that its gateway has accepted.
pub fn known_refunds(session: &Session) -> Vec<KnownRefund<'_>> {
    let mut known = Vec::new();
    for RefundReference { refund, reference } in &session.refund_references {
        let refund = session.payment.refunds.iter().find(|it| it.id == *refund);
        known.extend(refund.map(|it| KnownRefund { id: &it.id, reference, amount: it.amount }));
    }
    known
}

/// If the gateway gave back less than it was asked for: the sum of the refunds that it has and the payment lacks.
pub(super) async fn refunded_elsewhere(
    gateway: &dyn Gateway,
    session: &Session,
    pending: &PendingRefund,
    outcome: &RefundOutcome,
) -> Result<Amount, GatewayError> {
    let (RefundOutcome::Made(made), Some(attempt)) = (outcome, &session.attempt) else { return Ok(Amount::ZERO) };
    if made.amount >= amount_asked(session, pending) {
        return Ok(Amount::ZERO);
    }
    let mut reported = gateway.refunds(attempt, &known_refunds(session)).await?;
    reported.retain(|it| it.reference != made.reference);
    Ok(Amount::from_minor(session.refunds_lacked(&reported).map(|it| it.amount.as_minor()).sum()))
}
