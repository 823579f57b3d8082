//! Rate-limit windows in a table of bounded size, with constant work per request.
//!
//! All windows last one minute, so they expire in the order of their starts, which is the order of a queue. Each request
//! removes at most [`EXPIRED_PER_TAKE`] expired windows and adds at most one, so the table shrinks faster than it grows.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

use crate::store::{WINDOW, WindowId};

/// Maximum number of expired windows that one request removes. Two, because a request adds at most one.
const EXPIRED_PER_TAKE: usize = 2;

pub(super) struct Windows<K> {
    pub(super) limit: u32,
    capacity: usize,
    by_key: HashMap<K, Window>,
    /// Every window in `by_key`, oldest first. A key whose window restarted before its entry was removed has two entries. The
    /// older one does not match `begun`.
    oldest_first: VecDeque<(Instant, K)>,
}

pub(super) struct Window {
    pub(super) begun: Instant,
    /// Admitted requests, as far as this server knows.
    pub(super) used: u32,
    /// What the servers on a store share of this window.
    pub(super) shared: Shared,
}

/// The part of a window that the servers tell each other.
#[derive(Default)]
pub(super) struct Shared {
    /// The window that all servers share, once this one knows it.
    pub(super) id: Option<WindowId>,
    /// Requests that this server admitted since its last report.
    pub(super) unreported: u32,
    /// Requests in a report that is not answered yet.
    pub(super) in_report: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// Requests left in the window. `None` if this request exceeds the limit.
    pub(super) remaining: Option<u32>,
    pub(super) left: Duration,
    /// Whether an unexpired window was evicted to make room. Its key starts a new window with its next request.
    pub(super) evicted: bool,
}

impl<K: Hash + Eq + Clone> Windows<K> {
    /// Allows `limit` requests per key and window, in at most `capacity` windows.
    pub(super) fn new(limit: u32, capacity: usize) -> Self {
        Self { limit, capacity: capacity.max(1), by_key: HashMap::new(), oldest_first: VecDeque::new() }
    }

    pub(super) fn take(&mut self, key: K, now: Instant) -> Taken {
        self.remove_expired(now);
        let limit = self.limit;
        let (window, evicted) = self.running(key, now);
        let remaining = limit.checked_sub(window.used + 1);
        if remaining.is_some() {
            window.used += 1;
        }
        let left = WINDOW.saturating_sub(now.duration_since(window.begun));
        Taken { remaining, left, evicted }
    }

    /// The outcome of another request of a key whose window is used up. Does not count the request.
    pub(super) fn used_up(&self, key: &K, now: Instant) -> Option<Taken> {
        let window = self.by_key.get(key).filter(|window| window.used >= self.limit && !is_over(window.begun, now))?;
        let left = WINDOW.saturating_sub(now.duration_since(window.begun));
        Some(Taken { remaining: None, left, evicted: false })
    }

    /// The key's running window. If there was none, it begins now. Also returns whether an unexpired window was evicted.
    pub(super) fn running(&mut self, key: K, now: Instant) -> (&mut Window, bool) {
        let is_running = self.by_key.get(&key).is_some_and(|window| !is_over(window.begun, now));
        let begin = || Window { begun: now, used: 0, shared: Shared::default() };
        if is_running {
            return (self.by_key.entry(key).or_insert_with(begin), false);
        }
        let evicted = self.enqueue(key.clone(), now);
        self.by_key.remove(&key);
        (self.by_key.entry(key).or_insert_with(begin), evicted)
    }

    /// Moves the start of a key's running window to the start that other servers know.
    pub(super) fn move_begin(&mut self, key: K, begun: Instant, now: Instant) {
        self.running(key.clone(), now).0.begun = begun;
        // The entry of the earlier start is outdated now.
        self.enqueue(key, begun);
    }

    pub(super) fn remove_expired(&mut self, now: Instant) {
        for _ in 0..EXPIRED_PER_TAKE {
            match self.oldest_first.front() {
                Some((begun, _)) if is_over(*begun, now) => self.remove_oldest(),
                _ => return,
            };
        }
    }

    /// Appends a window to the queue. Returns whether it evicted an unexpired window.
    fn enqueue(&mut self, key: K, now: Instant) -> bool {
        let is_full = self.oldest_first.len() >= self.capacity;
        // Outdated entries are older than all unexpired windows, so they go first.
        let evicted = is_full && self.remove_oldest().is_some_and(|begun| !is_over(begun, now));
        self.oldest_first.push_back((now, key));
        evicted
    }

