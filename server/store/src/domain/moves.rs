//! The moves of a payment, for its timeline. Each has its cause and the gateway's words.

use payments_core::{RawStatus, TimelineKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::{GatewayName, Session};

/// How many moves a session keeps. A payment has few; most are errors of an unreachable gateway.
const MAX_MOVES: usize = 40;
/// The maximum length of the words of a move, in characters.
const MAX_WORDS: usize = 300;

/// Something that happened to a payment, and that nothing else in its session records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub at: Timestamp,
    pub kind: TimelineKind,
    /// What happened, and why.
    pub words: String,
    /// How many times it happened in a row, if more than once, and when last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<(u32, Timestamp)>,
}

impl Session {
    /// Records a move. If it equals the last one, counts it. If there is no room, drops the oldest error of a gateway.
    pub fn record(&mut self, at: Timestamp, kind: TimelineKind, words: impl Into<String>) {
        let words: String = words.into().chars().filter(|char| !char.is_control()).take(MAX_WORDS).collect();
        if let Some(last) = self.moves.last_mut().filter(|last| last.kind == kind && last.words == words) {
            let times = last.again.map_or(1, |(times, _)| times);
            last.again = Some((times.saturating_add(1), at));
            return;
        }
        if self.moves.len() >= MAX_MOVES {
            let oldest = self.moves.iter().position(|it| it.kind == TimelineKind::GatewayError).unwrap_or_default();
            self.moves.remove(oldest);
        }
        self.moves.push(Move { at, kind, words, again: None });
    }

    /// Records the change of status since `before`, if there is one. `title` gives the titles of gateways.
    pub fn record_change(&mut self, before: &Self, title: impl Fn(GatewayName) -> &'static str) {
        let was = &before.payment.raw_status;
        // A refund that failed is an entry of its own.
        if self.payment.raw_status == *was || *was == RawStatus::Refunded {
            return;
        }
        if let Some(kind) = kind_of(self) {
            let words = self.cause_since(before, &kind, title);
            self.record(self.payment.updated_at, kind, words);
        }
    }

    fn cause_since(&self, before: &Self, kind: &TimelineKind, title: impl Fn(GatewayName) -> &'static str) -> String {
        let was_decided = before.needs_manual_review() && !self.needs_manual_review();
        let Some(attempt) = self.last_attempt() else {
            return match kind {
                TimelineKind::Expired => "The session ended, and nobody had paid.".to_owned(),
                _ if self.payment.is_simulated => "The outcome was simulated.".to_owned(),
                _ => "The customer went back to the shop.".to_owned(),
            };
        };
        let gateway = title(attempt.gateway);
        let why = attempt.failure.as_ref().map_or_else(|| ".".to_owned(), |words| format!(": {words}"));
        match (kind, &attempt.transaction) {
            (TimelineKind::AttemptFailed, _) => format!("{gateway} says that this attempt failed{why}"),
            (TimelineKind::Failed, _) if self.attempt.is_none() => {
                format!("The session ended, and the last attempt at {gateway} had failed.")
            }
            (TimelineKind::Cancelled, _) if self.attempt.is_none() => "The customer went back to the shop.".to_owned(),
            (TimelineKind::SentToGateway, _) => format!("The customer was sent to {gateway}."),
            _ if was_decided => "The operator decided after a manual review.".to_owned(),
            (TimelineKind::Completed, Some(transaction)) => {
                format!("{gateway} confirmed the money: transaction {transaction}.")
            }
            (TimelineKind::Completed, None) => format!("{gateway} confirmed the money."),
            (TimelineKind::Failed, _) => format!("{gateway} says that the payment failed{why}"),
            (TimelineKind::Cancelled, _) => format!("{gateway} says that the customer cancelled."),
            _ => format!("The session ended, and {gateway} had no money."),
        }
    }
}

