//! Disputes as a gateway reports them, what the server keeps of a dispute beside its public fields, and the invariants of a
//! payment's disputes.

use payments_core::{
    Amount, Currency, Dispute, DisputeId, DisputeReport, DisputeStatus, Environment, MAX_DISPUTES, Payment, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::Session;

/// How many movements of money a person may record for a dispute.
pub const MAX_DISPUTE_MOVES: usize = 20;

/// The name of a dispute at its gateway, and the movements of money that a person recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDispute {
    pub dispute: DisputeId,
    /// The gateway's or the operator's own name of it. A payment has each name once.
    pub reference: String,
    /// Whether the gateway reports it. Otherwise a person records what happens to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reported: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<DisputeMove>,
}

/// A movement of money for a dispute, as a person recorded it. A dispute has each reference once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisputeMove {
    pub reference: String,
    pub amount: Amount,
    /// Whether the money was reinstated. Otherwise it was withdrawn.
    pub is_reinstated: bool,
}

/// A dispute as the gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayDispute {
    /// The gateway's id.
    pub reference: String,
    /// The gateway's id of the disputed transaction.
    pub transaction: Option<String>,
    pub amount: Amount,
    /// The currency of all its amounts. `None` if it is not known, or not one.
    pub currency: Option<Currency>,
    pub reason: Option<String>,
    pub status: DisputeStatus,
    pub evidence_due_by: Option<Timestamp>,
    pub withdrawn: Amount,
    pub reinstated: Amount,
}

impl GatewayDispute {
    /// Why it is no dispute of the money that paid a payment. A customer may have paid twice, and only one of the transactions
    /// is booked.
    pub fn contradiction(&self, session: &Session) -> Option<String> {
        let currency = session.payment.currency;
        let paid_by = session.attempt.as_ref().and_then(|attempt| attempt.transaction.as_ref());
        if self.transaction.is_none() || self.transaction.as_ref() != paid_by {
            return Some("it is about another transaction than the one that paid".to_owned());
        }
        (self.currency != Some(currency)).then(|| format!("its amounts are not in {currency}"))
    }

    /// Its state, as a report of the payment's dispute `id`.
    pub fn report(&self, id: DisputeId, returns_fee: bool) -> DisputeReport {
        DisputeReport {
            id,
            amount: self.amount,
            reason: self.reason.clone(),
            status: self.status.clone(),
            evidence_due_by: self.evidence_due_by,
            withdrawn: self.withdrawn,
            reinstated: self.reinstated,
            returns_fee,
        }
    }
}

impl Session {
    /// The payment's id of the dispute that the gateway or the operator names so.
    pub fn dispute_named(&self, reference: &str) -> Option<&DisputeId> {
        self.disputes.iter().find(|known| known.reference == reference).map(|known| &known.dispute)
    }

    /// The disputes that are not decided, oldest first.
    pub fn open_disputes(&self) -> impl Iterator<Item = &Dispute> {
        self.payment.disputes.iter().filter(|dispute| !dispute.status.is_closed())
    }

    /// Whether the operator has a dispute to watch: one of real money that is not decided.
    pub fn is_disputed(&self) -> bool {
        self.payment.environment == Environment::Live && self.open_disputes().next().is_some()
    }
}

