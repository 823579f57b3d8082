//! Refunds as a gateway reports them, and what follows from them for a payment.
//!
//! The gateway may have refunds that this server did not make: a person made them in the gateway's dashboard, or the server was
//! restored from a backup. A refund that it accepted may succeed or fail later.

use payments_core::{Amount, RefundId, RefundStatus, Timestamp};
use serde::{Deserialize, Serialize};

use super::Session;

/// A refund as the gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRefund {
    /// The gateway's id.
    pub reference: String,
    /// This server's id, if this server asked for it.
    pub id: Option<RefundId>,
    pub amount: Amount,
    pub state: GatewayRefundState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayRefundState {
    /// The gateway has accepted it and sends the money later.
    Pending,
    Succeeded,
    /// The money was not sent back, or came back.
    Failed {
        reason: Option<String>,
    },
    /// The gateway's answer does not tell, and will not: a person looks there.
    Unclear {
        /// What to look for.
        what: String,
    },
}

/// The gateway's id of a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundReference {
    pub refund: RefundId,
    pub reference: String,
}

/// How a payment differs from the gateway's refunds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundChange {
    Failed(RefundId, Option<String>),
    Settled(RefundId),
    /// The gateway has a refund that the payment lacks.
    Found(GatewayRefund),
}

/// How soon the server first asks about a refund that the gateway has accepted, and asks again without an answer.
pub(super) const SHORTEST_CHECK_MILLIS: i64 = 60_000;
/// The longest interval between two questions.
const LONGEST_CHECK_MILLIS: i64 = 6 * 60 * 60 * 1000;

impl Session {
    /// The refund of the payment that the gateway reports. A refund that a person sends there by hand has no reference, so its
    /// amount tells.
    fn refund_of(&self, reported: &GatewayRefund) -> Option<&payments_core::Refund> {
        let by_reference = self.refund_references.iter().find(|it| it.reference == reported.reference);
        let id = by_reference.map(|it| &it.refund).or(reported.id.as_ref());
        self.payment.refunds.iter().find(|refund| match id {
            Some(id) => refund.id == *id,
            None => !refund.is_by_gateway() && refund.amount == reported.amount,
        })
    }

    /// The first change that follows from the gateway's refunds. Failures come first, because they make room for others.
    pub fn refund_change(&self, reported: &[GatewayRefund]) -> Option<RefundChange> {
        if !self.payment.was_paid() {
            return None;
        }
        let failed = reported.iter().find_map(|it| match (&it.state, self.refund_of(it)) {
            (GatewayRefundState::Failed { reason }, Some(refund)) if refund.stands() && refund.is_by_gateway() => {
                Some(RefundChange::Failed(refund.id.clone(), reason.clone()))
            }
            _ => None,
        });
        let settled = || {
            reported.iter().find_map(|it| match (&it.state, self.refund_of(it)) {
                (GatewayRefundState::Succeeded, Some(refund)) if refund.status == RefundStatus::Pending => {
                    Some(RefundChange::Settled(refund.id.clone()))
                }
                _ => None,
            })
        };
        let found = || self.refunds_lacked(reported).next().map(|it| RefundChange::Found(it.clone()));
        failed.or_else(settled).or_else(found)
    }

