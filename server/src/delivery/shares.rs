//! Shares permits and memory fairly among developers.
//!
//! A free permit goes to the waiting developer that holds the fewest, and there to the oldest waiter. A developer gets
//! another permit only while it holds less than [`FREE_FACTOR`] times the free ones. So one developer alone uses most of the
//! permits, yet the next developer need not wait up to 8 seconds for the first one's request. (Network switches share buffers
//! in this way: Choudhury and Hahne, "Dynamic queue length thresholds", 1998.)

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
};

/// With 7, one developer alone gets seven eighths; two get seven fifteenths each.
const FREE_FACTOR: u64 = 7;

/// A number of permits, and the memory of their deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) permits: u64,
    pub(super) kib: u64,
}

/// The free amount, each developer's share, and the waiters. `D` identifies a developer, `W` a waiter.
#[derive(Debug)]
pub(super) struct Shares<D, W> {
    free: Amount,
    /// One permit and the memory reserved for it.
    reserve: Amount,
    developers: HashMap<D, Share<W>>,
    /// The waiting developers, sorted by permits held, then by the arrival of their oldest waiter.
    order: BTreeSet<(u64, u64, D)>,
    arrivals: u64,
}

#[derive(Debug)]
struct Share<W> {
    held: Amount,
    waiting: VecDeque<(u64, W)>,
}

impl<D: Clone + Ord + Hash, W> Shares<D, W> {
    /// Shares the amount `all`. Each permit takes `reserve_kib` until its delivery is loaded.
    pub(super) fn new(all: Amount, reserve_kib: u64) -> Self {
        let reserve = Amount { permits: 1, kib: reserve_kib };
        Self { free: all, reserve, developers: HashMap::new(), order: BTreeSet::new(), arrivals: 0 }
    }

