//! The end of a process that cannot go on: what it would say next, nobody could rely on.

use std::panic::{self, AssertUnwindSafe};

use crate::store::StoreError;

/// Does what the store cannot be without. The engine may panic; without its writer the server could only refuse, and a
/// restart may mend it.
pub(super) fn or_stop<T>(work: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| stop("the store panicked", &StoreError::Stopped))
}

/// Going on would mean answering for something nobody knows. A restart reads the journal and knows.
pub(super) fn stop(what: &str, error: &dyn std::error::Error) -> ! {
    tracing::error!(%error, "{what}; the server stops, start it again to recover from the journal");
    std::process::exit(74)
}
