//! Runs on a simulated disk, thousands of them in one process: commits, crashes, failing calls, full disks, backups and
//! restores, all decided by a seed. After each crash the database must open and hold exactly what some number of commits
//! left, and no fewer than were acknowledged.
//!
//! `SIMULATED_SEEDS` says how many seeds are tried, `SIMULATED_SEED` which is the first.

mod at_rest;
mod run;

use std::{
    ops::AddAssign,
    panic::{self, AssertUnwindSafe},
    path::Path,
    time::Instant,
};

use journaled_tree::{
    Closing, Database, Options, View,
    simulation::{self, Crash, Planted, SimulatedDisk, plant},
};

use self::run::Run;
use crate::workload::{Bytes, Model};

/// How many seeds are tried unless given.
const SEEDS: u64 = 2_000;

/// What was done in some runs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    openings: u64,
    checks: u64,
    commits: u64,
    not_written: u64,
    stops: u64,
    closes: u64,
    kills: u64,
    power_cuts: u64,
    failed_calls: u64,
    backups: u64,
    restores: u64,
    flips: u64,
    cuts: u64,
    refused: u64,
    calls: u64,
    paths: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.openings += other.openings;
        self.checks += other.checks;
        self.commits += other.commits;
        self.not_written += other.not_written;
        self.stops += other.stops;
        self.closes += other.closes;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.failed_calls += other.failed_calls;
        self.backups += other.backups;
        self.restores += other.restores;
        self.flips += other.flips;
        self.cuts += other.cuts;
        self.refused += other.refused;
        self.calls += other.calls;
        self.paths += other.paths;
    }
}

/// The outcome of a run that found nothing: the hash of all its calls, and what was done.
type Sound = (u64, Counts);

