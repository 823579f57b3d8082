//! Repairs stored times after the clock went back.
//!
//! Planned times then lie further ahead than intended. So a plan that lies further ahead than its longest backoff interval is
//! due now. If something is recorded as done at a future time, it was done before the clock went back.

use payments_core::{RawStatus, Timestamp};

use super::{
    EndedAttempt, KeyClaim, Outgoing, Session, gateway_refunds::SHORTEST_CHECK_MILLIS as SHORTEST_REFUND_CHECK_MILLIS,
    retries::longest_delay_millis,
};

/// The longest backoff interval of a pending refund.
pub const LONGEST_REFUND_BACKOFF_SECONDS: u32 = 3600;
/// The longest backoff interval of a payment that waits for its customer. All other open payments have shorter ones.
pub const LONGEST_CUSTOMER_BACKOFF_MILLIS: i64 = 300_000;
/// The shortest backoff interval of queries about late money. Longer ones are a third of the time since the payment or the
/// attempt ended.
const SHORTEST_LATE_BACKOFF_MILLIS: i64 = 3_000;

/// Whether a plan lies further ahead than its longest backoff interval.
fn is_too_far(planned: Timestamp, longest_millis: i64, now: Timestamp) -> bool {
    planned.as_millis() - now.as_millis() > longest_millis
}

/// The backoff interval that ends at `planned`, if intervals are a third of the time since `since`.
fn late_backoff_millis(planned: Timestamp, since: Timestamp) -> i64 {
    ((planned.as_millis() - since.as_millis()) / 4 + 1).max(SHORTEST_LATE_BACKOFF_MILLIS)
}

/// Whether a lease still runs. If its end lies further ahead than twice its length, it was made before the clock went back.
/// Twice, because the clocks of two servers differ a little.
pub fn lease_runs(until: Timestamp, length_millis: i64, now: Timestamp) -> bool {
    until > now && !is_too_far(until, 2 * length_millis, now)
}

impl KeyClaim {
    pub fn runs_at(&self, now: Timestamp) -> bool {
        lease_runs(self.until, self.until.as_millis() - self.claimed_at.as_millis(), now)
    }
}

impl EndedAttempt {
    fn unheld(mut self, now: Timestamp) -> Self {
        self.ended_at = self.ended_at.min(now);
        let backoff = |at| late_backoff_millis(at, self.ended_at);
        self.check_at = self.check_at.map(|at| if is_too_far(at, backoff(at), now) { now } else { at });
        self
    }
}

impl Session {
    /// Corrects times that lie too far ahead. Returns the next version; `None` if there are no such times.
    pub fn unheld(&self, now: Timestamp) -> Option<Self> {
        let mut next = self.clone();
        next.ended_attempts = self.ended_attempts.iter().map(|ended| ended.clone().unheld(now)).collect();
        next.refund_check_at =
            self.refund_check_at.map(|at| if is_too_far(at, self.refund_backoff_millis(now), now) { now } else { at });
        next.check_at =
            self.check_at.map(|at| if is_too_far(at, self.backoff_millis(at, now), now) { now } else { at });
        if let Some(sent_at) = next.attempt.as_mut().and_then(|attempt| attempt.capture_sent_at.as_mut()) {
            *sent_at = (*sent_at).min(now);
        }
        let life = self.expires_at.as_millis() - self.payment.created_at.as_millis();
        if self.payment.raw_status.is_open() && is_too_far(self.expires_at, life, now) {
            next.expires_at = Timestamp::from_millis(now.as_millis() + life).unwrap_or(now);
        }
        let is_changed = next.ended_attempts != self.ended_attempts
            || next.attempt != self.attempt
            || next.refund_check_at != self.refund_check_at
            || (next.check_at, next.expires_at) != (self.check_at, self.expires_at);
        next.version += 1;
        is_changed.then_some(next)
    }

    /// The longest backoff interval that a gateway query planned for `check_at` can have.
    fn backoff_millis(&self, check_at: Timestamp, now: Timestamp) -> i64 {
        match self.payment.raw_status {
            _ if self.pending_refund.is_some() => i64::from(LONGEST_REFUND_BACKOFF_SECONDS) * 1000,
            RawStatus::Processing => LONGEST_CUSTOMER_BACKOFF_MILLIS,
            _ if self.refund_check_at.is_some() => self.refund_backoff_millis(now),
            _ => {
                let ended = self.ended_attempts.iter().map(|ended| ended.ended_at).min();
                late_backoff_millis(check_at, ended.unwrap_or(self.payment.updated_at).min(self.payment.updated_at))
            }
        }
    }

    /// The longest interval to a question about accepted refunds. Intervals grow with the refunds' age, so one that was planned
    /// earlier is no longer than one that is planned now.
    fn refund_backoff_millis(&self, now: Timestamp) -> i64 {
        self.refund_check_millis(now).unwrap_or(SHORTEST_REFUND_CHECK_MILLIS)
    }
}