    /// The refunds that the gateway has made or accepted and the payment lacks.
    pub fn refunds_lacked<'r>(&self, reported: &'r [GatewayRefund]) -> impl Iterator<Item = &'r GatewayRefund> {
        let counts = |it: &&GatewayRefund| !matches!(it.state, GatewayRefundState::Failed { .. });
        reported.iter().filter(counts).filter(|it| self.refund_of(it).is_none())
    }

    /// What a person must look for: the gateway will not tell the outcome of a refund that it accepted.
    pub fn unclear_refund<'r>(&self, reported: &'r [GatewayRefund]) -> Option<&'r str> {
        reported.iter().find_map(|it| match (&it.state, self.refund_of(it)) {
            (GatewayRefundState::Unclear { what }, Some(refund)) if refund.status == RefundStatus::Pending => {
                Some(what.as_str())
            }
            _ => None,
        })
    }

    /// The refund whose outcome the review asks for.
    pub fn refund_in_review(&self) -> Option<&payments_core::Refund> {
        let what = &self.review.as_ref()?.what;
        let named = self.refund_references.iter().filter(|it| what.contains(&it.reference));
        let RefundReference { refund, .. } = named.max_by_key(|it| it.reference.len())?;
        self.payment.refunds.iter().find(|it| it.id == *refund && it.status == RefundStatus::Pending)
    }

    /// Remembers the gateway's id of a refund.
    pub fn refer(&mut self, refund: RefundId, reference: String) {
        if !self.refund_references.iter().any(|it| it.refund == refund) {
            self.refund_references.push(RefundReference { refund, reference });
        }
    }

    /// Plans the next question about the payment's refunds: soon if the last one was not answered, else if the gateway has
    /// accepted some and not settled them.
    pub fn plan_refund_check(&mut self, is_answered: bool, now: Timestamp) {
        if !is_answered {
            self.refund_check_at = Timestamp::from_millis(now.as_millis() + SHORTEST_CHECK_MILLIS).ok();
            return;
        }
        let interval = self.refund_check_millis(now);
        self.refund_check_at = interval.and_then(|interval| Timestamp::from_millis(now.as_millis() + interval).ok());
    }

    /// The interval to the next question about accepted refunds: a third of the time since the newest one. `None` if all are
    /// settled.
    pub(super) fn refund_check_millis(&self, now: Timestamp) -> Option<i64> {
        let waiting = self.payment.refunds.iter().filter(|refund| refund.status == RefundStatus::Pending);
        let newest = waiting.map(|refund| refund.created_at).max()?;
        let interval = (now.as_millis() - newest.as_millis()) / 3;
        Some(interval.clamp(SHORTEST_CHECK_MILLIS, LONGEST_CHECK_MILLIS))
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, NewRefund, RANDOM_BYTES, Slot};

    use super::*;
    use crate::domain::samples::{at, session};

    fn id(nth: u8) -> RefundId {
        RefundId::new(Slot::FIRST, at(9), [nth; RANDOM_BYTES])
    }

    fn after(session: &Session, cause: Cause) -> Session {
        let decided = payments_core::decide(&session.payment, cause, at(9)).unwrap();
        Session { payment: decided.payment, ..session.next() }
    }

    /// A paid payment of 100.00 with a refund of 40.00 that the gateway has accepted.
    fn refunded() -> Session {
        let part = Cause::PartRefunded { refund: NewRefund::accepted(id(1)), amount: Amount::from_minor(4_000) };
        after(&after(&session(), Cause::GatewayConfirmed), part)
    }

    fn reported(reference: &str, by: Option<u8>, state: GatewayRefundState) -> GatewayRefund {
        GatewayRefund { reference: reference.into(), id: by.map(id), amount: Amount::from_minor(4_000), state }
    }

    #[test]
    fn a_payment_follows_its_gateways_refunds() {
        use GatewayRefundState::{Failed, Pending, Succeeded};
        let failed = || Failed { reason: Some("expired_card".into()) };
        let (ours, elsewhere) = (|state| reported("re_1", Some(1), state), |state| reported("re_2", None, state));
        for (listed, change) in [
            (vec![], None),
            (vec![ours(Pending)], None),
            (vec![ours(Succeeded)], Some(RefundChange::Settled(id(1)))),
            (vec![ours(failed())], Some(RefundChange::Failed(id(1), Some("expired_card".into())))),
            (vec![elsewhere(Succeeded)], Some(RefundChange::Found(elsewhere(Succeeded)))),
            (vec![elsewhere(failed())], None),
            (vec![elsewhere(Pending), ours(failed())], Some(RefundChange::Failed(id(1), Some("expired_card".into())))),
        ] {
            assert_eq!(refunded().refund_change(&listed), change, "{listed:?}");
        }
        assert_eq!(session().refund_change(&[elsewhere(Succeeded)]), None, "it was not paid");
    }

    #[test]
    fn a_refund_made_elsewhere_is_found_once() {
        let elsewhere = reported("re_2", None, GatewayRefundState::Succeeded);
        let mut session = refunded();
        let part = Cause::PartRefunded { refund: NewRefund::made(id(2)), amount: Amount::from_minor(4_000) };
        session = after(&session, part);
        assert!(session.refund_change(std::slice::from_ref(&elsewhere)).is_some());
        session.refer(id(2), "re_2".into());
        assert_eq!(session.refund_change(&[elsewhere]), None);
    }

    #[test]
    fn a_refund_that_a_person_sends_by_hand_is_not_counted_again_when_the_gateway_reports_it() {
        let by_hand = |minor| {
            let amount = Amount::from_minor(minor);
            after(&refunded(), Cause::PartRefunded { refund: NewRefund::by_hand(id(2)), amount })
        };
        let elsewhere = [reported("re_2", None, GatewayRefundState::Succeeded)];
        assert_eq!(by_hand(4_000).refund_change(&elsewhere), None);
        assert!(by_hand(3_000).refund_change(&elsewhere).is_some());
    }

    #[test]
    fn the_server_asks_about_an_accepted_refund_less_and_less_often() {
        let mut session = refunded();
        let mut now = session.payment.updated_at;
        let mut questions = 0;
        while now < at(30 * 24 * 3600) {
            session.plan_refund_check(true, now);
            session.check_at = session.refund_check_at;
            assert!(session.unheld(now).is_none(), "planned at {now}");
            now = session.refund_check_at.unwrap();
            questions += 1;
        }
        assert!((100..200).contains(&questions), "{questions} questions in 30 days");
        session.payment = payments_core::settle_refund(&session.payment, &id(1), now).unwrap().payment;
        session.plan_refund_check(true, now);
        assert_eq!(session.refund_check_at, None);
        session.plan_refund_check(false, now);
        assert_eq!(session.refund_check_at, Timestamp::from_millis(now.as_millis() + 60_000).ok());
    }

    #[test]
    fn a_question_about_an_accepted_refund_is_due_if_the_clock_went_back_before_its_planning() {
        let mut session = refunded();
        let made = session.payment.updated_at.as_millis();
        let after_made = |seconds: i64| Timestamp::from_millis(made + seconds * 1000).unwrap();
        let planned = after_made(300);
        session.plan_refund_check(true, planned);
        session.check_at = session.refund_check_at;
        // Three hours are less than the longest interval, and much more than this one.
        for back in [1, 3 * 3600] {
            let now = after_made(300 - back);
            let unheld = session.unheld(now).unwrap();
            assert_eq!((unheld.refund_check_at, unheld.check_at), (Some(now), Some(now)), "{back} s");
        }
    }
}
