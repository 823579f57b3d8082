//! How a gateway answers: its circuit breaker, and its calls of the last hour.

use parking_lot::Mutex;
use tokio::time::Instant;

use super::circuit::Circuit;

const MINUTES: usize = 60;

/// The health of a gateway, as this server sees it.
pub struct Health {
    pub(super) circuit: Circuit,
    started: Instant,
    /// The calls of each minute of the last hour, and the minute's number.
    hour: Mutex<[Minute; MINUTES]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Minute {
    number: u64,
    answered: u64,
    unanswered: u64,
}

impl Default for Health {
    fn default() -> Self {
        let (circuit, hour) = (Circuit::default(), Mutex::new([Minute::default(); MINUTES]));
        Self { circuit, started: Instant::now(), hour }
    }
}

impl Health {
    /// Records a call, and whether it was answered.
    pub(super) fn called(&self, is_answered: bool, now: Instant) {
        match is_answered {
            true => self.circuit.answered(),
            false => self.circuit.unanswered(now),
        }
        let number = self.minute(now);
        let mut hour = self.hour.lock();
        let place = usize::try_from(number % MINUTES as u64).unwrap_or_default();
        if let Some(minute) = hour.get_mut(place) {
            if minute.number != number {
                *minute = Minute { number, ..Minute::default() };
            }
            match is_answered {
                true => minute.answered += 1,
                false => minute.unanswered += 1,
            }
        }
    }

    fn minute(&self, now: Instant) -> u64 {
        // The first minute is 1: 0 stands for none.
        now.duration_since(self.started).as_secs() / 60 + 1
    }

    /// The answered and the unanswered calls of the last hour.
    pub fn last_hour(&self) -> (u64, u64) {
        let first = self.minute(Instant::now()).saturating_sub(MINUTES as u64 - 1);
        let hour = self.hour.lock();
        let recent = hour.iter().filter(|minute| minute.number >= first && minute.number > 0);
        recent.fold((0, 0), |(answered, un), minute| (answered + minute.answered, un + minute.unanswered))
    }

    /// Whether the circuit breaker holds calls back.
    pub fn is_held_back(&self) -> bool {
        self.circuit.is_open()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_calls_of_the_last_hour_count() {
        let health = Health::default();
        let call = |is_answered| health.called(is_answered, Instant::now());
        call(true);
        call(false);
        assert_eq!(health.last_hour(), (1, 1));
        tokio::time::advance(Duration::from_secs(30 * 60)).await;
        call(true);
        assert_eq!(health.last_hour(), (2, 1));
        tokio::time::advance(Duration::from_secs(30 * 60)).await;
        assert_eq!(health.last_hour(), (1, 0), "the first minute is an hour ago");
        tokio::time::advance(Duration::from_secs(90 * 60)).await;
        assert_eq!(health.last_hour(), (0, 0));
        call(false);
        assert_eq!(health.last_hour(), (0, 1));
    }
}