    pub(super) fn enqueue(&mut self, developer: D, waiter: W) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.change(developer, |share| share.waiting.push_back((arrival, waiter)));
    }

    /// Grants the next free permit and its reserve of memory to a waiter.
    pub(super) fn grant(&mut self) -> Option<(D, W)> {
        if self.free.permits < self.reserve.permits || self.free.kib < self.reserve.kib {
            return None;
        }
        let (_, _, developer) = self.order.iter().find(|(_, _, developer)| self.is_below_limit(developer))?;
        let (developer, reserve) = (developer.clone(), self.reserve);
        let waiter = self.change(developer.clone(), |share| {
            let (_, waiter) = share.waiting.pop_front()?;
            share.held = Amount { permits: share.held.permits + reserve.permits, kib: share.held.kib + reserve.kib };
            Some(waiter)
        })?;
        self.free = Amount { permits: self.free.permits - reserve.permits, kib: self.free.kib - reserve.kib };
        Some((developer, waiter))
    }

    /// Takes an amount back from a developer.
    pub(super) fn release(&mut self, developer: D, amount: Amount) {
        self.free = Amount { permits: self.free.permits + amount.permits, kib: self.free.kib + amount.kib };
        self.change(developer, |share| {
            share.held = Amount { permits: share.held.permits - amount.permits, kib: share.held.kib - amount.kib };
        });
    }

    fn is_below_limit(&self, developer: &D) -> bool {
        let held = self.developers.get(developer).map_or(Amount::default(), |share| share.held);
        held.permits < self.free.permits * FREE_FACTOR && held.kib < self.free.kib * FREE_FACTOR
    }

    /// Changes a developer's share and updates `order`.
    fn change<T>(&mut self, developer: D, change: impl FnOnce(&mut Share<W>) -> T) -> T {
        let share = self
            .developers
            .entry(developer.clone())
            .or_insert_with(|| Share { held: Amount::default(), waiting: VecDeque::new() });
        if let Some((arrival, _)) = share.waiting.front() {
            self.order.remove(&(share.held.permits, *arrival, developer.clone()));
        }
        let outcome = change(share);
        if let Some((arrival, _)) = share.waiting.front() {
            self.order.insert((share.held.permits, *arrival, developer));
        } else if share.held == Amount::default() {
            self.developers.remove(&developer);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERMITS: u64 = 16;
    const RESERVE: u64 = 10;
    const ALL: Amount = Amount { permits: PERMITS, kib: 1_000 };

    fn shares() -> Shares<u8, usize> {
        Shares::new(ALL, RESERVE)
    }

    fn granted(shares: &mut Shares<u8, usize>) -> Vec<(u8, usize)> {
        std::iter::from_fn(|| shares.grant()).collect()
    }

    #[test]
    fn one_developer_alone_gets_seven_eighths_and_the_next_developer_does_not_wait() {
        let mut shares = shares();
        (0..50).for_each(|waiter| shares.enqueue(1, waiter));
        assert_eq!(granted(&mut shares).len() as u64, PERMITS * 7 / 8);
        shares.enqueue(2, 99);
        assert_eq!(granted(&mut shares), [(2, 99)]);
    }

    #[test]
    fn a_single_permit_serves_all_waiters_in_order() {
        let mut shares = Shares::new(Amount { permits: 1, kib: RESERVE }, RESERVE);
        (0..3).for_each(|waiter| shares.enqueue(1, waiter));
        shares.enqueue(2, 3);
        let mut served = Vec::new();
        while let Some((developer, waiter)) = shares.grant() {
            served.push(waiter);
            shares.release(developer, Amount { permits: 1, kib: RESERVE });
        }
        assert_eq!(served, [0, 1, 2, 3], "nobody holds a permit, so the oldest waiter is next");
    }

    #[test]
    fn the_waiting_developer_that_holds_fewer_permits_is_next() {
        let mut shares = shares();
        (0..50).for_each(|waiter| shares.enqueue(1, waiter));
        let held = granted(&mut shares).len();
        (50..100).for_each(|waiter| shares.enqueue(2, waiter));
        granted(&mut shares);
        for _ in 0..held {
            shares.release(1, Amount { permits: 1, kib: RESERVE });
            granted(&mut shares);
        }
        let held = |developer| shares.developers[&developer].held.permits;
        assert!(held(1).abs_diff(held(2)) <= 1, "{} and {}", held(1), held(2));
    }

    #[test]
    fn large_deliveries_of_one_developer_leave_memory_for_the_others() {
        let mut shares = Shares::new(Amount { permits: 1_000, kib: 1_000 }, RESERVE);
        (0..1_000).for_each(|waiter| shares.enqueue(1, waiter));
        granted(&mut shares);
        shares.enqueue(2, 1_000);
        assert_eq!(granted(&mut shares), [(2, 1_000)]);
    }

    #[test]
    fn one_developer_alone_gets_seven_eighths_of_the_memory() {
        let mut shares = Shares::new(Amount { permits: 1_000, kib: 160 }, RESERVE);
        (0..1_000).for_each(|waiter| shares.enqueue(1, waiter));
        assert_eq!(granted(&mut shares).len(), 14);
    }

    #[test]
    fn no_permit_is_granted_without_memory_and_the_first_waiter_gets_the_next() {
        let mut shares = Shares::new(Amount { permits: 10, kib: RESERVE + 5 }, RESERVE);
        for (waiter, developer) in [3, 2, 1].into_iter().enumerate() {
            shares.enqueue(developer, waiter);
        }
        assert_eq!(granted(&mut shares), [(3, 0)]);
        shares.release(3, Amount { permits: 1, kib: RESERVE });
        assert_eq!(granted(&mut shares), [(2, 1)]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Enqueue(u8),
        Shrink(usize),
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let which = any::<usize>;
        prop_oneof![(0..5_u8).prop_map(Step::Enqueue), which().prop_map(Step::Shrink), which().prop_map(Step::End)]
    }

    proptest! {
        #[test]
        fn grants_never_exceed_the_total_come_in_order_and_are_all_returned(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let mut shares = shares();
            let (mut asked, mut held) = (0, Vec::<(u8, Amount)>::new());
            let mut last = [None; 5];
            for step in steps {
                match step {
                    Step::Enqueue(developer) => {
                        shares.enqueue(developer, asked);
                        asked += 1;
                    }
                    Step::Shrink(which) if !held.is_empty() => {
                        let which = which % held.len();
                        let excess = Amount { permits: 0, kib: held[which].1.kib.saturating_sub(1) };
                        held[which].1.kib -= excess.kib;
                        shares.release(held[which].0, excess);
                    }
                    Step::End(which) if !held.is_empty() => {
                        let (developer, amount) = held.swap_remove(which % held.len());
                        shares.release(developer, amount);
                    }
                    Step::Shrink(_) | Step::End(_) => {}
                }
                for (developer, waiter) in granted(&mut shares) {
                    prop_assert!(last[usize::from(developer)] < Some(waiter), "first in, first out");
                    last[usize::from(developer)] = Some(waiter);
                    held.push((developer, Amount { permits: 1, kib: RESERVE }));
                }
                let of = |developer| held.iter().filter(|(of, _)| *of == developer).count() as u64;
                let used = held.iter().map(|(_, amount)| amount.kib).sum::<u64>();
                prop_assert_eq!(shares.free, Amount { permits: PERMITS - held.len() as u64, kib: ALL.kib - used });
                // A developer that holds nothing waits only if no permit is free.
                for (_, _, developer) in &shares.order {
                    prop_assert!(of(*developer) > 0 || shares.free.permits == 0);
                }
            }
            for (developer, amount) in held {
                shares.release(developer, amount);
            }
            while let Some((developer, _)) = shares.grant() {
                shares.release(developer, Amount { permits: 1, kib: RESERVE });
            }
            prop_assert_eq!(shares.free, ALL);
            prop_assert!(shares.order.is_empty() && shares.developers.is_empty());
        }
    }
}
