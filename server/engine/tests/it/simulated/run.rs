//! One run: a database on a simulated disk is opened, used and ended again and again, in order and by crashes, and whatever
//! the disk does to it is checked against the model.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use fastrand::Rng;
use journaled_tree::{
    Closing, CommitError, Database, OpenError, Options, TreeError,
    simulation::{self, Crash, SimulatedDisk, Worker},
};

use super::Counts;
use crate::workload::{Bytes, Model, change, commit, count};

/// A run under way.
pub(super) struct Run<'m> {
    pub(super) disk: SimulatedDisk,
    pub(super) rng: Rng,
    model: &'m mut Model,
    pub(super) counts: Counts,
    pub(super) data: PathBuf,
    journal_file_bytes: u64,
    /// Decides how much gathers in the overlay. More than a start applies again.
    overlay_bytes: usize,
    /// No fewer commits may be found: so many were acknowledged, or seen after an opening.
    pub(super) least: u64,
    /// No more may be found: so many were begun and not refused.
    pub(super) most: u64,
    /// The last backup, and how many commits it has.
    pub(super) backup: Option<(PathBuf, u64)>,
    /// The journal may lack what the backup holds.
    pub(super) is_pruned: bool,
    /// The last opening, if it was not ended in order.
    has_stopped: Arc<AtomicBool>,
    /// Calls fail, or did since the last restart.
    is_failing: bool,
}

