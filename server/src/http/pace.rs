//! The minimum speed at which a client must take its response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// How many bytes a client must take in each window.
const LEAST_BYTES: usize = 16 * 1024;
pub(super) const WINDOW: Duration = Duration::from_secs(30);

/// Measures how fast a client takes its response. Costs nothing while no write waits.
pub(super) struct Pace {
    length: Duration,
    /// The present window, from the first write that waits until everything is written.
    window: Option<Window>,
}

struct Window {
    written: usize,
    end: Pin<Box<Sleep>>,
}

impl Pace {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, window: None }
    }

    pub(super) fn wrote(&mut self, bytes: usize) {
        if let Some(window) = &mut self.window {
            window.written += bytes;
        }
    }

    pub(super) fn flushed(&mut self) {
        self.window = None;
    }

    /// Call it while a write waits. It becomes ready once the client has taken too little in a window.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let length = self.length;
        let window = self.window.get_or_insert_with(|| Window { written: 0, end: Box::pin(sleep(length)) });
        loop {
            ready!(window.end.as_mut().poll(cx));
            if window.written < LEAST_BYTES {
                return Poll::Ready(());
            }
            window.written = 0;
            window.end.as_mut().reset(Instant::now() + length);
        }
    }
}
