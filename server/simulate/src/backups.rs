//! The directory of the database's scheduled backups, and a check that the needed ones stay there.
//!
//! The operator restores backups into other stores, which make their own in the same directory. At times the machine's clock
//! is off by hours, and the database starts again within seconds. Even then, the directory must have the backups that each
//! store needs for a restore.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use journaled_tree::simulation::SimulatedDisk;
use parking_lot::{Mutex, MutexGuard};
use payments_core::Timestamp;
use payments_store::{Series, embedded::EmbeddedStore};
use tokio::time::Instant;

use super::{
    Planted, Trouble,
    fate::{Fate, ServerAmbient},
    is_planted,
};

/// The directory of the backups.
const DIRECTORY: &str = "/backups";
/// The time between two backups.
const EVERY: Duration = Duration::from_secs(20);
/// How many backups stay.
const KEEP: usize = 3;
/// How far the clock may be off, in milliseconds.
const OFF: u64 = 36_000_000;

/// The scheduled backups of the database.
pub(super) struct Backups {
    fate: Arc<Fate>,
    disk: SimulatedDisk,
    series: Series,
    state: Mutex<State>,
}

struct State {
    /// How far the machine's clock is ahead, in milliseconds.
    skew: i64,
    /// When the next backup is due; `None` in peace.
    due: Option<Instant>,
    /// The backups of the present line: path, time by the machine's clock, last change.
    own: Vec<(PathBuf, i64, u64)>,
    /// The backup from which the present line was restored.
    base: Option<PathBuf>,
    /// The backups of lines before a restore, and of other stores.
    others: Vec<PathBuf>,
    violations: Vec<String>,
    /// How many other stores there were.
    beside: u64,
}

