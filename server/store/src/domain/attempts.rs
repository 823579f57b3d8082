//! The attempts of a live payment at its gateway.
//!
//! A payment has at most one attempt that can be paid. If it fails while the session lives, it ends, and the customer may
//! begin another. The money of an ended attempt may still arrive, so the server queries the gateway for a day, and goes on
//! until a query after that day is answered. If a gateway answers no query for a week, a person must ask it.

use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{GatewayName, Session};

pub const MAX_ATTEMPTS: usize = 10;
/// How long after an attempt ended the server first queries it.
const FIRST_INTERVAL_MILLIS: i64 = 3_000;
/// How long after an attempt ended its money may still arrive.
pub const LATE_MONEY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// How long a gateway may leave all queries of an attempt unanswered before a person must ask it.
const SILENCE_MILLIS: i64 = 7 * 24 * 60 * 60 * 1000;
/// The longest interval between two unanswered queries.
pub const LONGEST_SILENT_BACKOFF_MILLIS: i64 = 60 * 60 * 1000;

/// An attempt of a live payment's customer to pay at a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAttempt {
    pub gateway: GatewayName,
    /// Our reference for the attempt at the gateway, unique among all attempts.
    pub invoice: String,
    pub external_id: String,
    /// The gateway's page where the customer pays.
    pub customer_url: String,
    /// When the server last sent a capture. The server stores this time before it sends the capture.
    #[serde(rename = "taken_at")]
    pub capture_sent_at: Option<Timestamp>,
    /// The gateway's id of the transaction, once the payment is paid.
    pub transaction: Option<String>,
    /// Why it failed, in the gateway's words, and what its code means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The gateway's code for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<String>,
    /// Where the customer goes after paying, instead of the payment's success URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_url: Option<String>,
    /// Since when the gateway has answered no query of the attempt; `None` if it answered the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Timestamp>,
}

/// An attempt that has ended. Another one has followed it, or may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAttempt {
    pub attempt: GatewayAttempt,
    pub ended_at: Timestamp,
    /// When the server next queries whether the money arrived after all; `None` for never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Timestamp>,
}

impl EndedAttempt {
    /// Plans the next query. The interval is a third of the time since the attempt ended. After a day, an answered query is
    /// the last.
    pub fn plan(&mut self, is_answered: bool, now: Timestamp) {
        self.attempt.heard(is_answered, now);
        let elapsed = now.as_millis() - self.ended_at.as_millis();
        let longest = if is_answered { i64::MAX } else { LONGEST_SILENT_BACKOFF_MILLIS };
        let next = now.as_millis() + (elapsed / 3).min(longest).max(FIRST_INTERVAL_MILLIS);
        let is_over = elapsed > LATE_MONEY_MILLIS && is_answered;
        self.check_at = Timestamp::from_millis(next).ok().filter(|_| !is_over);
    }
}

impl GatewayAttempt {
    /// Records whether the gateway answered a query of the attempt.
    pub fn heard(&mut self, is_answered: bool, now: Timestamp) {
        self.silent_since = (!is_answered).then(|| self.silent_since.unwrap_or(now));
    }

    /// Whether the gateway has been silent for so long that a person must ask it.
    pub fn is_for_a_person(&self, now: Timestamp) -> bool {
        self.silent_since.is_some_and(|since| now.as_millis() - since.as_millis() >= SILENCE_MILLIS)
    }

    /// The message for this person. `gateway` is its title.
    pub fn silence(&self, gateway: &str) -> String {
        let Self { invoice, external_id, .. } = self;
        format!(
            "{gateway} has answered no question about attempt {external_id} ({invoice}) for a week: look there whether its \
             money arrived"
        )
    }

    /// Whether a returning customer names this attempt, by our reference or by the gateway's id. An old return address names
    /// no attempt and fits all.
    pub fn is_named(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.invoice || name == self.external_id)
    }
}

impl Session {
    /// Whether the customer may try again after the present attempt fails.
    pub fn may_try_again(&self, now: Timestamp) -> bool {
        now < self.expires_at && self.ended_attempts.len() + 1 < MAX_ATTEMPTS
    }

    /// Ends the present attempt, if there is one. From now on the server only queries whether its money arrives late.
    pub fn end_attempt(&mut self, now: Timestamp) {
        if let Some(attempt) = self.attempt.take() {
            let mut ended = EndedAttempt { attempt, ended_at: now, check_at: None };
            ended.plan(true, now);
            self.ended_attempts.push(ended);
        }
    }

    /// Makes an ended attempt the present one again, because the gateway has its money. Ends the present one.
    pub fn return_to(&mut self, nth: usize, now: Timestamp) {
        let EndedAttempt { attempt, .. } = self.ended_attempts.remove(nth);
        self.end_attempt(now);
        self.attempt = Some(attempt);
    }

    /// Plans the next query of the ended attempts and of accepted refunds, unless an earlier one is planned or a refund or a
    /// review is pending.
    pub fn keep_asking(&mut self) {
        if self.refund_check_at.is_none() {
            self.plan_refund_check(true, self.payment.updated_at);
        }
        if self.pending_refund.is_none() && !self.needs_manual_review() {
            self.check_at = self.check_at.into_iter().chain(self.next_late_check()).chain(self.refund_check_at).min();
        }
    }

