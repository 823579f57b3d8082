//! Power cuts: the test traces the system calls of a process that commits, is killed, starts again and ends. From the
//! calls it builds states in which a power cut may have left the disk, and opens the database on each. The database
//! must hold exactly what some number of commits left, and no fewer than were acknowledged.
//!
//! `POWER_CUTS` says how many states are tried, `POWER_CUTS_SEED` which.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

use fastrand::Rng;
use test_support::{
    disk::{Disk, Fate, Image},
    trace::{Step, steps},
};

use crate::workload::{self, ARGUMENTS, Model, acknowledged, check_backup, in_memory, process, this_program};

const CALLS: &str = "trace=openat,lseek,write,pwrite64,writev,ftruncate,fallocate,mkdir,mkdirat,rename,renameat,renameat2,\
                     unlink,unlinkat,fsync,fdatasync,sync_file_range";
/// How many commits each run makes.
const COMMITS: u64 = 240;
/// How many states are tried at a time.
const THREADS: usize = 3;
/// What is between two commits is on one page of a file, mostly.
const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// A state of the disk and what must be found on it.
struct Trial {
    image: Image,
    /// The last commit that was acknowledged before the cut.
    acknowledged: u64,
    what: String,
    rng: Rng,
}

/// Runs the process under strace; returns its trace.
fn traced(directory: &Path, closes: bool) -> String {
    let trace = directory.join("trace");
    let watched = directory.join("watched");
    let mut command = process("strace", &watched, COMMITS, closes);
    if !closes {
        // So that the end comes between a write and its sync.
        command.args(["-e", "inject=fdatasync:delay_enter=3000"]);
    }
    command.args(["-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", CALLS, "-o"]).arg(&trace);
    let output =
        command.arg(this_program()).args(ARGUMENTS).output().expect("strace is needed: apt-get install strace");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(trace).unwrap()
}

#[test]
fn in_whatever_state_a_power_cut_leaves_the_disk_every_acknowledged_commit_is_there() {
    let cuts = usize::try_from(number("POWER_CUTS").unwrap_or(2000)).unwrap();
    let seed = number("POWER_CUTS_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("POWER_CUTS_SEED={seed}");
    let held = in_memory();
    let directory = held.path().canonicalize().unwrap();
    let watched = directory.join("watched");
    fs::create_dir(&watched).unwrap();

    let (mut runs, mut lines) = (Vec::new(), 0);
    for closes in [false, true] {
        let trace = traced(&directory, closes);
        runs.push(steps(&trace, &watched, lines));
        lines += trace.lines().count();
    }
    let mut rng = Rng::with_seed(seed);
    let moments: Vec<_> =
        runs.iter().flatten().filter(|(_, step)| matches!(step, Step::Disk(_))).map(|(at, _)| *at).collect();
    // Everything rests on the few calls by which the database is made, and by which the second process first writes behind
    // what the kill left; so half of the cuts are among those.
    let before_first_commit = |run: &[(usize, Step)]| {
        let first = run.iter().find(|(_, step)| acknowledgement(step).is_some()).unwrap().0;
        run.iter().filter(|(at, step)| matches!(step, Step::Disk(_)) && *at < first).count()
    };
    let making = ..before_first_commit(&runs[0]);
    let second = runs[0].iter().filter(|(_, step)| matches!(step, Step::Disk(_))).count();
    let going_on = second + before_first_commit(&runs[1]);
    let going_on = going_on - 8..going_on + 8;
    let cut = |nth: usize| match nth % 4 {
        0 => moments[rng.usize(making)],
        1 => moments[rng.usize(going_on.clone())],
        _ => moments[rng.usize(..moments.len())],
    };
    let mut cuts: Vec<usize> = (0..cuts).map(cut).collect();
    cuts.sort_unstable();
    println!("{} calls on the disk, {} cuts", moments.len(), cuts.len());

    let begun = Instant::now();
    let (tried, backups) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (trials, waiting) = mpsc::sync_channel::<Trial>(THREADS);
    let waiting = Arc::new(Mutex::new(waiting));
    thread::scope(|threads| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                // Where all of them have failed, nobody waits for a trial any more.
                let (waiting, tried, backups) = (Arc::clone(&waiting), &tried, &backups);
                threads.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    let mut model = Model::default();
                    loop {
                        let Ok(trial) = waiting.lock().unwrap().recv() else { return };
                        backups.fetch_add(usize::from(runtime.block_on(trial.run(&mut model))), Ordering::Relaxed);
                        tried.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        drop(waiting);
        let mut disk = Disk::new(&watched);
        let mut cut_at = cuts.iter().copied().peekable();
        let mut last = 0;
        for run in runs {
            disk.close_all();
            for (at, step) in run {
                last = acknowledgement(&step).map_or(last, |number| last.max(number));
                if let Step::Disk(call) = step {
                    disk.apply(call);
                }
                while cut_at.next_if(|cut| *cut <= at).is_some() {
                    let fate = Fate::random(&mut rng, at);
                    let what = format!("POWER_CUTS_SEED={seed}, line {at}, {fate:?}");
                    let (image, rng) = (disk.image(fate, &mut rng), rng.fork());
                    if trials.send(Trial { image, acknowledged: last, what, rng }).is_err() {
                        break;
                    }
                }
            }
        }
        drop(trials);
        for worker in workers {
            worker.join().unwrap();
        }
    });
    let (tried, backups) = (tried.into_inner(), backups.into_inner());
    println!("{tried} states opened, {backups} whole backups among them, in {:?}", begun.elapsed());
    assert_eq!(tried, cuts.len());
}

fn acknowledgement(step: &Step) -> Option<u64> {
    match step {
        Step::Sent(bytes) => std::str::from_utf8(bytes).ok()?.lines().filter_map(acknowledged).max(),
        Step::Disk(_) => None,
    }
}

impl Trial {
    /// Opens the database of the image and checks it; returns whether there was a whole backup, which is restored then.
    async fn run(mut self, model: &mut Model) -> bool {
        let mut directory = in_memory();
        // What a failure leaves is looked at.
        directory.disable_cleanup(true);
        let data = directory.path().join("data");
        write(self.image, directory.path());
        let count = workload::check_and_go_on(&data, model, &self.what).await;
        assert!(count >= self.acknowledged, "{}: {count} of {} commits", self.what, self.acknowledged);
        let backup = directory.path().join("backup");
        let has_backup = backup.join("backup.json").exists() && self.rng.u8(..8) == 0;
        if has_backup {
            check_backup(&backup, &directory.path().join("restored"), model, &self.what);
        }
        directory.disable_cleanup(false);
        has_backup
    }
}

/// Writes an image without its zeros: most of what a file has ahead of its end.
fn write(image: Image, directory: &Path) {
    for (path, content) in image {
        let path: PathBuf = directory.join(path);
        let Some(bytes) = content else {
            // In the order of their names a directory comes before what it holds.
            fs::create_dir(path).unwrap();
            continue;
        };
        let file = File::create(path).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (nth, page) in bytes.chunks(PAGE).enumerate() {
            if *page != ZEROS[..page.len()] {
                file.write_all_at(page, (nth * PAGE) as u64).unwrap();
            }
        }
    }
}
