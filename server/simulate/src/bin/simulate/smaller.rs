//! Makes a failing world smaller: fewer servers, merchants, requests and kinds of trouble, as long as it still fails.

use std::time::{Duration, Instant};

use simulate::{Outcome, Setup};

/// The smallest failing world that is found in this time, and its outcome. If none is found: the given world, with
/// `None` as its outcome if it does not fail again.
pub(crate) fn smaller(setup: &Setup, within_seconds: u64, played: fn(&Setup) -> Outcome) -> (Setup, Option<Outcome>) {
    let until = Instant::now() + Duration::from_secs(within_seconds);
    let mut least = setup.clone();
    let mut outcome = None;
    loop {
        let found = attempts(&least).into_iter().find_map(|smaller| {
            if Instant::now() >= until {
                return None;
            }
            let outcome = played(&smaller);
            (!outcome.violations.is_empty()).then_some((smaller, outcome))
        });
        match found {
            Some((smaller, failed)) => (least, outcome) = (smaller, Some(failed)),
            None => break,
        }
    }
    let outcome = outcome.or_else(|| Some(played(&least)).filter(|outcome| !outcome.violations.is_empty()));
    (least, outcome)
}

/// Worlds that are smaller in one way, the smallest first.
fn attempts(setup: &Setup) -> Vec<Setup> {
    let mut found = Vec::new();
    for servers in 1..setup.servers {
        found.push(Setup { servers, ..setup.clone() });
    }
    for merchants in 1..setup.merchants {
        found.push(Setup { merchants, ..setup.clone() });
    }
    for operations in [setup.operations / 8, setup.operations / 2, setup.operations * 7 / 8] {
        if operations > 0 && operations < setup.operations {
            found.push(Setup { operations, ..setup.clone() });
        }
    }
    for left_out in &setup.troubles {
        let troubles = setup.troubles.iter().copied().filter(|trouble| trouble != left_out).collect();
        found.push(Setup { troubles, ..setup.clone() });
    }
    found
}
