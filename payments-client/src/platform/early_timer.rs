//! A timer that is due before the timeouts of requests.

use std::{pin::Pin, sync::Mutex, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, Sleep, sleep};

/// Tokio's driver sleeps until the runtime's next timer. A new timer that is due earlier wakes the driver with a system call.
/// In a program without other timers, each request's timeout can do that. A kept timer that is due even earlier avoids it.
///
/// No timeout depends on this timer: without it, a request only costs the system call.
#[derive(Debug, Default)]
pub(crate) struct EarlyTimer(Mutex<Option<Pin<Box<Sleep>>>>);

impl EarlyTimer {
    /// Sets the timer, unless an earlier one is still running. Call it before a request with this timeout.
    pub(crate) fn keep(&self, timeout: Duration) {
        let Ok(mut timer) = self.0.try_lock() else { return };
        if timer.as_ref().is_none_or(|timer| timer.deadline() <= Instant::now()) {
            let mut next = Box::pin(sleep(timeout));
            // A timer starts when it is first polled.
            let _ = next.as_mut().now_or_never();
            *timer = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(50);

    fn deadline(timer: &EarlyTimer) -> Instant {
        timer.0.lock().unwrap().as_ref().unwrap().deadline()
    }

    #[tokio::test]
    async fn a_timer_is_set_again_only_after_its_deadline() {
        let timer = EarlyTimer::default();
        timer.keep(Duration::from_secs(60));
        let first = deadline(&timer);
        timer.keep(Duration::from_secs(60));
        assert_eq!(deadline(&timer), first);

        let timer = EarlyTimer::default();
        timer.keep(TIMEOUT);
        let first = deadline(&timer);
        sleep(TIMEOUT * 2).await;
        timer.keep(TIMEOUT);
        assert!(deadline(&timer) > first);
    }

    #[test]
    fn a_timer_of_a_runtime_that_ended_does_not_panic() {
        let timer = EarlyTimer::default();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { timer.keep(TIMEOUT) });
            drop(runtime);
            std::thread::sleep(TIMEOUT * 2);
        }
    }
}