/// The kind of move that leads to a session's status; `None` if another record of the timeline shows it.
pub fn kind_of(session: &Session) -> Option<TimelineKind> {
    match session.payment.raw_status {
        RawStatus::Processing => Some(TimelineKind::SentToGateway),
        // In records of early versions, this status means `created`.
        RawStatus::Pending if !session.ended_attempts.is_empty() => Some(TimelineKind::AttemptFailed),
        RawStatus::Paid => Some(TimelineKind::Completed),
        RawStatus::Failed => Some(TimelineKind::Failed),
        RawStatus::Cancelled => Some(TimelineKind::Cancelled),
        RawStatus::Expired => Some(TimelineKind::Expired),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        GatewayAttempt, ManualReview,
        samples::{at, attempt, session},
    };

    #[test]
    fn a_repeated_move_is_counted_and_the_number_of_moves_is_bounded() {
        let mut session = session();
        session.record(at(0), TimelineKind::SentToGateway, "once");
        for second in 1..=3 {
            session.record(at(second), TimelineKind::GatewayError, "no answer");
        }
        assert_eq!(session.moves[1].again, Some((3, at(3))));
        for second in 4..200 {
            session.record(at(second), TimelineKind::GatewayError, format!("error {second}\n{}", "x".repeat(999)));
        }
        assert_eq!((session.moves.len(), &*session.moves[0].words), (MAX_MOVES, "once"));
        assert!(session.moves.iter().all(|it| it.words.len() <= MAX_WORDS && !it.words.contains('\n')));
    }

    #[test]
    fn the_json_of_a_session_without_moves_has_no_moves() {
        assert!(!serde_json::to_string(&session()).unwrap().contains("moves"));
    }

    #[test]
    fn a_change_of_status_is_recorded_with_its_cause() {
        type Case<'c> = (&'c Session, RawStatus, fn(&mut Session), &'c str);
        let new = session();
        let sent = Session { attempt: Some(attempt("a")), ..moved(&new, RawStatus::Processing, |_| ()) };
        let failed = moved(&sent, RawStatus::Pending, |it| it.end_attempt(at(9)));
        let review = ManualReview { what: "another amount".into(), found_at: at(9), resolved: None };
        let reviewed = Session { review: Some(review), ..sent.clone() };
        let cases: [Case<'_>; 15] = [
            (&new, RawStatus::Created, |_| (), ""),
            (&new, RawStatus::Pending, |_| (), ""),
            (&new, RawStatus::Expired, |_| (), "expired: The session ended, and nobody had paid."),
            (&new, RawStatus::Cancelled, |_| (), "cancelled: The customer went back to the shop."),
            (&new, RawStatus::Paid, |it| it.payment.is_simulated = true, "completed: The outcome was simulated."),
            (&new, RawStatus::Processing, send, "sent_to_gateway: The customer was sent to The wallet."),
            (&sent, RawStatus::Paid, |_| (), "completed: The wallet confirmed the money."),
            (&sent, RawStatus::Paid, confirm, "completed: The wallet confirmed the money: transaction T1."),
            (&sent, RawStatus::Failed, refuse, "failed: The wallet says that the payment failed: no balance"),
            (&sent, RawStatus::Cancelled, |_| (), "cancelled: The wallet says that the customer cancelled."),
            (&sent, RawStatus::Expired, |_| (), "expired: The session ended, and The wallet had no money."),
            (
                &sent,
                RawStatus::Pending,
                |it| it.end_attempt(at(9)),
                "attempt_failed: The wallet says that this attempt failed.",
            ),
            (
                &failed,
                RawStatus::Failed,
                |_| (),
                "failed: The session ended, and the last attempt at The wallet had failed.",
            ),
            (&failed, RawStatus::Cancelled, |_| (), "cancelled: The customer went back to the shop."),
            (
                &reviewed,
                RawStatus::Paid,
                |it| it.review = None,
                "completed: The operator decided after a manual review.",
            ),
        ];
        for (before, status, change, told) in cases {
            let before = Session { moves: Vec::new(), ..before.clone() };
            let after = moved(&before, status, change);
            let moves = after.moves.iter().map(|it| format!("{}: {}", it.kind.as_str(), it.words));
            assert_eq!(moves.collect::<Vec<_>>().join("; "), told);
        }
    }

    fn moved(before: &Session, status: RawStatus, change: fn(&mut Session)) -> Session {
        let mut after = before.next();
        after.payment.raw_status = status;
        change(&mut after);
        after.record_change(before, |_| "The wallet");
        after
    }

    fn send(session: &mut Session) {
        session.attempt = Some(attempt("a"));
    }

    fn confirm(session: &mut Session) {
        session.attempt = Some(GatewayAttempt { transaction: Some("T1".into()), ..attempt("a") });
    }

    fn refuse(session: &mut Session) {
        session.attempt = Some(GatewayAttempt { failure: Some("no balance".into()), ..attempt("a") });
    }
}
