//! The retry budget of a client.

use std::sync::atomic::{AtomicU32, Ordering};

/// A token bucket: retries take tokens and successes return them. When a server is down, the bucket empties and each
/// request is sent once, so that retries do not overload the server.
#[derive(Debug)]
pub(crate) struct Budget {
    tokens: AtomicU32,
    capacity: u32,
}

/// The tokens that a retry takes and a success after a retry returns.
const RETRY_TOKENS: u32 = 5;
/// The tokens that a success on the first try returns.
const SUCCESS_TOKENS: u32 = 1;

impl Budget {
    pub(crate) const fn new(retries: u32) -> Self {
        let capacity = retries.saturating_mul(RETRY_TOKENS);
        Self { tokens: AtomicU32::new(capacity), capacity }
    }

    /// Takes the tokens of a retry. Returns whether there were enough.
    pub(crate) fn take(&self) -> bool {
        let less = |tokens: u32| tokens.checked_sub(RETRY_TOKENS);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Returns the tokens of a success after `tries` tries.
    pub(crate) fn succeeded(&self, tries: u32) {
        let more = if tries > 1 { RETRY_TOKENS } else { SUCCESS_TOKENS };
        let filled = |tokens: u32| Some(tokens.saturating_add(more).min(self.capacity));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_empty_the_budget_and_successes_refill_it() {
        let budget = Budget::new(3);
        assert_eq!((0..10).filter(|_| budget.take()).count(), 3);
        (0..5).for_each(|_| budget.succeeded(1));
        assert!(budget.take());
        assert!(!budget.take());
        (0..100).for_each(|_| budget.succeeded(2));
        assert_eq!((0..10).filter(|_| budget.take()).count(), 3);
    }
}
