//! A bounded amount of something, such as memory, that holders share fairly.
//!
//! A holder gets an amount only if it then holds at most as much as stays free. So a single holder gets half of the budget,
//! two get a third each, and the next one always finds something free. Nobody waits: a request for too much is refused.
//! (Deliveries wait for their permits instead: see `delivery::shares`.)

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;

use crate::metrics::BudgetMetrics;

pub struct Budget<K> {
    shares: Mutex<Shares<K>>,
    metrics: BudgetMetrics,
}

struct Shares<K> {
    /// Negative while holders were forced to exceed the budget.
    free: i64,
    /// The amount of each holder, without those that hold nothing.
    held: HashMap<K, i64>,
}

impl<K: Clone + Eq + Hash> Budget<K> {
    /// A budget of `at_most`, shown by these metrics.
    pub fn new(at_most: i64, metrics: BudgetMetrics) -> Arc<Self> {
        // Several budgets may share one metric.
        metrics.at_most.inc_by(at_most);
        Arc::new(Self { shares: Mutex::new(Shares { free: at_most, held: HashMap::new() }), metrics })
    }

    /// Takes an amount. `None` if it exceeds the holder's share.
    pub fn take(self: &Arc<Self>, holder: &K, amount: i64) -> Option<Held<K>> {
        let mut held = Held { budget: Arc::clone(self), holder: holder.clone(), amount: 0 };
        held.grow_to(amount).then_some(held)
    }

    /// Takes an amount even if it exceeds the holder's share, for work that can no longer be refused.
    pub fn force(self: &Arc<Self>, holder: &K, amount: i64) -> Held<K> {
        self.shares.lock().add(holder, amount);
        self.metrics.held.inc_by(amount);
        Held { budget: Arc::clone(self), holder: holder.clone(), amount }
    }
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Whether a holder may take `more`. If nobody holds anything, it may take the whole budget.
    fn allows(&self, holder: &K, more: i64) -> bool {
        let held = self.held.get(holder).copied().unwrap_or_default();
        held + more <= self.free - more || (self.held.is_empty() && more <= self.free)
    }

    fn add(&mut self, holder: &K, more: i64) {
        self.free -= more;
        let held = self.held.entry(holder.clone()).or_default();
        *held += more;
        if *held == 0 {
            self.held.remove(holder);
        }
    }
}

/// A part of a budget. Dropping it gives the part back.
pub struct Held<K: Clone + Eq + Hash> {
    budget: Arc<Budget<K>>,
    holder: K,
    amount: i64,
}

impl<K: Clone + Eq + Hash> Held<K> {
    /// Grows the part to `amount`. Returns false and changes nothing if that exceeds the holder's share.
    pub fn grow_to(&mut self, amount: i64) -> bool {
        let more = amount - self.amount;
        if more <= 0 {
            return true;
        }
        let mut shares = self.budget.shares.lock();
        if !shares.allows(&self.holder, more) {
            drop(shares);
            self.budget.metrics.refused.inc();
            return false;
        }
        shares.add(&self.holder, more);
        drop(shares);
        self.budget.metrics.held.inc_by(more);
        self.amount = amount;
        true
    }

    /// Gives some of the part back, so that `amount` remains.
    pub fn shrink_to(&mut self, amount: i64) {
        let less = self.amount - amount;
        if less > 0 {
            self.budget.shares.lock().add(&self.holder, -less);
            self.budget.metrics.held.dec_by(less);
            self.amount = amount;
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes units one by one until the budget refuses.
    fn fill(budget: &Arc<Budget<u8>>, holder: u8) -> Vec<Held<u8>> {
        std::iter::from_fn(|| budget.take(&holder, 1)).collect()
    }

    #[test]
    fn one_holder_gets_half_and_leaves_room_for_the_next() {
        let budget = Budget::new(256, BudgetMetrics::default());
        let first = fill(&budget, 1);
        let second = fill(&budget, 2);
        let third = fill(&budget, 3);
        assert_eq!([first.len(), second.len(), third.len()], [128, 64, 32]);
        drop(first);
        assert!(budget.take(&4, 75).is_some(), "what one gives back is free for all");
    }

    #[test]
    fn a_budget_of_one_serves_one_at_a_time() {
        let budget = Budget::new(1, BudgetMetrics::default());
        let held = budget.take(&1, 1).unwrap();
        assert!(budget.take(&1, 1).is_none() && budget.take(&2, 1).is_none());
        drop(held);
        assert!(budget.take(&2, 1).is_some() && budget.take(&2, 2).is_none());
    }

    #[test]
    fn a_forced_amount_counts_against_later_requests() {
        let metrics = BudgetMetrics::default();
        let budget = Budget::new(10, metrics.clone());
        let forced = budget.force(&1, 15);
        assert!(budget.take(&2, 1).is_none());
        assert_eq!((metrics.held.get(), metrics.at_most.get(), metrics.refused.get()), (15, 10, 1));
        drop(forced);
        assert!(budget.take(&2, 5).is_some());
        assert_eq!(metrics.held.get(), 0);
    }

    proptest! {
        #[test]
        fn holders_never_exceed_the_budget_and_give_everything_back(
            steps in prop::collection::vec((0..4_u8, 0..60_i64, any::<bool>()), 0..200),
        ) {
            let metrics = BudgetMetrics::default();
            let budget = Budget::new(100, metrics.clone());
            let mut held = Vec::<Held<u8>>::new();
            for (holder, amount, gives_back) in steps {
                match held.iter_mut().find(|it| it.holder == holder) {
                    Some(it) if gives_back => it.shrink_to(amount.min(it.amount)),
                    Some(it) => drop(it.grow_to(amount)),
                    None => held.extend(budget.take(&holder, amount)),
                }
                let sum = held.iter().map(|it| it.amount).sum::<i64>();
                prop_assert!(sum <= 100);
                prop_assert_eq!((budget.shares.lock().free, metrics.held.get()), (100 - sum, sum));
            }
            drop(held);
            prop_assert!(budget.shares.lock().held.is_empty());
            prop_assert_eq!((budget.shares.lock().free, metrics.held.get()), (100, 0));
        }
    }
}
