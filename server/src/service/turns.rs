//! Gives turns to requests without a key that lead to a call at a gateway: one at a time for each payment, at most one a
//! second. Anybody who has a payment's address can send them, as often as the rate limit of a client address allows.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use payments_core::PaymentId;
use tokio::{
    sync::OwnedMutexGuard,
    time::{Instant, sleep_until},
};

use crate::gateway::Return;

/// Minimum time between the beginnings of two turns of a payment.
const SPACING: Duration = Duration::from_secs(1);
/// How many payments may have turns at once, or have had one within a second.
const MAX_PAYMENTS: usize = 4096;

/// What a turn is for. Each has its own turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum For {
    /// Beginning an attempt.
    Attempt,
    /// Asking about an attempt from which the customer returns.
    Return,
}

/// The payments that have turns now, or had one just before.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<(PaymentId, For), LastTurn>>);

/// A payment's last turn, locked during its present one.
type LastTurn = Arc<tokio::sync::Mutex<Last>>;

#[derive(Default)]
struct Last {
    begun: Option<Instant>,
    ended: Option<Instant>,
    back: Return,
}

/// A payment's turn. It ends when this is dropped.
pub(super) struct Turn {
    asked_for: Instant,
    has_begun: bool,
    last: OwnedMutexGuard<Last>,
}

impl Turns {
    /// Waits until no other request has the payment's turn. `None` if too many payments have one.
    pub(super) async fn take(&self, id: &PaymentId, what: For) -> Option<Turn> {
        let asked_for = Instant::now();
        let last = self.last((id.clone(), what), asked_for)?;
        Some(Turn { asked_for, has_begun: false, last: last.lock_owned().await })
    }

    fn last(&self, key: (PaymentId, For), now: Instant) -> Option<LastTurn> {
        let mut turns = self.0.lock();
        if turns.len() >= MAX_PAYMENTS && !turns.contains_key(&key) {
            let is_recent = |last: &Last| last.begun.is_some_and(|at| at + SPACING > now);
            // A request that has or awaits a turn holds a second handle.
            turns.retain(|_, last| Arc::strong_count(last) > 1 || last.try_lock().is_ok_and(|last| is_recent(&last)));
            if turns.len() >= MAX_PAYMENTS {
                return None;
            }
        }
        Some(Arc::clone(turns.entry(key).or_default()))
    }
}

impl Turn {
    /// Whether another request asked the same question, and got the answer while this one waited.
    pub(super) fn was_answered(&self, back: &Return) -> bool {
        self.last.ended.is_some_and(|ended| ended >= self.asked_for) && self.last.back == *back
    }

    /// Waits until a second has passed since the last turn began.
    pub(super) async fn begin(&mut self, back: &Return) {
        if let Some(begun) = self.last.begun {
            sleep_until(begun + SPACING).await;
        }
        self.has_begun = true;
        *self.last = Last { begun: Some(Instant::now()), ended: None, back: back.clone() };
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.has_begun {
            self.last.ended = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn id(nth: usize) -> PaymentId {
        format!("pay_{nth}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_payments_turns_are_spaced_and_another_payment_does_not_wait() {
        let (turns, start) = (Turns::default(), Instant::now());
        for second in 0..3 {
            let mut turn = turns.take(&id(1), For::Return).await.unwrap();
            turn.begin(&Return::default()).await;
            assert_eq!(start.elapsed().as_secs(), second);
        }
        for (id, what) in [(id(1), For::Attempt), (id(2), For::Return)] {
            turns.take(&id, what).await.unwrap().begin(&Return::default()).await;
        }
        assert_eq!(start.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waited_shares_the_answer_to_the_same_question() {
        let (turns, id) = (Turns::default(), id(1));
        let mut first = turns.take(&id, For::Return).await.unwrap();
        first.begin(&Return::default()).await;
        let other = Return { attempt: Some("other".to_owned()), ..Return::default() };
        let (second, ()) = tokio::join!(turns.take(&id, For::Return), async {
            sleep(Duration::from_millis(300)).await;
            drop(first);
        });
        let second = second.unwrap();
        assert!(second.was_answered(&Return::default()) && !second.was_answered(&other));
        drop(second);
        // A later request gets an answer of its own.
        sleep(Duration::from_millis(1)).await;
        assert!(!turns.take(&id, For::Return).await.unwrap().was_answered(&Return::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bounded_number_of_payments_have_turns_and_room_returns_after_a_second() {
        let turns = Turns::default();
        let mut held = Vec::new();
        for nth in 0..MAX_PAYMENTS {
            let mut turn = turns.take(&id(nth), For::Return).await.unwrap();
            turn.begin(&Return::default()).await;
            held.push(turn);
        }
        assert!(turns.take(&id(MAX_PAYMENTS), For::Return).await.is_none());
        held.truncate(1);
        assert!(turns.take(&id(MAX_PAYMENTS), For::Return).await.is_none());
        sleep(SPACING).await;
        assert!(turns.take(&id(MAX_PAYMENTS), For::Return).await.is_some());
        assert_eq!(turns.0.lock().len(), 2);
    }
}
