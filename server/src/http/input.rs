//! Counts the bytes that clients have sent and that are still in memory: of heads, complete or not, and of bodies.
//!
//! The first [`FREE`] bytes of a connection do not count. The rest counts against a budget that all connections share.
//! Bodies of more than 64 KiB have a limit of their own.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use crate::process::budget::{Budget, Held};

/// The limit for the input of all connections of a listener together.
pub(super) const BUDGET: i64 = 32 * 1024 * 1024;
/// The size of hyper's first buffer, which every connection has anyway.
const FREE: usize = 8 * 1024;
/// The most that hyper and a handler hold of one connection's input.
const AT_MOST: usize = 128 * 1024;

/// The input of one connection. Its task reads it, but another task may drain the rest of a dropped body.
pub(super) struct Input {
    budget: Arc<Budget<IpAddr>>,
    peer: IpAddr,
    present: Mutex<Present>,
}

#[derive(Default)]
struct Present {
    /// Bytes of the present request, and perhaps the first ones of the next.
    bytes: usize,
    last_read: usize,
    is_refused: bool,
    held: Option<Held<IpAddr>>,
}

impl Input {
    pub(super) fn new(budget: Arc<Budget<IpAddr>>, peer: IpAddr) -> Self {
        Self { budget, peer, present: Mutex::default() }
    }

    /// Counts bytes that were read. Returns whether there is room for them.
    pub(super) fn read(&self, bytes: usize) -> bool {
        let mut present = self.present.lock();
        present.bytes = present.bytes.saturating_add(bytes);
        present.last_read = bytes;
        if present.bytes <= FREE {
            return true;
        }
        let amount = counted(present.bytes);
        let has_room = match &mut present.held {
            Some(held) => held.grow_to(amount),
            held => {
                *held = self.budget.take(&self.peer, amount);
                held.is_some()
            }
        };
        present.is_refused |= !has_room;
        has_room
    }

    pub(super) fn is_refused(&self) -> bool {
        self.present.lock().is_refused
    }

    /// Ends the present request. Only the bytes that were read last can belong to the next one.
    pub(super) fn request_ended(&self) {
        let mut present = self.present.lock();
        let rest = present.last_read;
        (present.bytes, present.is_refused) = (rest, false);
        match &mut present.held {
            Some(held) if rest > FREE => held.shrink_to(counted(rest)),
            held => *held = None,
        }
    }
}

fn counted(bytes: usize) -> i64 {
    i64::try_from(bytes.min(AT_MOST).saturating_sub(FREE)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::BudgetMetrics;

    const KIB: usize = 1024;

    #[test]
    fn input_longer_than_a_usual_head_counts_until_its_request_ends() {
        let metrics = BudgetMetrics::default();
        let budget = Budget::new(64 * 1024, metrics.clone());
        let input = Input::new(Arc::clone(&budget), [127, 0, 0, 1].into());
        assert!((0..100).all(|_| {
            let has_room = input.read(500);
            input.request_ended();
            has_room
        }));
        assert_eq!(metrics.held.get(), 0);
        assert!(input.read(8 * KIB) && input.read(4 * KIB));
        assert_eq!(metrics.held.get(), 4 * 1024 + 500, "with what may have been left of the request before");
        input.request_ended();
        assert_eq!(metrics.held.get(), 0);
        assert!(input.read(20 * KIB) && !input.read(60 * KIB) && input.is_refused());
        input.request_ended();
        assert!(!input.is_refused());
        drop(input);
        assert_eq!((metrics.held.get(), metrics.refused.get()), (0, 1));
    }
}