impl Backups {
    pub(super) fn new(fate: &Arc<Fate>, disk: &SimulatedDisk) -> Self {
        // A backup is too young to be removed for some intervals.
        let every = if is_planted(Planted::BackupsWithoutAge) { Duration::ZERO } else { EVERY };
        let series = Series { directory: DIRECTORY.into(), every, keep: KEEP };
        let (own, others, violations) = (Vec::new(), Vec::new(), Vec::new());
        let state = Mutex::new(State { skew: 0, due: None, own, base: None, others, violations, beside: 0 });
        Self { fate: Arc::clone(fate), disk: disk.clone(), series, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The time by the machine's clock.
    fn now(&self) -> Timestamp {
        let now = self.fate.now_millis() + self.state().skew;
        Timestamp::from_millis(now).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// A whole backup of the present line, or the one from which the line was restored.
    pub(super) fn any(&self) -> Option<PathBuf> {
        let own: Vec<_> =
            self.state().own.iter().map(|(path, ..)| path.clone()).filter(|it| self.is_whole(it)).collect();
        self.fate.choose(&own).cloned().or_else(|| self.state().base.clone())
    }

    fn is_whole(&self, backup: &Path) -> bool {
        self.disk.has(&backup.join("backup.json"))
    }

    /// Begins another line, because the database was restored.
    pub(super) fn restored(&self, from: Option<PathBuf>) {
        let mut state = self.state();
        state.base = from;
        let before: Vec<_> = state.own.drain(..).map(|(path, ..)| path).filter(|it| self.is_whole(it)).collect();
        state.others.extend(before);
    }

    /// Sets the machine's clock and resumes the series, because the database has started.
    pub(super) fn started(&self, store: &EmbeddedStore) {
        if self.fate.strikes(Trouble::Clock, 8) {
            let skew = i64::try_from(self.fate.number(0..=2 * OFF)).unwrap_or_default();
            self.state().skew = skew - i64::try_from(OFF).unwrap_or_default();
        } else if self.fate.one_in(3) {
            self.state().skew = 0;
        }
        let taken_up = store.database_simulated().take_up(&self.series, self.now().as_millis());
        self.state().due = Some(Instant::now() + taken_up.map_or(EVERY, |taken_up| taken_up.due_in));
        self.keep_on(store);
    }

    /// Makes the next backup if it is due.
    pub(super) fn keep_on(&self, store: &EmbeddedStore) {
        let is_due = self.state().due.is_some_and(|due| due <= Instant::now());
        if is_due {
            self.state().due = Some(Instant::now() + EVERY);
            self.make(store);
        }
    }

    fn make(&self, store: &EmbeddedStore) {
        let now = self.now();
        let made = store.database_simulated().back_up_next_blocking(&self.series, now.as_millis());
        self.fate.note(format_args!("a backup: {:?}", made.as_ref().map(|(_, made)| made.to)));
        if let Ok((path, made)) = made {
            self.state().own.push((path, now.as_millis(), made.to));
            self.fate.count(|counts| counts.backups += 1);
        }
        self.look(now.as_millis());
    }

    /// Checks that all needed backups are there, at a time of the machine's clock.
    fn look(&self, now: i64) {
        let mut state = self.state();
        let span = i64::try_from(EVERY.as_millis()).unwrap_or_default() * i64::try_from(KEEP).unwrap_or_default();
        let young = state.own.iter().filter(|(_, at, _)| (0..span).contains(&(now - at))).map(|(path, ..)| path);
        let mut lost: Vec<_> = young.chain(&state.others).filter(|path| !self.is_whole(path)).cloned().collect();
        // Of several backups with the same changes, one is enough.
        let newest = state.own.iter().map(|(.., to)| *to).max();
        let newest: Vec<_> = state.own.iter().filter(|(.., to)| Some(*to) == newest).map(|(path, ..)| path).collect();
        if !newest.iter().any(|path| self.is_whole(path)) {
            lost.extend(newest.into_iter().cloned());
        }
        for path in lost {
            state.violations.push(format!("the backup {} was removed", path.display()));
        }
        state.own.retain(|(path, ..)| self.is_whole(path));
        state.others.retain(|path| self.is_whole(path));
    }

    /// Makes no more backups. Returns the violations.
    pub(super) fn rest(&self) -> Vec<String> {
        let now = self.now().as_millis();
        self.look(now);
        let mut state = self.state();
        state.due = None;
        std::mem::take(&mut state.violations)
    }

    /// Restores a backup into another store, which makes other changes and has the same directory for its backups.
    pub(super) fn restore_beside(&self) {
        let Some(backup) = self.any() else { return };
        let number = {
            let mut state = self.state();
            state.beside += 1;
            state.beside
        };
        let directory = PathBuf::from(format!("/beside-{number}"));
        let outcome = self.live_beside(&backup, &directory);
        self.fate.note(format_args!("a store beside: {outcome:?}"));
        match outcome {
            Err(what) if !self.disk.has_crashed() && !self.disk.is_troubled() => self.state().violations.push(what),
            _ => {}
        }
        self.look(self.now().as_millis());
    }

    fn live_beside(&self, backup: &Path, directory: &Path) -> Result<(), String> {
        let failed = |what| move |error| format!("a store beside the database cannot {what}: {error}");
        let restored = EmbeddedStore::restore_simulated(&self.disk, Some(backup), None, directory);
        restored.map_err(|error| failed("be restored")(error.to_string()))?;
        let ambient = Arc::new(ServerAmbient { fate: Arc::clone(&self.fate), skew_millis: Arc::default() });
        let opened = EmbeddedStore::open_simulated(&self.disk, directory, ambient, |_, _| ());
        let (store, closing) = opened.map_err(|error| failed("be opened")(error.to_string()))?;
        let (mut now, mut made) = (self.now().as_millis(), Vec::new());
        let mut live = || {
            let database = store.database_simulated();
            let taken_up = database.take_up(&self.series, now);
            taken_up.map_err(|error| failed("take up its backups")(error.to_string()))?;
            for _ in 0..self.fate.number(1..=5) {
                store.grow_simulated().map_err(|error| failed("be written")(error))?;
                let next = database.back_up_next_blocking(&self.series, now);
                made.push(next.map_err(|error| failed("be backed up")(error.to_string()))?.0);
                now += i64::try_from(EVERY.as_millis()).unwrap_or_default();
            }
            Ok::<_, String>(database.last_batch())
        };
        let last = live();
        drop(store);
        closing.wait();
        // Each remaining backup leads to the last change.
        made.retain(|path| self.is_whole(path));
        for (nth, path) in made.iter().enumerate() {
            let target = PathBuf::from(format!("{}-{nth}", directory.display()));
            let journal = directory.join("journal");
            let restored = EmbeddedStore::restore_simulated(&self.disk, Some(path), Some(&journal), &target);
            let restored = restored.map_err(|error| failed("be restored again")(error.to_string()))?;
            if last.as_ref().is_ok_and(|last| restored.last < *last) {
                return Err(format!("a store beside was restored up to {}, not {last:?}", restored.last));
            }
        }
        self.state().others.extend(made);
        last.map(drop)
    }
}
