//! Who gets the next place: developers share the dispatcher's places and its memory fairly.
//!
//! A free place goes to the waiting developer that holds the fewest; within a developer, to whoever has waited longest. A
//! developer gets a further place only while it holds less than [`FREE_FACTOR`] times what is free. So one developer
//! alone uses nearly all of it, and the next one never has to wait until a request of the first ends, which may take 8
//! seconds. (Switches share their buffers so: Choudhury and Hahne, "Dynamic queue length thresholds", 1998.)

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
};

/// Seven eighths for one developer alone; of two, each gets seven fifteenths.
const FREE_FACTOR: u64 = 7;

/// Places, and the memory of what is loaded into them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) places: u64,
    pub(super) kib: u64,
}

/// What is free, who holds how much, and who waits. `D` names a developer, `W` is whatever waits.
#[derive(Debug)]
pub(super) struct Shares<D, W> {
    free: Amount,
    /// What a place takes until its delivery has been loaded.
    each: Amount,
    developers: HashMap<D, Share<W>>,
    /// The developers that wait, those that hold fewest first, then those that have waited longest.
    order: BTreeSet<(u64, u64, D)>,
    turn: u64,
}

#[derive(Debug)]
struct Share<W> {
    held: Amount,
    waiting: VecDeque<(u64, W)>,
}

impl<D: Clone + Ord + Hash, W> Shares<D, W> {
    /// Shares `all`. Each place takes `reserve_kib` until it is known what its delivery takes.
    pub(super) fn new(all: Amount, reserve_kib: u64) -> Self {
        let each = Amount { places: 1, kib: reserve_kib };
        Self { free: all, each, developers: HashMap::new(), order: BTreeSet::new(), turn: 0 }
    }

    /// Somebody waits for a place.
    pub(super) fn ask(&mut self, developer: D, waiter: W) {
        self.turn += 1;
        let turn = self.turn;
        self.change(developer, |share| share.waiting.push_back((turn, waiter)));
    }

    /// The next place that can be given, which takes one place and its reserve of memory.
    pub(super) fn grant(&mut self) -> Option<(D, W)> {
        if self.free.places < self.each.places || self.free.kib < self.each.kib {
            return None;
        }
        let (_, _, developer) = self.order.iter().find(|(_, _, developer)| self.may_have_more(developer))?;
        let (developer, each) = (developer.clone(), self.each);
        let waiter = self.change(developer.clone(), |share| {
            let (_, waiter) = share.waiting.pop_front()?;
            share.held = Amount { places: share.held.places + each.places, kib: share.held.kib + each.kib };
            Some(waiter)
        })?;
        self.free = Amount { places: self.free.places - each.places, kib: self.free.kib - each.kib };
        Some((developer, waiter))
    }

    /// A developer gives something back.
    pub(super) fn give_back(&mut self, developer: D, amount: Amount) {
        self.free = Amount { places: self.free.places + amount.places, kib: self.free.kib + amount.kib };
        self.change(developer, |share| {
            share.held = Amount { places: share.held.places - amount.places, kib: share.held.kib - amount.kib };
        });
    }

    fn may_have_more(&self, developer: &D) -> bool {
        let held = self.developers.get(developer).map_or(Amount::default(), |share| share.held);
        held.places < self.free.places * FREE_FACTOR && held.kib < self.free.kib * FREE_FACTOR
    }

