//! Whether a process runs, stands still, or is dead.

use std::{
    future::pending,
    pin::pin,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

use tokio::sync::Notify;

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const DEAD: u8 = 2;

/// The life of one process. Every effect of a server on the world waits for this before and after. So a dead server has no
/// further effect, and one that stands still has none until it goes on.
///
/// (A channel of tokio's that tells all its readers wakes them in a random order.)
#[derive(Default)]
pub(super) struct Life {
    state: AtomicU8,
    goes_on: Notify,
    /// The state of the process after `calls_left` more calls and answers. It does not change if `calls_left` is 0.
    next: AtomicU8,
    calls_left: AtomicU64,
    died: Notify,
    /// Whether the process reaches the database: a [`Way`].
    way: AtomicU8,
}

/// The way of a running process to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Way {
    Open,
    /// Connections break, and new ones are refused.
    Closed,
    /// Connections stay, and nothing answers.
    Silent,
}

impl Life {
    /// Returns when the process runs: at once, later, or never.
    pub(super) async fn runs(&self) {
        self.count_call();
        loop {
            let mut goes_on = pin!(self.goes_on.notified());
            goes_on.as_mut().enable();
            match self.state.load(Ordering::Relaxed) {
                RUNNING => return,
                STOPPED => goes_on.await,
                _ => pending().await,
            }
        }
    }

    /// Makes the process stand still within `calls` more calls and answers.
    pub(super) fn stop_within(&self, calls: u64) {
        self.end_within(calls, STOPPED);
    }

    /// Makes the process die within `calls` more calls and answers. Returns when it is dead.
    pub(super) async fn die_within(&self, calls: u64) {
        self.end_within(calls, DEAD);
        while self.state.load(Ordering::Relaxed) != DEAD {
            self.died.notified().await;
        }
    }

    fn end_within(&self, calls: u64, next: u8) {
        self.next.store(next, Ordering::Relaxed);
        self.calls_left.store(calls.max(1), Ordering::Relaxed);
    }

    fn count_call(&self) {
        match self.calls_left.load(Ordering::Relaxed) {
            0 => return,
            1 => match self.next.load(Ordering::Relaxed) {
                DEAD => self.kill(),
                next => self.change(RUNNING, next),
            },
            _ => {}
        }
        self.calls_left.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes the process go on, if it stands still or was about to end.
    pub(super) fn go_on(&self) {
        self.calls_left.store(0, Ordering::Relaxed);
        self.change(STOPPED, RUNNING);
        self.goes_on.notify_waiters();
    }

    /// Makes the process die.
    pub(super) fn kill(&self) {
        self.state.store(DEAD, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Closes the way to the database, or opens it again.
    pub(super) fn set_way(&self, way: Way) {
        self.way.store(way as u8, Ordering::Relaxed);
    }

    pub(super) fn way(&self) -> Way {
        match self.way.load(Ordering::Relaxed) {
            way if way == Way::Closed as u8 => Way::Closed,
            way if way == Way::Silent as u8 => Way::Silent,
            _ => Way::Open,
        }
    }

    fn change(&self, from: u8, to: u8) {
        // A dead process stays dead.
        let _ = self.state.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}
