//! Plays worlds on several threads, and tells what happened.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use simulate::{Counts, Outcome, Setup, run};

use crate::{arguments::Arguments, smaller::smaller};

/// The sum over all worlds.
#[derive(Default)]
struct Sum {
    worlds: u64,
    millis: u64,
    counts: Counts,
    /// The fewest operations and the fewest faults of a world.
    fewest: Option<[u64; 2]>,
    /// The worlds with violations.
    failed: Vec<(Setup, Outcome)>,
    /// The seeds whose two runs differed.
    differing: Vec<u64>,
}

/// Plays the worlds. Returns whether all were sound.
pub(crate) fn play(arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let first = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let seeds = arguments.seeds.unwrap_or(if arguments.seed.is_some() { 1 } else { 100 });
    let until = arguments.within_seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let (next, is_over, sum) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(Sum::default()));
    thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= seeds {
                        return;
                    }
                    let setup = arguments.setup(first.wrapping_add(nth));
                    let outcome = played(&setup);
                    let differs = arguments.twice && played(&setup).trace_hash != outcome.trace_hash;
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.add(setup, outcome, differs, arguments.trace);
                    // A few failures say enough.
                    is_over.store(sum.failed.len() >= arguments.most_failures, Ordering::Relaxed);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.print(begun.elapsed());
    for (setup, outcome) in &sum.failed {
        tell(setup, outcome, arguments);
    }
    sum.failed.is_empty() && sum.differing.is_empty()
}

impl Sum {
    fn add(&mut self, setup: Setup, outcome: Outcome, differs: bool, is_told: bool) {
        self.worlds += 1;
        self.millis += outcome.millis;
        self.counts.add(&outcome.counts);
        let of_this = [outcome.counts.operations, outcome.counts.all_troubles()];
        let fewest = self.fewest.get_or_insert(of_this);
        fewest.iter_mut().zip(of_this).for_each(|(fewest, of_this)| *fewest = of_this.min(*fewest));
        if is_told {
            outcome.story.iter().for_each(|line| println!("{line}"));
        }
        if differs {
            self.differing.push(setup.seed);
        }
        if !outcome.violations.is_empty() {
            println!("seed {} fails: {}", setup.seed, outcome.violations[0]);
            self.failed.push((setup, outcome));
        }
    }

    fn print(&self, took: Duration) {
        let seconds = took.as_secs_f64().max(0.001);
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let of = |count: u64| count as f64;
        println!(
            "{} worlds in {seconds:.0} s ({:.2} a second), {} simulated seconds",
            self.worlds,
            of(self.worlds) / seconds,
            self.millis / 1000
        );
        if let Some([operations, faults]) = self.fewest {
            println!("each world had at least {operations} operations and {faults} faults");
        }
        println!("{}", self.counts);
        for seed in &self.differing {
            println!("seed {seed} was played in two ways: the simulation is not deterministic");
        }
    }
}

/// Tells the story of a world that failed, in the smallest form in which it still fails.
fn tell(setup: &Setup, outcome: &Outcome, arguments: &Arguments) {
    println!("\nseed {} FAILED:", setup.seed);
    outcome.violations.iter().for_each(|violation| println!("  {violation}"));
    let (least, outcome) = smaller(setup, arguments.minimize_seconds, played);
    let Some(outcome) = outcome else { return };
    println!("the smallest world that still fails: {least:?}");
    outcome.violations.iter().for_each(|violation| println!("  {violation}"));
    println!("its last moments:");
    let first = outcome.story.len().saturating_sub(arguments.lines);
    outcome.story[first..].iter().for_each(|line| println!("{line}"));
    println!("again: simulate {}", again(&least));
}

fn again(setup: &Setup) -> String {
    let troubles: Vec<String> = setup.troubles.iter().map(|trouble| trouble.name().to_owned()).collect();
    format!(
        "--seed {} --servers {} --merchants {} --operations {} --pace-millis {} --troubles '{}' --trace",
        setup.seed,
        setup.servers,
        setup.merchants,
        setup.operations,
        setup.pace_millis,
        troubles.join(",")
    )
}

/// Plays one world. A panic of the simulation itself is a violation too.
pub(crate) fn played(setup: &Setup) -> Outcome {
    let failed = |what: String| Outcome {
        violations: vec![what],
        counts: Counts::default(),
        millis: 0,
        trace_hash: 0,
        story: Vec::new(),
    };
    match catch_unwind(AssertUnwindSafe(|| run(setup))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(what)) => failed(what),
        Err(_) => failed("the simulation panicked".to_owned()),
    }
}