impl Outgoing {
    /// Makes the next attempt due if it lies too far ahead. Returns the next version; `None` if it does not.
    pub fn unheld(mut self, now: Timestamp) -> Option<Self> {
        let longest = longest_delay_millis(self.delivery.attempts)?;
        self.waits_until().filter(|until| is_too_far(*until, longest, now))?;
        self.version += 1;
        self.delivery.next_attempt_at = Some(now);
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, DeliveryId, EventKind, RANDOM_BYTES, RawJson, Slot};

    use super::*;
    use crate::domain::{
        ClaimToken, LATE_MONEY_MILLIS, Scope,
        attempts::tests::pending_refund,
        samples::{at, attempt, session},
    };

    const HOUR: i64 = 3600;

    #[test]
    fn a_plan_is_held_up_if_it_lies_further_ahead_than_its_own_longest_backoff() {
        let mut refund = session();
        (refund.check_at, refund.pending_refund) = (Some(at(10 * HOUR)), Some(pending_refund(None)));
        let mut processing = session();
        processing.payment.raw_status = RawStatus::Processing;
        processing.check_at = Some(at(10 * HOUR));
        for (session, longest) in [(refund, HOUR), (processing, 300)] {
            assert!(session.unheld(at(10 * HOUR - longest)).is_none(), "it lies as far ahead as it may");
            let now = at(10 * HOUR - longest - 1);
            let unheld = session.unheld(now).unwrap();
            assert_eq!((unheld.check_at, unheld.version), (Some(now), session.version + 1));
        }
    }

    #[test]
    fn a_query_about_late_money_is_held_up_if_the_clock_went_back_before_its_planning() {
        let mut asked = session();
        asked.attempt = Some(attempt("a"));
        asked.end_attempt(at(10));
        let mut now = at(10);
        while let Some(next) = asked.next_late_check() {
            asked.check_at = Some(next);
            assert!(asked.unheld(now).is_none(), "planned at {now} for {next}");
            // A little less than the interval: divisions round down.
            let before = now.plus_millis(0).as_millis() - 2;
            let unheld = asked.unheld(Timestamp::from_millis(before).unwrap()).unwrap();
            assert_eq!(unheld.next_late_check().map(Timestamp::as_millis), Some(before));
            now = next;
            asked.ended_attempts[0].plan(true, now);
        }
        assert!(now.as_millis() - at(10).as_millis() > LATE_MONEY_MILLIS);
    }

    #[test]
    fn after_the_clock_went_back_a_session_has_its_whole_life_again_and_no_past_time_lies_in_the_future() {
        let mut later = session();
        later.attempt = Some(attempt("a"));
        later.attempt.as_mut().unwrap().capture_sent_at = Some(at(5));
        let (created, life) = (later.payment.created_at.as_millis(), later.expires_at.as_millis() - at(0).as_millis());
        assert_eq!(created, at(0).as_millis());
        assert!(later.unheld(at(5)).is_none());
        let unheld = later.unheld(at(-10 * HOUR)).unwrap();
        assert_eq!(unheld.expires_at.as_millis(), at(-10 * HOUR).as_millis() + life);
        assert_eq!(unheld.attempt.unwrap().capture_sent_at, Some(at(-10 * HOUR)));
        // The session's life does not matter for an ended payment.
        later.attempt = None;
        later.payment = payments_core::decide(&later.payment, Cause::SessionEnded, at(60)).unwrap().payment;
        assert!(later.unheld(at(-10 * HOUR)).is_none());
    }

    #[test]
    fn a_delivery_is_held_up_if_it_waits_longer_than_its_backoff_interval() {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: payments_core::Environment::Test };
        let id = DeliveryId::new(Slot::FIRST, at(0), [1; RANDOM_BYTES]);
        let payload = RawJson::new("{}").unwrap();
        let mut waiting =
            Outgoing::new(id, &scope, &"wh_1".parse().unwrap(), &EventKind::PaymentCreated, payload, at(0));
        waiting.delivery.next_attempt_at = Some(at(10 * HOUR));
        // Backoff intervals of five seconds and ten hours, with at most a fifth of jitter.
        for (attempts, longest) in [(1, 6), (6, 12 * HOUR)] {
            waiting.delivery.attempts = attempts;
            assert!(waiting.clone().unheld(at(10 * HOUR - longest)).is_none());
            let now = at(10 * HOUR - longest - 1);
            let unheld = waiting.clone().unheld(now).unwrap();
            assert_eq!((unheld.waits_until(), unheld.version), (Some(now), waiting.version + 1));
        }
    }

    #[test]
    fn a_lease_runs_until_its_end_unless_that_lies_further_ahead_than_twice_its_length() {
        let claim = KeyClaim {
            token: ClaimToken::new([1; 16]),
            fingerprint: String::new(),
            claimed_at: at(100),
            until: at(110),
        };
        for (now, runs) in [(110, false), (109, true), (100, true), (90, true), (89, false), (-10 * HOUR, false)] {
            assert_eq!(claim.runs_at(at(now)), runs, "{now}");
        }
    }
}