/// The invariants that the disputes of a session violate.
pub(super) fn dispute_faults(session: &Session) -> Vec<&'static str> {
    let Session { payment, disputes: known, .. } = session;
    let each = |holds: fn(&Payment, &Dispute) -> bool| payment.disputes.iter().all(|it| holds(payment, it));
    let is_there = |known: &KnownDispute| payment.disputes.iter().any(|it| it.id == known.dispute);
    let rules = [
        (payment.was_paid() || payment.disputes.is_empty(), "has a dispute and was not paid"),
        (payment.disputes.len() <= MAX_DISPUTES, "has more disputes than a payment may have"),
        (each(|_, it| !matches!(it.status, DisputeStatus::Other(_))), "has a dispute in an unknown state"),
        (
            each(|payment, it| (Amount::ZERO..=payment.amount).contains(&it.amount) && it.amount > Amount::ZERO),
            "has a dispute of nothing, or of more than its amount",
        ),
        (each(|payment, it| it.currency == payment.currency), "has a dispute in another currency"),
        (each(|_, it| it.reinstated <= it.withdrawn), "has a dispute with more reinstated than withdrawn"),
        (
            each(|_, it| it.amount_taken() > Amount::ZERO || it.fee_returned.unwrap_or_default() == Amount::ZERO),
            "has a dispute that returned a fee and took nothing",
        ),
        (each(|_, it| it.closed_at.is_some() == it.status.is_closed()), "closed_at does not match its dispute's state"),
        (known.iter().all(is_there), "knows a dispute that the payment does not have"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, EventKind, PaymentMethod, RawStatus};

    use super::*;
    use crate::domain::{
        event_count_faults, faults,
        samples::{at, attempt, session},
    };

    /// A payment of 100.00 by wallet, of which 40.00 were withdrawn for a lost dispute that returned a fee.
    fn disputed() -> Session {
        let mut payment = session().payment;
        for cause in [Cause::SentToGateway(PaymentMethod::Mfs), Cause::GatewayConfirmed] {
            payment = payments_core::decide(&payment, cause, at(9)).unwrap().payment;
        }
        let report = DisputeReport {
            id: "dsp_1".parse().unwrap(),
            amount: Amount::from_minor(4_000),
            reason: None,
            status: DisputeStatus::Lost,
            evidence_due_by: None,
            withdrawn: Amount::from_minor(4_000),
            reinstated: Amount::ZERO,
            returns_fee: true,
        };
        while let Some(decision) = payments_core::decide_dispute(&payment, &report, at(9)).unwrap() {
            payment = decision.payment;
        }
        let known =
            KnownDispute { dispute: report.id, reference: "CB-1".into(), is_reported: false, moves: Vec::new() };
        Session { payment, disputes: vec![known], attempt: Some(attempt("a")), ..session().next() }
    }

    fn change(session: &mut Session, field: &str, value: serde_json::Value) {
        let mut disputes = serde_json::to_value(&*session.payment.disputes).unwrap();
        disputes[0][field] = value;
        session.payment.disputes = serde_json::from_value(disputes).unwrap();
    }

    #[test]
    fn only_the_transaction_that_paid_is_disputed_in_its_own_currency() {
        let mut session = disputed();
        session.attempt.iter_mut().for_each(|attempt| attempt.transaction = Some("pi_1".into()));
        let other = "it is about another transaction than the one that paid";
        for (transaction, currency, expected) in [
            (Some("pi_1"), Some(Currency::Bdt), None),
            (Some("pi_1"), Some(Currency::Usd), Some("its amounts are not in BDT")),
            (Some("pi_1"), None, Some("its amounts are not in BDT")),
            (Some("pi_2"), Some(Currency::Bdt), Some(other)),
            (None, Some(Currency::Bdt), Some(other)),
        ] {
            let dispute = GatewayDispute {
                reference: "du_1".into(),
                transaction: transaction.map(str::to_owned),
                amount: Amount::from_minor(1),
                currency,
                reason: None,
                status: DisputeStatus::NeedsResponse,
                evidence_due_by: None,
                withdrawn: Amount::ZERO,
                reinstated: Amount::ZERO,
            };
            assert_eq!(dispute.contradiction(&session).as_deref(), expected, "{transaction:?} {currency:?}");
        }
    }

    #[test]
    fn a_dispute_has_an_event_when_it_opens_and_one_when_it_closes() {
        let faults = |disputed: usize, closed: usize| {
            let count = |kind: &EventKind| match kind {
                EventKind::PaymentCreated | EventKind::PaymentCompleted => 1,
                EventKind::PaymentDisputed => disputed,
                EventKind::PaymentDisputeClosed => closed,
                _ => 0,
            };
            event_count_faults(&self::disputed().payment, count)
        };
        // A warning that became a chargeback has two, and so has an end that was reversed.
        for (disputed, closed) in [(1, 1), (2, 1), (1, 2)] {
            assert_eq!(faults(disputed, closed), Vec::<String>::new());
        }
        assert_eq!(faults(0, 1), ["has 0 events payment.disputed, and its state comes to 1"]);
        assert_eq!(faults(3, 1), ["has 3 events payment.disputed, and its state comes to 2"]);
        assert_eq!(faults(1, 0), ["has 0 events payment.dispute_closed, and its state comes to 1"]);
    }

    #[test]
    fn each_fault_of_a_dispute_is_found() {
        type Case<'c> = (&'c str, &'c dyn Fn(&mut Session));
        assert_eq!((faults(&disputed()), disputed().is_disputed()), (vec![], false));
        let cases: [Case<'_>; 9] = [
            ("has a dispute and was not paid", &|it| it.payment.raw_status = RawStatus::Failed),
            ("in an unknown state", &|it| change(it, "status", "mislaid".into())),
            ("has a dispute of nothing", &|it| change(it, "amount", 0.into())),
            ("or of more than its amount", &|it| change(it, "amount", 101.into())),
            ("has a dispute in another currency", &|it| change(it, "currency", "USD".into())),
            ("more reinstated than withdrawn", &|it| change(it, "amountReinstated", 41.into())),
            ("returned a fee and took nothing", &|it| change(it, "amountReinstated", 40.into())),
            ("closed_at does not match", &|it| change(it, "status", "needs_response".into())),
            ("knows a dispute that the payment does not have", &|it| it.disputes[0].dispute = "dsp_2".parse().unwrap()),
        ];
        for (fault, break_it) in cases {
            let mut broken = disputed();
            break_it(&mut broken);
            let found = faults(&broken);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
        let mut fees = disputed();
        change(&mut fees, "feeReturned", 3.into());
        assert_eq!(faults(&fees), ["its refunds and disputes return more than its fee"]);
    }
}
