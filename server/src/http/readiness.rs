//! The answer of `/readyz`. Everybody may ask, so requests share an answer and do not load the store.

use std::time::Duration;

use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

use super::reply::ApiError;

/// Minimum time between two questions to the store.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Readiness(Mutex<Last>);

#[derive(Default)]
struct Last {
    begun: Option<Instant>,
    answer: Option<(Instant, Result<(), ApiError>)>,
}

impl Readiness {
    /// Returns an answer younger than half a second. Otherwise waits for another request's answer, or asks the store.
    pub(super) async fn of(&self, ask: impl Future<Output = Result<(), ApiError>>) -> Result<(), ApiError> {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &last.answer
            && at.elapsed() < EVERY
        {
            return answer.clone();
        }
        // This time has passed, unless the last client that asked hung up before its answer.
        if let Some(begun) = last.begun {
            sleep_until(begun + EVERY).await;
        }
        last.begun = Some(Instant::now());
        let answer = ask.await;
        last.answer = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join_all;
    use payments_core::ErrorCode;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_store_is_asked_at_most_twice_a_second_even_by_clients_that_hang_up() {
        let (readiness, asked) = (Readiness::default(), Cell::new(0));
        let ask = |millis: u64| {
            let asked = &asked;
            async move {
                asked.set(asked.get() + 1);
                sleep(Duration::from_millis(millis)).await;
                match asked.get() {
                    1 => Ok(()),
                    _ => Err(ApiError::new(ErrorCode::ServiceUnavailable, "away")),
                }
            }
        };
        let answers = join_all((0..100).map(|_| readiness.of(ask(100)))).await;
        assert!(answers.iter().all(Result::is_ok) && asked.get() == 1);
        sleep(EVERY).await;
        let begun = Instant::now();
        for _ in 0..100 {
            // Each client hangs up before the answer.
            let hung_up = timeout(Duration::from_millis(60), readiness.of(ask(100))).await;
            assert!(hung_up.is_err());
        }
        let at_most = begun.elapsed().as_millis() / EVERY.as_millis() + 2;
        assert!(asked.get() <= u32::try_from(at_most).unwrap(), "{} times", asked.get());
        sleep(EVERY).await;
        assert!(readiness.of(ask(0)).await.is_err() && readiness.of(ask(0)).await.is_err());
    }
}
