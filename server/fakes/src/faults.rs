//! Failing as networks and gateways fail.

use std::{collections::BTreeMap, sync::Mutex};

use crate::lock;

/// One way a call can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and no answer ever comes.
    HangAfter,
    /// It is not done, and no answer ever comes.
    HangBefore,
    /// It is done, and the connection is cut before the answer.
    DropAfter,
    /// It is not done, and the connection is cut.
    DropBefore,
    /// It is done, and a server error is answered.
    ErrorAfter,
    /// It is not done, and a server error is answered.
    ErrorBefore,
    /// It is done, and the answer is empty.
    Empty,
    /// It is done, and the answer breaks off in the middle.
    Truncated,
}

impl Fault {
    /// Every way, with the word that names it to the programs.
    pub const ALL: [(&'static str, Self); 8] = [
        ("hang_after", Self::HangAfter),
        ("hang_before", Self::HangBefore),
        ("drop_after", Self::DropAfter),
        ("drop_before", Self::DropBefore),
        ("error_after", Self::ErrorAfter),
        ("error_before", Self::ErrorBefore),
        ("empty", Self::Empty),
        ("truncated", Self::Truncated),
    ];
}

/// Which calls go wrong: by chance, from a seed, or the next ones of an operation by order.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Plan>);

#[derive(Debug, Default)]
struct Plan {
    random: Option<Random>,
    ordered: Vec<(String, Fault)>,
    /// How many calls were let through, and how many went wrong.
    calls: (u64, u64),
    /// How many calls there were of each operation.
    by_operation: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Random {
    rng: fastrand::Rng,
    rate: f64,
    kinds: Vec<Fault>,
    spared: Vec<String>,
}

impl Faults {
    /// From now on so large a share of calls goes wrong, but for those of the spared operations.
    pub fn at_random(&self, seed: u64, rate: f64, kinds: &[Fault], spared: &[&str]) {
        let spared = spared.iter().map(ToString::to_string).collect();
        let random = Random { rng: fastrand::Rng::with_seed(seed), rate, kinds: kinds.to_vec(), spared };
        lock(&self.0).random = Some(random);
    }

    /// The next call of this operation goes wrong so. Orders of one operation are carried out one after another.
    pub fn next(&self, operation: &str, fault: Fault) {
        lock(&self.0).ordered.push((operation.to_owned(), fault));
    }

    /// From now on nothing goes wrong.
    pub fn none(&self) {
        let mut plan = lock(&self.0);
        plan.random = None;
        plan.ordered.clear();
    }

    /// How many calls there were, and how many of them went wrong.
    pub fn calls(&self) -> (u64, u64) {
        lock(&self.0).calls
    }

    /// How many calls of this operation there were.
    pub fn calls_of(&self, operation: &str) -> u64 {
        lock(&self.0).by_operation.get(operation).copied().unwrap_or_default()
    }

    /// What is to happen to a call.
    pub(crate) fn draw(&self, operation: &str) -> Option<Fault> {
        let mut plan = lock(&self.0);
        plan.calls.0 += 1;
        *plan.by_operation.entry(operation.to_owned()).or_default() += 1;
        let ordered = plan.ordered.iter().position(|(known, _)| known == operation);
        let drawn = match ordered {
            Some(place) => Some(plan.ordered.remove(place).1),
            None => plan.random.as_mut().and_then(|random| {
                let spared = random.spared.iter().any(|spared| spared == operation);
                let hit = !spared && random.rng.f64() < random.rate;
                hit.then(|| random.rng.choice(&random.kinds).copied()).flatten()
            }),
        };
        plan.calls.1 += u64::from(drawn.is_some());
        drawn
    }
}
