//! How many retries a client may make, whatever each request would like.

use std::sync::atomic::{AtomicU32, Ordering};

/// Tokens that retries take and successes bring back. When a server is down, the tokens run out and each request is
/// sent once, so that a fleet of clients does not keep it down.
#[derive(Debug)]
pub(crate) struct Budget {
    tokens: AtomicU32,
    capacity: u32,
}

/// What a retry takes, and what a success after one brings back.
const RETRY: u32 = 5;
/// What a success on the first try brings back.
const SUCCESS: u32 = 1;

impl Budget {
    pub(crate) const fn new(retries: u32) -> Self {
        let capacity = retries.saturating_mul(RETRY);
        Self { tokens: AtomicU32::new(capacity), capacity }
    }

    /// Takes a retry's worth, if there is that much.
    pub(crate) fn take(&self) -> bool {
        let less = |tokens: u32| tokens.checked_sub(RETRY);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Notes a success.
    pub(crate) fn succeeded(&self, tries: u32) {
        let more = if tries > 1 { RETRY } else { SUCCESS };
        let filled = |tokens: u32| Some(tokens.saturating_add(more).min(self.capacity));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_server_uses_the_budget_up_and_successes_fill_it_again() {
        let budget = Budget::new(3);
        assert_eq!((0..10).filter(|_| budget.take()).count(), 3);
        (0..5).for_each(|_| budget.succeeded(1));
        assert!(budget.take());
        assert!(!budget.take());
        (0..100).for_each(|_| budget.succeeded(2));
        assert_eq!((0..10).filter(|_| budget.take()).count(), 3);
    }
}
