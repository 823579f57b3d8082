//! Panics of the servers' tasks. A runtime catches them, and nobody would hear of them.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on the panics of all threads are noted, each by its own thread.
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
