//! Wakes an inbox before its next poll.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use futures_util::task::AtomicWaker;

/// A signal that stays set until somebody has waited for it.
#[derive(Debug, Default)]
pub(super) struct Wake {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

impl Wake {
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    pub(super) async fn wait(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.is_set.swap(false, Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