/// Makes the run of a seed. An error says what is wrong, and the last that happened.
fn run(seed: u64, model: &mut Model) -> Result<Sound, String> {
    let disk = SimulatedDisk::new(seed);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed, disk.clone(), model);
        run.run();
        run.counts
    }));
    match outcome {
        Ok(counts) => Ok((disk.trace_hash(), Counts { calls: disk.calls(), ..counts })),
        Err(panic) => {
            *model = Model::default();
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let what = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(format!("SIMULATED_SEEDS=1 SIMULATED_SEED={seed}\n{}{what}", disk.story()))
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_a_simulated_disk_does_every_acknowledged_commit_is_there() {
    let seeds = number("SIMULATED_SEEDS").unwrap_or(SEEDS);
    let first = number("SIMULATED_SEED").unwrap_or_else(|| fastrand::u64(..) / 2);
    println!("SIMULATED_SEED={first}");
    let (begun, mut model, mut counts) = (Instant::now(), Model::default(), Counts::default());
    for seed in first..first + seeds {
        match run(seed, &mut model) {
            Ok((_, of_run)) => counts += of_run,
            Err(story) => panic!("{story}"),
        }
    }
    println!("{seeds} seeds in {:?}: {counts:?}", begun.elapsed());
}

#[test]
fn a_seed_makes_the_same_calls_each_time() {
    let hash = |seed| run(seed, &mut Model::default()).unwrap();
    let hashes: Vec<_> = (1..50).map(hash).collect();
    assert_eq!(hashes, (1..50).map(hash).collect::<Vec<_>>());
    assert!(hashes.windows(2).all(|two| two[0].0 != two[1].0));
}

/// Faults that are planted in the engine, and within how many seeds they must be found.
const FOUND_WITHIN: [(Planted, u64); 14] = [
    (Planted::AnswerBeforeSync, 50),
    (Planted::FailedWriteCounts, 50),
    (Planted::FailedSyncGoesOn, 500),
    (Planted::NameBeforeContent, 3_000),
    (Planted::NameNotSynced, 50),
    (Planted::ChecksumIgnored, 500),
    (Planted::LastEntryNotSynced, 6_000),
    (Planted::ListedWithoutTree, 200),
    (Planted::RemovedBeforeListed, 8_000),
    (Planted::ListedBeforeBegun, 200),
    (Planted::RemovedBeforeCompressed, 1_000),
    (Planted::NumberTrusted, 100),
    (Planted::NoReserve, 5_000),
    (Planted::CutAccepted, 100),
];

#[test]
fn each_planted_fault_is_found() {
    let mut model = Model::default();
    let mut missed = Vec::new();
    for (fault, within) in FOUND_WITHIN {
        plant(Some(fault));
        let found = (1..=within).find_map(|seed| Some((seed, run(seed, &mut model).err()?)));
        plant(None);
        match found {
            Some((seed, story)) => println!("{fault:?} is found after {seed} seeds: {}", story.lines().last().unwrap()),
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn a_store_whose_making_is_cut_off_at_any_two_calls_is_made_by_the_next_start() {
    for seed in 0..4 {
        for (first, second) in (0..50).flat_map(|first| (0..50).map(move |second| (first, second))) {
            let disk = SimulatedDisk::new(seed);
            let open = || Options::new("/data", Bytes).simulated(&disk).on_stop(|_, _| ()).open();
            for (calls, crash) in [(first, Crash::Kill), (second, Crash::PowerCut)] {
                disk.crash_after(calls);
                drop(open());
                disk.crash();
                disk.restart(crash);
            }
            let opened = open();
            assert!(opened.is_ok(), "seed {seed}, cut off at {first} and {second}: {}", opened.err().unwrap());
        }
    }
}

/// Opens a database with small journal files.
fn open_small(disk: &SimulatedDisk) -> (Database, Closing) {
    Options::new("/data", Bytes).journal_file_bytes(1024).simulated(disk).on_stop(|_, _| ()).open().unwrap()
}

/// Commits a value of so many bytes, which cannot be compressed.
fn put(database: &Database, bytes: usize) -> bool {
    let mut value = vec![0; bytes];
    fastrand::Rng::with_seed(bytes as u64).fill(&mut value);
    let change = move |view: &mut View<'_>| {
        view.put("key", value.clone());
        Ok::<_, ()>(())
    };
    database.commit_blocking(change).is_ok()
}

#[test]
fn a_start_writes_the_zeros_after_the_last_entry_again_since_their_sync_may_have_failed() {
    for seed in 0..1000 {
        let disk = SimulatedDisk::new(seed);
        let (database, _closing) = open_small(&disk);
        assert!(put(&database, 1));
        // An entry may be synced, replaced by zeros because its file seems lost, and the zeros may not be synced.
        let identity = 5 + seed % 4;
        disk.fail(identity..identity + 5, 2);
        put(&database, 3000);
        disk.crash();
        disk.mend();
        disk.restart(Crash::Kill);
        let (database, _closing) = open_small(&disk);
        assert!(put(&database, 1000) && put(&database, 1));
        disk.crash();
        disk.restart(Crash::PowerCut);
        let faults = simulation::check_journal(&disk, Path::new("/data")).unwrap();
        assert!(faults.is_empty(), "seed {seed}: {faults:?}\n{}", disk.story());
    }
}

#[test]
fn a_cut_file_is_refused_even_if_its_head_could_not_be_written_at_first() {
    let mut failed = 0;
    for seed in 0..1000 {
        let disk = SimulatedDisk::new(seed);
        let (database, _closing) = open_small(&disk);
        let head = 3 + seed % 4;
        disk.fail(head..head + 1, 1);
        let is_refused = !put(&database, 1500);
        disk.mend();
        if !is_refused || !put(&database, 1500) {
            continue;
        }
        failed += 1;
        disk.crash();
        disk.restart(Crash::Kill);
        drop(disk.cut_off(Path::new("/data/journal/00000000000000000001.journal"), 1100));
        let faults = simulation::check_journal(&disk, Path::new("/data")).unwrap();
        assert!(!faults.is_empty(), "seed {seed}\n{}", disk.story());
    }
    assert!(failed > 100, "{failed}");
}
