//! The effects of a session's change on lists, time indexes and totals.

use payments_core::{Currency, Day, LedgerAccount, Posting, Status, Timestamp};

use super::{DayTotals, Lookup, Scope, Session, lookups};

/// The effects of one session change. A store applies them without knowing the rules behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effects {
    /// The scope whose lists and totals change.
    pub(crate) scope: Scope,
    /// The payment's public status, for the lists by status.
    pub(crate) status: Transition<Status>,
    /// What a new payment is found by. A payment keeps it.
    pub(crate) lookups: Vec<Lookup>,
    /// When the session expires, while it has no gateway attempt.
    pub(crate) expiry: Transition<Timestamp>,
    /// When the server next queries the gateway.
    pub(crate) gateway_check: Transition<Timestamp>,
    /// Whether the refund needs manual settlement.
    pub(crate) manual_settlement: Transition<()>,
    /// Whether the payment needs manual review.
    pub(crate) manual_review: Transition<()>,
    /// The currency of `balances`, `volume` and `day`.
    pub(crate) currency: Currency,
    /// The amount to add to each account's balance, in minor units.
    pub(crate) balances: Vec<(LedgerAccount, i128)>,
    /// The amount to add to the volume, in minor units: the gross amount of a newly paid payment.
    pub(crate) volume: Option<i128>,
    /// The day of the payment's creation, and what to add to its totals.
    pub(crate) day: Option<(Day, DayTotals)>,
}

/// A payment's entry in an index, before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transition<T> {
    from: Option<T>,
    to: Option<T>,
}

impl<T: PartialEq> Transition<T> {
    fn new(before: Option<&Session>, after: &Session, entry: impl Fn(&Session) -> Option<T>) -> Self {
        Self { from: before.and_then(&entry), to: entry(after) }
    }

    /// The entry to remove, if it changes.
    pub(crate) fn left(&self) -> Option<&T> {
        self.from.as_ref().filter(|_| self.from != self.to)
    }

    /// The entry to insert, if it changes.
    pub(crate) fn entered(&self) -> Option<&T> {
        self.to.as_ref().filter(|_| self.from != self.to)
    }
}

/// Computes the effects of a session's change. `before` is `None` for a new session.
pub(crate) fn effects(before: Option<&Session>, after: &Session, postings: &[Posting]) -> Effects {
    Effects {
        scope: after.scope(),
        status: Transition::new(before, after, |it| Some(it.payment.status.clone())),
        lookups: if before.is_none() { lookups(&after.payment) } else { Vec::new() },
        expiry: Transition::new(before, after, Session::unattempted_expiry),
        gateway_check: Transition::new(before, after, |it| it.check_at),
        manual_settlement: Transition::new(before, after, |it| it.needs_manual_settlement().then_some(())),
        manual_review: Transition::new(before, after, |it| it.needs_manual_review().then_some(())),
        currency: after.payment.currency,
        balances: postings.iter().map(|posting| (posting.account, i128::from(posting.minor))).collect(),
        volume: volume_of(postings),
        day: DayTotals::added_by(before, postings).map(|added| (Day::of(after.payment.created_at), added)),
    }
}

/// The volume that postings add: the amount that came in through a gateway. A refund does not reduce the volume.
pub(crate) fn volume_of(postings: &[Posting]) -> Option<i128> {
    let paid = |posting: &&Posting| posting.account == LedgerAccount::GatewayClearing && posting.minor < 0;
    postings.iter().find(paid).map(|posting| -i128::from(posting.minor))
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, CreatePayment, Environment, FeeRate, NewPayment, PaymentId, SimulateOutcome};

    use super::*;
    use crate::domain::ManualReview;

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
                id: PaymentId::new(payments_core::Slot::FIRST, at(1_000), [1; payments_core::RANDOM_BYTES]),
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
    fn a_new_session_is_listed_by_status_and_gets_an_expiry_time() {
        let (session, postings) = created();
        let effects = effects(None, &session, &postings);
        assert_eq!((effects.status.left(), effects.status.entered()), (None, Some(&session.payment.status)));
        assert_eq!((effects.expiry.left(), effects.expiry.entered()), (None, Some(&at(61_000))));
        assert_eq!(effects.gateway_check, Transition { from: None, to: None });
        assert!(effects.balances.is_empty() && effects.volume.is_none());
        assert_eq!(effects.day, Some((Day::of(at(1_000)), (1, 0, 0).into())));
    }

    #[test]
    fn a_payment_is_paid_on_the_day_of_its_creation_and_a_refund_adds_nothing_to_it() {
        let (session, _) = created();
        let (day, late) = (Day::of(at(1_000)), at(3 * 24 * 60 * 60 * 1_000));
        let cause = Cause::Simulated(SimulateOutcome::Completed);
        let paid = payments_core::decide(&session.payment, cause, late).unwrap();
        let after = Session { payment: paid.payment, ..session.next() };
        assert_eq!(effects(Some(&session), &after, &paid.postings).day, Some((day, (0, 1, 10_000).into())));
        assert_eq!(effects(None, &after, &paid.postings).day, Some((day, (1, 1, 10_000).into())));
        let back: Vec<_> = paid.postings.iter().map(|it| Posting { minor: -it.minor, ..*it }).collect();
        assert_eq!(effects(Some(&after), &after.next(), &back).day, None);
        let both = [paid.postings, back].concat();
        assert_eq!(effects(None, &after, &both).day, Some((day, (1, 1, 10_000).into())));
        assert_eq!(effects(Some(&session), &session.next(), &[]).day, None);
    }

    #[test]
    fn paying_changes_the_list_removes_the_expiry_and_adds_to_totals() {
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
    fn unchanged_entries_are_neither_removed_nor_inserted() {
        let (session, _) = created();
        let mut next = session.next();
        next.check_at = Some(at(5_000));
        let due = effects(Some(&session), &next, &[]);
        assert_eq!((due.status.left(), due.status.entered()), (None, None));
        assert_eq!((due.expiry.left(), due.expiry.entered()), (None, None));
        assert_eq!((due.gateway_check.left(), due.gateway_check.entered()), (None, Some(&at(5_000))));
        let mut disputed = next.next();
        disputed.check_at = None;
        disputed.review = Some(ManualReview { what: "another amount".into(), found_at: at(6_000), resolved: None });
        let disputed = effects(Some(&next), &disputed, &[]);
        assert_eq!(disputed.gateway_check.left(), Some(&at(5_000)));
        assert_eq!(disputed.manual_review.entered(), None, "a session without a gateway attempt has nothing to review");
    }
}