/// How an operation ended: the process goes on, or it must end.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl<'m> Run<'m> {
    pub(super) fn new(seed: u64, disk: SimulatedDisk, model: &'m mut Model) -> Self {
        let mut rng = Rng::with_seed(seed);
        Self {
            disk,
            model,
            counts: Counts::default(),
            data: "/data".into(),
            journal_file_bytes: [1 << 10, 1 << 12, 1 << 14, 1 << 16][rng.usize(..4)],
            overlay_bytes: [1 << 16, 1 << 17][rng.usize(..2)],
            least: 0,
            most: 0,
            backup: None,
            is_pruned: false,
            has_stopped: Arc::default(),
            is_failing: false,
            rng,
        }
    }

    /// Lives a few lives, and then one without trouble.
    pub(super) fn run(&mut self) {
        for _ in 0..self.rng.usize(2..=6) {
            self.make_trouble();
            self.live();
            self.restart();
            match self.rng.u8(..16) {
                0 => self.flip_a_bit(),
                1 | 2 => self.restore_beside(),
                3 | 4 => self.cut_the_newest_file_off(),
                _ => {}
            }
        }
        self.end();
    }

    /// Decides what will happen to the process.
    fn make_trouble(&mut self) {
        let soon = [20, 100, 400][self.rng.usize(..3)];
        if self.rng.u8(..10) < 6 {
            self.disk.crash_after(self.rng.u64(..soon));
        }
        if self.rng.u8(..10) < 3 {
            let first = self.rng.u64(..soon);
            let (last, one_in) = (first + [1, 10, 100][self.rng.usize(..3)], [1, 2, 10][self.rng.usize(..3)]);
            self.disk.note(format!("calls fail from {first} on before {last}, one in {one_in}"));
            self.disk.fail(first..last, one_in);
            self.is_failing = true;
        }
    }

    /// From an opening to an end.
    fn live(&mut self) {
        let Some((database, closing)) = self.open() else { return };
        for _ in 0..self.rng.usize(1..16) {
            let next = self.operate(&database);
            if next == Next::End || self.has_ended() {
                break;
            }
        }
        match self.rng.u8(..4) {
            0 => self.disk.crash(),
            1 => {}
            _ if !self.has_ended() => {
                self.disk.note("closing");
                drop(database);
                closing.wait();
                self.counts.closes += 1;
                return;
            }
            _ => {}
        }
        if !self.has_ended() {
            self.disk.crash();
        }
    }

    fn has_ended(&self) -> bool {
        self.disk.has_crashed() || self.has_stopped.load(Ordering::Relaxed)
    }

    /// Starts the machine again, with a disk that works.
    pub(super) fn restart(&mut self) {
        self.counts.failed_calls = self.disk.failed();
        self.disk.mend();
        let crash = if self.rng.bool() { Crash::Kill } else { Crash::PowerCut };
        match crash {
            Crash::Kill => self.counts.kills += 1,
            Crash::PowerCut => self.counts.power_cuts += 1,
        }
        self.disk.restart(crash);
        self.has_stopped = Arc::default();
        self.is_failing = false;
    }

    pub(super) fn options(&mut self) -> Options {
        let (mut clock, disk, has_stopped) = (self.rng.fork(), self.disk.clone(), Arc::clone(&self.has_stopped));
        let clock = std::sync::Mutex::new(move || clock.i64(..1_000_000));
        Options::new(&self.data, Bytes)
            .simulated(&self.disk)
            .journal_file_bytes(self.journal_file_bytes)
            .overlay_bytes(self.overlay_bytes)
            .clock(move || clock.lock().unwrap()())
            .on_stop(move |what, error| {
                disk.note(format!("the engine stops: {what}: {error}"));
                has_stopped.store(true, Ordering::Relaxed);
            })
    }

    /// Opens the database and checks what it holds. `None` if the disk did not allow it.
    pub(super) fn open(&mut self) -> Option<(Database, Closing)> {
        self.disk.note("opening");
        self.counts.openings += 1;
        match self.options().open() {
            Ok((database, closing)) => {
                self.check(&database);
                // What a reader has seen is never lost.
                (self.least, self.most) = (count(&database), count(&database));
                Some((database, closing))
            }
            Err(error) if self.has_ended() || self.is_failing => {
                self.disk.note(format!("not opened: {error}"));
                None
            }
            Err(OpenError::Damaged { what, .. }) if self.is_pruned => {
                self.disk.note(format!("damaged: {what}"));
                self.restore_instead();
                None
            }
            Err(error) => panic!("the database does not open: {error}"),
        }
    }

    /// Fails unless the database holds what some number of commits left that may be there.
    pub(super) fn check(&mut self, database: &Database) {
        let found = self.model.check(database, "the content is wrong");
        let (least, most) = (self.least, self.most);
        assert!((least..=most).contains(&found), "{found} commits are there, not {least} to {most}");
        self.counts.checks += 1;
    }

    fn operate(&mut self, database: &Database) -> Next {
        match self.rng.u8(..32) {
            0..8 => self.commit_alone(database),
            8..18 => self.commit_together(database),
            18..20 => self.refuse(database),
            20..26 => self.step(database),
            26 | 27 => self.back_up(database),
            28 if !self.is_failing => {
                let faults = simulation::check_journal(&self.disk, &self.data);
                if !self.disk.has_crashed() {
                    assert!(faults.as_ref().is_ok_and(Vec::is_empty), "the journal has faults: {faults:?}");
                }
                Next::GoOn
            }
            29 => {
                let room = self.rng.u64(..64 * 1024);
                self.disk.note(format!("the disk has room for {room} bytes"));
                self.disk.leave_room(room);
                Next::GoOn
            }
            30 if !self.is_failing => {
                self.disk.note("the disk has room");
                self.disk.mend();
                Next::GoOn
            }
            _ => {
                self.check(database);
                Next::GoOn
            }
        }
    }

    fn commit_alone(&mut self, database: &Database) -> Next {
        self.counts.commits += 1;
        let outcome = database.commit_blocking(change);
        self.after(database, vec![outcome])
    }

    fn commit_together(&mut self, database: &Database) -> Next {
        let changes = self.rng.usize(1..=4);
        self.counts.commits += changes as u64;
        let mut waiting: Vec<_> = (0..changes).map(|_| Box::pin(commit(database))).collect();
        let mut context = Context::from_waker(Waker::noop());
        for change in &mut waiting {
            assert!(change.as_mut().poll(&mut context).is_pending(), "answered before it was committed");
        }
        database.step(Worker::Committer);
        let mut outcomes = Vec::new();
        for change in &mut waiting {
            match change.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => outcomes.push(outcome),
                Poll::Pending => panic!("nobody answers"),
            }
        }
        drop(waiting);
        self.after(database, outcomes)
    }

    /// Takes the answers to changes that were committed together.
    fn after(&mut self, database: &Database, outcomes: Vec<Result<u64, CommitError<TreeError>>>) -> Next {
        let mut next = Next::GoOn;
        for outcome in outcomes {
            match outcome {
                Ok(number) => {
                    self.disk.note(format!("commit {number} is acknowledged"));
                    assert_eq!(number, self.least + 1, "commits are out of order");
                    (self.least, self.most) = (number, number);
                }
                Err(CommitError::NotWritten) => {
                    self.counts.not_written += 1;
                    self.disk.note("a commit is not written");
                }
                Err(CommitError::Stopped) => {
                    self.most += 1;
                    next = Next::End;
                }
                Err(error) => panic!("a commit failed: {error}"),
            }
        }
        if next == Next::GoOn {
            assert_eq!(count(database), self.least, "a reader does not find the last acknowledged commit");
        } else {
            assert!(self.is_failing || self.disk.has_crashed(), "the engine stopped although no call failed");
            self.counts.stops += 1;
        }
        next
    }

    /// A change that decides against itself.
    fn refuse(&mut self, database: &Database) -> Next {
        let outcome = database.commit_blocking(|view| {
            change(view).unwrap();
            Err::<(), _>("no")
        });
        match outcome {
            Err(CommitError::Stopped) => Next::End,
            Err(CommitError::Refused("no")) => {
                assert_eq!(count(database), self.least, "a refused change has an effect");
                Next::GoOn
            }
            other => panic!("a refused change is answered with {other:?}"),
        }
    }

    fn step(&mut self, database: &Database) -> Next {
        let worker = [Worker::Committer, Worker::Applier, Worker::Archivist][self.rng.usize(..3)];
        if database.step(worker) {
            self.disk.note(format!("that was the {worker:?}"));
        }
        if self.has_stopped.load(Ordering::Relaxed) {
            assert!(self.is_failing || self.disk.has_crashed(), "the engine stopped although no call failed");
        }
        Next::GoOn
    }

    fn back_up(&mut self, database: &Database) -> Next {
        let target = self.new_path("backup");
        match database.back_up_blocking(&target) {
            Ok(made) => {
                self.disk.note(format!("backup {} of {} commits", target.display(), self.least));
                self.counts.backups += 1;
                self.backup = Some((target, self.least));
                if self.rng.bool() {
                    database.keep_journal_after(made.from);
                    self.is_pruned = true;
                }
            }
            Err(error) => self.disk.note(format!("no backup: {error}")),
        }
        Next::GoOn
    }

    /// A last life without trouble: everything works, and goes on.
    fn end(&mut self) {
        let opened = self.open().or_else(|| {
            self.disk.crash();
            self.restart();
            self.open()
        });
        let (database, closing) = opened.unwrap();
        let faults = simulation::check_journal(&self.disk, &self.data).unwrap();
        assert!(faults.is_empty(), "the journal has faults: {faults:?}");
        let next = self.commit_alone(&database);
        assert!(next == Next::GoOn, "the database does not go on");
        drop(database);
        closing.wait();
        self.disk.restart(Crash::PowerCut);
        let opened = self.open().or_else(|| self.open());
        assert!(opened.is_some(), "the database does not open after an orderly end");
    }
}
