//! What happens to a payment, by the API's own rules.

use std::fmt;

use payments_core::{
    Amount, Cause, Currency, Decision, DisputeId, DisputeReport, DisputeStatus, NewRefund, Payment, PaymentMethod,
    RANDOM_BYTES, Refund, RefundId, RefundStatus, Slot, Timestamp,
};

macro_rules! moves {
    ($($name:ident $often:literal $words:literal)+) => {
        /// Something that a customer, a gateway, a bank or the operator does to a payment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Move { $($name),+ }

        /// Each move, and how often it is chosen among those that are possible.
        pub(super) const MOVES: &[(Move, usize)] = &[$((Move::$name, $often)),+];

        /// What happens, after the order's number.
        impl fmt::Display for Move {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $words),+ })
            }
        }
    };
}

moves! {
    GoesToGateway 4 "the customer goes to the gateway"
    AttemptFails 2 "the attempt at the gateway fails"
    Pays 8 "the customer pays"
    PaysLate 3 "the customer's money arrives, although the payment had ended"
    Fails 1 "the payment fails"
    Cancels 1 "the customer cancels at the gateway"
    GoesBack 1 "the customer goes back to the shop"
    Expires 1 "the payment expires"
    PartRefunded 2 "a part is refunded"
    Refunded 1 "the rest is refunded"
    RefundSettled 1 "the refund's money is sent"
    RefundFails 1 "the refund fails"
    Inquiry 1 "the bank asks about the payment"
    Disputed 1 "the customer disputes the payment"
    DisputeReviewed 1 "the bank reviews the dispute"
    DisputeWon 1 "the merchant wins the dispute"
    DisputeLost 1 "the customer wins the dispute"
}

impl Move {
    /// The decisions of the API, in order. None if the payment does not allow the move.
    pub(super) fn decide(self, payment: &Payment, random: [u8; RANDOM_BYTES], now: Timestamp) -> Vec<Decision> {
        if let Some(report) = self.report(payment, DisputeId::new(Slot::FIRST, now, random)) {
            let (mut decisions, mut payment) = (Vec::new(), payment.clone());
            while let Ok(Some(decision)) = payments_core::decide_dispute(&payment, &report, now) {
                payment = decision.payment.clone();
                decisions.push(decision);
            }
            return decisions;
        }
        let last = payment.refunds.iter().rev().find(|refund| refund.status != RefundStatus::Failed);
        let decision = match self {
            Self::RefundSettled => last.and_then(|it| payments_core::settle_refund(payment, &it.id, now).ok()),
            _ => self
                .cause(payment, last, RefundId::new(Slot::FIRST, now, random))
                .and_then(|cause| payments_core::decide(payment, cause, now).ok()),
        };
        decision.into_iter().collect()
    }

    fn cause(self, payment: &Payment, last: Option<&Refund>, id: RefundId) -> Option<Cause> {
        let is_card = payment.currency == Currency::Usd;
        let new = if is_card { NewRefund::accepted(id) } else { NewRefund::by_hand(id) };
        let is_open = payment.raw_status.is_open();
        match self {
            Self::GoesToGateway => {
                Some(Cause::SentToGateway(if is_card { PaymentMethod::Card } else { PaymentMethod::Mfs }))
            }
            Self::AttemptFails => Some(Cause::AttemptFailed),
            Self::Pays => is_open.then_some(Cause::GatewayConfirmed),
            Self::PaysLate => (!is_open).then_some(Cause::GatewayConfirmed),
            Self::Fails => Some(Cause::GatewayFailed),
            Self::Cancels => Some(Cause::GatewayCancelled),
            Self::GoesBack => Some(Cause::CustomerLeft),
            Self::Expires => Some(Cause::SessionEnded),
            Self::PartRefunded => {
                let third = Amount::from_minor(payment.amount_not_refunded().as_minor() / 3);
                new.cause(payment, Some(third)).ok().filter(|_| third > Amount::ZERO)
            }
            Self::Refunded => new.cause(payment, None).ok(),
            Self::RefundFails => last.map(|it| Cause::RefundFailed { id: it.id.clone(), reason: None }),
            _ => None,
        }
    }

    /// The bank's report, if this move is about a dispute.
    fn report(self, payment: &Payment, id: DisputeId) -> Option<DisputeReport> {
        let known = payment.disputes.iter().find(|it| !it.status.is_closed()).map(DisputeReport::of);
        let is_inquiry = known.as_ref().is_some_and(|it| it.status == DisputeStatus::Warning);
        let new = || DisputeReport {
            id,
            amount: payment.amount_left(),
            reason: None,
            status: DisputeStatus::Warning,
            evidence_due_by: None,
            withdrawn: Amount::ZERO,
            reinstated: Amount::ZERO,
            returns_fee: false,
        };
        let chargeback = known.clone().filter(|_| !is_inquiry);
        let (report, status) = match self {
            Self::Inquiry if known.is_none() => (new(), DisputeStatus::Warning),
            Self::Disputed if chargeback.is_none() => (known.unwrap_or_else(new), DisputeStatus::NeedsResponse),
            Self::DisputeReviewed => (chargeback?, DisputeStatus::UnderReview),
            Self::DisputeWon => (known?, DisputeStatus::Won),
            Self::DisputeLost => (chargeback?, DisputeStatus::Lost),
            _ => return None,
        };
        let withdrawn = if self == Self::Disputed { report.amount } else { report.withdrawn };
        let reinstated = if self == Self::DisputeWon { withdrawn } else { report.reinstated };
        Some(DisputeReport { status, withdrawn, reinstated, ..report })
    }
}
