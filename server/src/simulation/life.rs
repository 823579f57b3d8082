//! Whether a process runs, stands still, or is dead.

use std::{
    future::pending,
    pin::pin,
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
};

use tokio::sync::Notify;

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const DEAD: u8 = 2;

/// The life of one process. Everything that a server does to the world waits for it before and after, so a dead server has no
/// further effect, and one that stands still has none until it goes on.
///
/// (A channel of tokio's that tells all its readers wakes them in a random order.)
#[derive(Default)]
pub(super) struct Life {
    state: AtomicU8,
    goes_on: Notify,
    /// The process runs, and does not reach the database.
    is_cut_off: AtomicBool,
}

impl Life {
    /// Returns when the process runs: at once, later, or never.
    pub(super) async fn runs(&self) {
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

    /// The process stands still.
    pub(super) fn stop(&self) {
        self.change(RUNNING, STOPPED);
    }

    /// The process goes on.
    pub(super) fn go_on(&self) {
        self.change(STOPPED, RUNNING);
        self.goes_on.notify_waiters();
    }

    /// The process dies.
    pub(super) fn kill(&self) {
        self.state.store(DEAD, Ordering::Relaxed);
    }

    /// The way to the database ends, or is there again.
    pub(super) fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::Relaxed);
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    fn change(&self, from: u8, to: u8) {
        // A dead process stays dead.
        let _ = self.state.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}
