//! Panics of the servers' tasks. A runtime catches panics, and nobody would notice them.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Records the panics of all threads from now on, each in its own thread.
pub(super) fn catch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|panic| PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()))));
    });
}

/// The panics of this thread since the last call.
pub(super) fn take() -> Vec<String> {
    PANICS.take()
}
