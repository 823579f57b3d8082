//! Plants each fault in the server, and counts the worlds that it takes to find it.

use std::time::{Duration, Instant};

use simulate::{Planted, plant};

use crate::{arguments::Arguments, play::played};

/// Plays worlds with each fault whose description has these words. Returns whether all were found.
pub(crate) fn find_all(arguments: &Arguments, words: &str) -> bool {
    let first = arguments.seed.unwrap_or(1);
    let most = arguments.seeds.unwrap_or(200);
    let mut missed = 0;
    for fault in Planted::ALL.iter().copied().filter(|fault| fault.words().contains(words)) {
        let begun = Instant::now();
        let limit = Duration::from_secs(arguments.within_seconds.unwrap_or(u64::MAX / 2));
        plant(Some(fault));
        let found = (0..most).take_while(|_| begun.elapsed() < limit).find_map(|nth| {
            let outcome = played(&arguments.setup(first.wrapping_add(nth)));
            outcome.violations.into_iter().next().map(|violation| (nth + 1, violation))
        });
        plant(None);
        match found {
            Some((worlds, violation)) => println!("| {} | {worlds} | {violation}", fault.words()),
            None => {
                missed += 1;
                println!("| {} | not found | {:.0} s", fault.words(), begun.elapsed().as_secs_f64());
            }
        }
    }
    missed == 0
}
