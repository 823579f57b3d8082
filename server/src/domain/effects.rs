//! What else changes when a payment's session changes: lists, times at which it is due, and totals.

use payments_core::{Currency, LedgerAccount, Posting, Status, Timestamp};

use super::{Scope, Session};

/// What follows from one change of a session. A store applies it and knows no reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Whose lists and totals change.
    pub(crate) scope: Scope,
    /// The public status by which the payment is listed.
    pub(crate) status: Transition<Status>,
    /// When the session expires by itself.
    pub(crate) expiry: Transition<Timestamp>,
    /// When the gateway is asked next.
    pub(crate) gateway_check: Transition<Timestamp>,
    /// Whether a person must send the refund by hand.
    pub(crate) manual_settlement: Transition<()>,
    /// Whether a person must decide what the gateway contradicts.
    pub(crate) manual_review: Transition<()>,
    /// The currency of `balances` and `volume`.
    pub(crate) currency: Currency,
    /// What is added to the balance of each account, in minor units.
    pub(crate) balances: Vec<(LedgerAccount, i128)>,
    /// What is added to the volume: the gross amount of one paid payment, in minor units.
    pub(crate) volume: Option<i128>,
}

/// A place in an index that a payment leaves, and the one it enters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transition<T> {
    from: Option<T>,
    to: Option<T>,
}

impl<T: PartialEq> Transition<T> {
    fn new(from: Option<T>, to: Option<T>) -> Self {
        Self { from, to }
    }

    /// The place that the payment leaves, unless it stays there.
    pub(crate) fn left(&self) -> Option<&T> {
        self.from.as_ref().filter(|_| self.from != self.to)
    }

    /// The place that the payment enters, unless it is there already.
    pub(crate) fn entered(&self) -> Option<&T> {
        self.to.as_ref().filter(|_| self.from != self.to)
    }
}

/// What follows from the change of a session; `before` is `None` for a new one. `postings` is what the change posts to
/// the ledger.
pub(crate) fn effects(before: Option<&Session>, after: &Session, postings: &[Posting]) -> Effects {
    let when = |holds: bool| holds.then_some(());
    Effects {
        scope: after.scope(),
        status: Transition::new(before.map(|it| it.payment.status.clone()), Some(after.payment.status.clone())),
        expiry: Transition::new(before.and_then(Session::expires_by_itself_at), after.expires_by_itself_at()),
        gateway_check: Transition::new(before.and_then(|it| it.check_at), after.check_at),
        manual_settlement: Transition::new(
            before.and_then(|it| when(it.needs_manual_settlement())),
            when(after.needs_manual_settlement()),
        ),
        manual_review: Transition::new(
            before.and_then(|it| when(it.needs_manual_review())),
            when(after.needs_manual_review()),
        ),
        currency: after.payment.currency,
        balances: postings.iter().map(|posting| (posting.account, i128::from(posting.minor))).collect(),
        volume: volume_of(postings),
    }
}

/// What postings add to the volume: the amount that came in through a gateway. A refund goes back through it and is not taken
/// off the volume.
pub(crate) fn volume_of(postings: &[Posting]) -> Option<i128> {
    let paid =
        postings.iter().find(|posting| posting.account == LedgerAccount::GatewayClearing && posting.minor < 0)?;
    Some(-i128::from(paid.minor))
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, CreatePayment, Environment, FeeRate, NewPayment, PaymentId, SimulateOutcome};

    use super::*;
    use crate::domain::Review;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn created() -> (Session, Vec<Posting>) {
        let body = serde_json::json!({"amount": 100, "currency": "BDT", "success_url": "https://a.example/",
            "cancel_url": "https://a.example/"});
        let params = CreatePayment::from_json(body.to_string().as_bytes(), Environment::Test).unwrap();
        let decision = payments_core::create(
            params,
            NewPayment {
                id: PaymentId::new(at(1_000), [1; payments_core::RANDOM_BYTES]),
                developer_id: "dev_1".parse().unwrap(),
                app_id: None,
                environment: Environment::Test,
                fee_rate: FeeRate::from_basis_points(250).unwrap(),
                checkout_url: String::new(),
                now: at(1_000),
            },
        );
        (Session::new(decision.payment, at(61_000)), decision.postings)
    }

    #[test]
    fn a_new_session_enters_the_list_of_its_status_and_expires_by_itself() {
        let (session, postings) = created();
        let effects = effects(None, &session, &postings);
        assert_eq!((effects.status.left(), effects.status.entered()), (None, Some(&session.payment.status)));
        assert_eq!((effects.expiry.left(), effects.expiry.entered()), (None, Some(&at(61_000))));
        assert_eq!(effects.gateway_check, Transition::new(None, None));
        assert!(effects.balances.is_empty() && effects.volume.is_none());
    }

    #[test]
    fn a_paid_session_changes_lists_no_longer_expires_and_adds_to_balances_and_volume() {
        let (session, _) = created();
        let decision =
            payments_core::decide(&session.payment, Cause::Simulated(SimulateOutcome::Completed), at(2_000)).unwrap();
        let paid = Session { payment: decision.payment.clone(), ..session.next() };
        let effects = effects(Some(&session), &paid, &decision.postings);
        assert_eq!(effects.status.left(), Some(&session.payment.status));
        assert_eq!(effects.status.entered(), Some(&paid.payment.status));
        assert_eq!((effects.expiry.left(), effects.expiry.entered()), (Some(&at(61_000)), None));
        assert_eq!(effects.volume, Some(10_000));
        assert_eq!(effects.balances.iter().map(|(_, minor)| minor).sum::<i128>(), 0);
    }

    #[test]
    fn what_stays_as_it_was_is_neither_left_nor_entered() {
        let (session, _) = created();
        let mut next = session.next();
        next.check_at = Some(at(5_000));
        let due = effects(Some(&session), &next, &[]);
        assert_eq!((due.status.left(), due.status.entered()), (None, None));
        assert_eq!((due.expiry.left(), due.expiry.entered()), (None, None));
        assert_eq!((due.gateway_check.left(), due.gateway_check.entered()), (None, Some(&at(5_000))));
        let mut disputed = next.next();
        disputed.check_at = None;
        disputed.review = Some(Review { what: "another amount".into(), found_at: at(6_000), resolved: None });
        let disputed = effects(Some(&next), &disputed, &[]);
        assert_eq!(disputed.gateway_check.left(), Some(&at(5_000)));
        assert_eq!(disputed.manual_review.entered(), None, "a session that was at no gateway has nothing to review");
    }
}
