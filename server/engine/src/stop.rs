//! Stops an engine that cannot go on, because its next answer could be wrong.

use std::{
    error::Error,
    io::{self, Write},
    panic::{self, AssertUnwindSafe},
    process,
    sync::atomic::{AtomicBool, Ordering},
};

/// Called once with what failed and why. See [`Options::on_stop`](crate::Options::on_stop).
pub(crate) type OnStop = dyn Fn(&'static str, &dyn Error) + Send + Sync;

/// Whether the engine has stopped, and the function that is called when it does.
pub(crate) struct Stop {
    pub(crate) on_stop: Box<OnStop>,
    pub(crate) has_stopped: AtomicBool,
}

impl Stop {
    /// Stops the engine, which no longer knows what the disk contains. The next start reads that from the journal.
    pub(crate) fn stop(&self, what: &'static str, error: &dyn Error) {
        if !self.has_stopped.swap(true, Ordering::SeqCst) {
            (self.on_stop)(what, error);
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::SeqCst)
    }

    /// Does work that the engine needs: a panic in it stops the engine.
    pub(crate) fn on_panic<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let panicked = |_| self.stop("the engine panicked", &io::Error::other("a panic"));
        panic::catch_unwind(AssertUnwindSafe(work)).map_err(panicked).ok()
    }
}

/// Ends the process with a message.
pub(crate) fn abort(what: &'static str, error: &dyn Error) {
    tracing::error!(%error, "{what}; the process ends, start it again to recover from the journal");
    // Not `eprintln!`, which panics if the stream is closed.
    let _ = writeln!(io::stderr(), "{what}: {error}; the process ends, start it again to recover from the journal");
    process::abort();
}