    /// When the server next queries one of the ended attempts.
    pub fn next_late_check(&self) -> Option<Timestamp> {
        self.ended_attempts.iter().filter_map(|ended| ended.check_at).min()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use payments_core::{Amount, RANDOM_BYTES, RefundId, Slot};

    use super::*;
    use crate::domain::{
        ManualReview, PendingRefund,
        samples::{at, attempt, session},
    };

    pub(in crate::domain) fn pending_refund(amount: Option<Amount>) -> PendingRefund {
        PendingRefund {
            id: RefundId::new(Slot::FIRST, at(9), [2; RANDOM_BYTES]),
            amount,
            reason: None,
            request: None,
            tries: 0,
            is_unsent: false,
            reference: None,
        }
    }

    #[test]
    fn an_ended_attempt_is_queried_for_a_day_at_growing_intervals() {
        let mut session = session();
        session.attempt = Some(attempt("a"));
        session.end_attempt(at(10));
        assert_eq!((session.attempt.is_none(), session.next_late_check()), (true, Some(at(13))));
        let (mut now, mut questions) = (at(10), 0);
        while let Some(next) = session.next_late_check() {
            assert!(next > now);
            (now, questions) = (next, questions + 1);
            session.ended_attempts[0].plan(true, now);
        }
        assert!(now > at(24 * 3600) && now < at(36 * 3600) && questions < 50, "{questions} questions until {now}");
    }

    #[test]
    fn an_unanswered_query_is_repeated_until_it_is_answered_and_after_a_week_a_person_asks() {
        let mut session = session();
        session.attempt = Some(attempt("a"));
        session.end_attempt(at(10));
        let ended = &mut session.ended_attempts[0];
        let (mut now, mut questions) = (at(10), 0);
        while !ended.attempt.is_for_a_person(now) {
            let next = ended.check_at.unwrap();
            assert!(next > now && next.as_millis() - now.as_millis() <= LONGEST_SILENT_BACKOFF_MILLIS);
            (now, questions) = (next, questions + 1);
            ended.plan(false, now);
        }
        assert!(now > at(7 * 24 * 3600) && now < at(8 * 24 * 3600) && questions < 250, "{questions} until {now}");
        ended.plan(true, now);
        assert!(ended.check_at.is_none() && !ended.attempt.is_for_a_person(now));
        assert!(ended.attempt.silence("The wallet").contains("TR-a"));
    }

    #[test]
    fn ended_attempts_are_queried_while_no_refund_and_no_review_is_pending() {
        let mut asked = session();
        asked.attempt = Some(attempt("a"));
        asked.end_attempt(at(10));
        let waiting = |change: fn(&mut Session)| {
            let mut waiting = asked.clone();
            change(&mut waiting);
            waiting.keep_asking();
            waiting.check_at
        };
        assert_eq!(waiting(|it| it.check_at = None), Some(at(13)));
        assert_eq!(waiting(|it| it.check_at = Some(at(12))), Some(at(12)));
        assert_eq!(waiting(|it| it.check_at = Some(at(14))), Some(at(13)));
        let refund = |it: &mut Session| (it.check_at, it.pending_refund) = (None, Some(pending_refund(None)));
        assert_eq!(waiting(refund), None);
        let review = |it: &mut Session| {
            let review = ManualReview { what: "another amount".into(), found_at: at(11), resolved: None };
            (it.check_at, it.review, it.attempt) = (None, Some(review), Some(attempt("b")));
        };
        assert_eq!(waiting(review), None);
    }

    #[test]
    fn an_attempt_that_has_the_money_replaces_the_present_one() {
        let mut session = session();
        for invoice in ["a", "b"] {
            session.attempt = Some(attempt(invoice));
            session.end_attempt(at(1));
        }
        session.attempt = Some(attempt("c"));
        session.return_to(0, at(5));
        let ended: Vec<_> =
            session.ended_attempts.iter().map(|ended| (&*ended.attempt.invoice, ended.ended_at)).collect();
        assert_eq!(session.attempt.as_ref().map(|attempt| &*attempt.invoice), Some("a"));
        assert_eq!(ended, [("b", at(1)), ("c", at(5))]);
    }

    #[test]
    fn a_customer_may_try_again_while_the_session_lives_up_to_a_limit() {
        let mut session = session();
        assert!(session.may_try_again(at(59)) && !session.may_try_again(session.expires_at));
        for number in 1..MAX_ATTEMPTS {
            assert!(session.may_try_again(at(1)), "attempt {number}");
            session.attempt = Some(attempt("x"));
            session.end_attempt(at(1));
        }
        assert!(!session.may_try_again(at(1)));
    }

    #[test]
    fn a_return_names_its_attempt_by_either_id() {
        let attempt = attempt("a");
        assert!(attempt.is_named(None) && attempt.is_named(Some("a")) && attempt.is_named(Some("TR-a")));
        assert!(!attempt.is_named(Some("b")));
    }
}
