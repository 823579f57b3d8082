//! The loop of a background worker.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

/// Runs `round` now and after each `period`. A round that takes longer delays the next. Runs forever.
pub async fn poll<F: Future<Output = ()>>(period: Duration, round: impl Fn() -> F) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        round().await;
    }
}