    /// Changes a developer's share and keeps its position in the order.
    fn change<T>(&mut self, developer: D, change: impl FnOnce(&mut Share<W>) -> T) -> T {
        let share = self
            .developers
            .entry(developer.clone())
            .or_insert_with(|| Share { held: Amount::default(), waiting: VecDeque::new() });
        if let Some((turn, _)) = share.waiting.front() {
            self.order.remove(&(share.held.places, *turn, developer.clone()));
        }
        let outcome = change(share);
        if let Some((turn, _)) = share.waiting.front() {
            self.order.insert((share.held.places, *turn, developer));
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

    const PLACES: u64 = 16;
    const RESERVE: u64 = 10;
    const ALL: Amount = Amount { places: PLACES, kib: 1_000 };

    fn shares() -> Shares<u8, usize> {
        Shares::new(ALL, RESERVE)
    }

    fn granted(shares: &mut Shares<u8, usize>) -> Vec<(u8, usize)> {
        std::iter::from_fn(|| shares.grant()).collect()
    }

    #[test]
    fn one_developer_alone_gets_seven_eighths_and_the_next_one_does_not_wait() {
        let mut shares = shares();
        (0..50).for_each(|waiter| shares.ask(1, waiter));
        assert_eq!(granted(&mut shares).len() as u64, PLACES * 7 / 8);
        shares.ask(2, 99);
        assert_eq!(granted(&mut shares), [(2, 99)]);
    }

    #[test]
    fn a_single_place_is_enough_for_all_in_turn() {
        let mut shares = Shares::new(Amount { places: 1, kib: RESERVE }, RESERVE);
        (0..3).for_each(|waiter| shares.ask(1, waiter));
        shares.ask(2, 3);
        let mut served = Vec::new();
        while let Some((developer, waiter)) = shares.grant() {
            served.push(waiter);
            shares.give_back(developer, Amount { places: 1, kib: RESERVE });
        }
        assert_eq!(served, [0, 1, 2, 3], "nobody holds anything, so whoever has waited longest");
    }

    #[test]
    fn of_two_that_wait_the_one_that_holds_fewer_is_next() {
        let mut shares = shares();
        (0..50).for_each(|waiter| shares.ask(1, waiter));
        let held = granted(&mut shares).len();
        (50..100).for_each(|waiter| shares.ask(2, waiter));
        granted(&mut shares);
        for _ in 0..held {
            shares.give_back(1, Amount { places: 1, kib: RESERVE });
            granted(&mut shares);
        }
        let held = |developer| shares.developers[&developer].held.places;
        assert!(held(1).abs_diff(held(2)) <= 1, "{} and {}", held(1), held(2));
    }

    #[test]
    fn large_deliveries_of_one_developer_leave_memory_for_the_others() {
        let mut shares = Shares::new(Amount { places: 1_000, kib: 1_000 }, RESERVE);
        (0..1_000).for_each(|waiter| shares.ask(1, waiter));
        granted(&mut shares);
        shares.ask(2, 1_000);
        assert_eq!(granted(&mut shares), [(2, 1_000)]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask(u8),
        Shrink(usize),
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let which = any::<usize>;
        prop_oneof![(0..5_u8).prop_map(Step::Ask), which().prop_map(Step::Shrink), which().prop_map(Step::End)]
    }

    proptest! {
        #[test]
        fn no_more_is_given_than_there_is_each_waits_its_turn_and_all_comes_back(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let mut shares = shares();
            let (mut asked, mut held) = (0, Vec::<(u8, Amount)>::new());
            let mut last = [None; 5];
            for step in steps {
                match step {
                    Step::Ask(developer) => {
                        shares.ask(developer, asked);
                        asked += 1;
                    }
                    Step::Shrink(which) if !held.is_empty() => {
                        let which = which % held.len();
                        let excess = Amount { places: 0, kib: held[which].1.kib.saturating_sub(1) };
                        held[which].1.kib -= excess.kib;
                        shares.give_back(held[which].0, excess);
                    }
                    Step::End(which) if !held.is_empty() => {
                        let (developer, amount) = held.swap_remove(which % held.len());
                        shares.give_back(developer, amount);
                    }
                    Step::Shrink(_) | Step::End(_) => {}
                }
                for (developer, waiter) in granted(&mut shares) {
                    prop_assert!(last[usize::from(developer)] < Some(waiter), "first in, first out");
                    last[usize::from(developer)] = Some(waiter);
                    held.push((developer, Amount { places: 1, kib: RESERVE }));
                }
                let of = |developer| held.iter().filter(|(of, _)| *of == developer).count() as u64;
                let used = held.iter().map(|(_, amount)| amount.kib).sum::<u64>();
                prop_assert_eq!(shares.free, Amount { places: PLACES - held.len() as u64, kib: ALL.kib - used });
                // Whoever holds nothing waits only if nothing is free.
                for (_, _, developer) in &shares.order {
                    prop_assert!(of(*developer) > 0 || shares.free.places == 0);
                }
            }
            for (developer, amount) in held {
                shares.give_back(developer, amount);
            }
            while let Some((developer, _)) = shares.grant() {
                shares.give_back(developer, Amount { places: 1, kib: RESERVE });
            }
            prop_assert_eq!(shares.free, ALL);
            prop_assert!(shares.order.is_empty() && shares.developers.is_empty());
        }
    }
}