    /// Removes the first entry, and its window unless it has restarted. Returns the start of the removed window.
    fn remove_oldest(&mut self) -> Option<Instant> {
        let (begun, key) = self.oldest_first.pop_front()?;
        let window = self.by_key.get(&key)?;
        if window.begun != begun {
            return None;
        }
        self.by_key.remove(&key);
        Some(begun)
    }
}

fn is_over(begun: Instant, now: Instant) -> bool {
    now.duration_since(begun) >= WINDOW
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The specification, without the bound on work. A window starts with the first request and lasts a minute. Beyond the
    /// capacity, the oldest window is evicted.
    struct Model {
        limit: u32,
        capacity: usize,
        /// The key, the start and the admitted requests of each window, oldest first.
        windows: Vec<(u8, Instant, u32)>,
    }

    impl Model {
        fn take(&mut self, key: u8, now: Instant) -> (Option<u32>, Duration, bool) {
            self.windows.retain(|(_, begun, _)| now.duration_since(*begun) < WINDOW);
            let mut evicted = false;
            if self.windows.iter().all(|(known, ..)| *known != key) {
                if self.windows.len() == self.capacity {
                    self.windows.remove(0);
                    evicted = true;
                }
                self.windows.push((key, now, 0));
            }
            let (_, begun, used) = self.windows.iter_mut().find(|(known, ..)| *known == key).unwrap();
            let remaining = (*used < self.limit).then(|| {
                *used += 1;
                self.limit - *used
            });
            (remaining, WINDOW - now.duration_since(*begun), evicted)
        }
    }

    /// Counts a request and checks that it removes few entries of the queue.
    fn take<K: Hash + Eq + Clone>(windows: &mut Windows<K>, key: K, now: Instant) -> Taken {
        let before = windows.oldest_first.len();
        let taken = windows.take(key, now);
        assert!(before <= windows.oldest_first.len() + EXPIRED_PER_TAKE, "{taken:?}");
        taken
    }

    proptest! {
        #[test]
        fn the_table_counts_as_the_model_does(
            requests in prop::collection::vec((0_u8..12, 0_u64..25_000), 1..200),
            limit in 1_u32..4,
            capacity in 1_usize..14,
        ) {
            let mut windows = Windows::new(limit, capacity);
            let mut model = Model { limit, capacity, windows: Vec::new() };
            let mut now = Instant::now();
            for (key, millis) in requests {
                // Most requests come close together; some come much later.
                now += Duration::from_millis(if millis < 20_000 { millis / 100 } else { millis });
                let taken = take(&mut windows, key, now);
                prop_assert_eq!((taken.remaining, taken.left, taken.evicted), model.take(key, now));
                prop_assert!(windows.by_key.len() <= windows.oldest_first.len());
                prop_assert!(windows.oldest_first.len() <= capacity);
            }
        }
    }

    #[test]
    fn a_million_addresses_cost_constant_work_each_and_bounded_memory() {
        const CAPACITY: usize = 10_000;
        let mut windows = Windows::new(1, CAPACITY);
        let begun = Instant::now();
        let mut evicted = 0;
        for address in 0..1_000_000_u64 {
            let taken = take(&mut windows, address, begun + Duration::from_micros(address));
            evicted += usize::from(taken.evicted);
        }
        assert_eq!((windows.by_key.len(), windows.oldest_first.len()), (CAPACITY, CAPACITY));
        assert_eq!(evicted, 1_000_000 - CAPACITY);
        // A minute later, half as many requests remove all of them.
        let later = begun + 2 * WINDOW;
        for _ in 0..CAPACITY / 2 {
            windows.take(u64::MAX, later);
        }
        assert_eq!((windows.by_key.len(), windows.oldest_first.len()), (1, 1));
    }

    #[test]
    fn a_full_table_evicts_the_oldest_window_and_its_key_starts_a_new_one() {
        let mut windows = Windows::new(1, 2);
        let now = Instant::now();
        for (key, remaining, evicted) in [
            ("a", Some(0), false),
            ("b", Some(0), false),
            ("a", None, false),
            ("c", Some(0), true),
            ("a", Some(0), true),
        ] {
            let taken = windows.take(key, now);
            assert_eq!((taken.remaining, taken.evicted), (remaining, evicted), "{key}");
        }
    }
}
