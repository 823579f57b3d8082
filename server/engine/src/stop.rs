//! The end of an engine that cannot go on: nobody could rely on what it would answer next.

use std::{
    error::Error,
    panic::{self, AssertUnwindSafe},
    process,
    sync::atomic::{AtomicBool, Ordering},
};

/// Called once, with what failed and why. See [`Options::on_stop`](crate::Options::on_stop).
pub(crate) type OnStop = dyn Fn(&'static str, &dyn Error) + Send + Sync;

/// Whether the engine has stopped, and whom to tell.
pub(crate) struct Stop {
    on_stop: Box<OnStop>,
    has_stopped: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
#[error("a panic")]
struct Panicked;

impl Stop {
    pub(crate) fn new(on_stop: Box<OnStop>) -> Self {
        Self { on_stop, has_stopped: AtomicBool::new(false) }
    }

    /// Stops the engine. Going on would mean to answer for something nobody knows; the next start reads the journal and
    /// knows.
    pub(crate) fn stop(&self, what: &'static str, error: &dyn Error) {
        if !self.has_stopped.swap(true, Ordering::SeqCst) {
            (self.on_stop)(what, error);
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::SeqCst)
    }

    /// Does what the engine cannot be without: a panic in it stops the engine.
    pub(crate) fn on_panic<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| self.stop("the engine panicked", &Panicked)).ok()
    }
}

/// Ends the process with a message.
pub(crate) fn abort(what: &'static str, error: &dyn Error) {
    tracing::error!(%error, "{what}; the process ends, start it again to recover from the journal");
    eprintln!("{what}: {error}; the process ends, start it again to recover from the journal");
    process::abort();
}
