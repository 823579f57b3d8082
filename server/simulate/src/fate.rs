//! Chance and its record: one source of randomness, the troubles that strike, and the trace of a world.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};
use payments_core::Timestamp;
use payments_store::ambient::Ambient;
use tokio::time::{Instant, sleep};

use super::{Counts, Trouble, trace::Trace};

/// The time at which every simulation begins: 2026-01-01T00:00:00Z.
const BEGINNING_MILLIS: i64 = 1_767_225_600_000;

/// Shared by all parts of a world.
pub(super) struct Fate {
    state: Mutex<State>,
    begun: Instant,
}

struct State {
    rng: Rng,
    /// The troubles that may strike now.
    troubles: Vec<Trouble>,
    trace: Trace,
    counts: Counts,
    /// When something last happened to the database, the way to it or the clock, in milliseconds since 1970.
    shaken_at: i64,
    /// The last moment at which a server asked the database, and how often it was asked then.
    asked: (u64, u32),
}

/// How often the servers may ask the database in one millisecond: more is a loop that never waits.
const ASKED_AT_ONCE: u32 = 50_000;

impl Fate {
    /// Everything follows from the seed. Nothing strikes until [`trouble`](Self::trouble).
    pub(super) fn new(seed: u64) -> Self {
        let (trace, counts) = (Trace::default(), Counts::default());
        let state =
            State { rng: Rng::with_seed(seed), troubles: Vec::new(), trace, counts, shaken_at: 0, asked: (0, 0) };
        Self { state: Mutex::new(state), begun: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Sets the troubles that may strike from now on.
    pub(super) fn trouble(&self, troubles: &[Trouble]) {
        self.state().troubles = troubles.to_vec();
    }

    /// Whether a trouble strikes, with one chance in `one_in`.
    pub(super) fn strikes(&self, trouble: Trouble, one_in: u32) -> bool {
        let mut state = self.state();
        if !state.troubles.contains(&trouble) || state.rng.u32(..one_in) != 0 {
            return false;
        }
        *state.counts.troubles.entry(trouble).or_default() += 1;
        drop(state);
        if matches!(
            trouble,
            Trouble::Partition
                | Trouble::SilentDatabase
                | Trouble::Clock
                | Trouble::Database
                | Trouble::Disk
                | Trouble::DatabaseLink
        ) {
            self.shake();
        }
        self.note(format_args!("{trouble:?} strikes"));
        true
    }

    pub(super) fn number(&self, range: RangeInclusive<u64>) -> u64 {
        self.state().rng.u64(range)
    }

    /// True with one chance in `one_in`.
    pub(super) fn one_in(&self, one_in: u32) -> bool {
        self.state().rng.u32(..one_in) == 0
    }

    /// One of some things.
    pub(super) fn choose<'t, T>(&self, things: &'t [T]) -> Option<&'t T> {
        let mut state = self.state();
        (!things.is_empty()).then(|| &things[state.rng.usize(..things.len())])
    }

    /// Takes one of some things.
    pub(super) fn take_one<T>(&self, things: &mut Vec<T>) -> Option<T> {
        let nth = (!things.is_empty()).then(|| self.state().rng.usize(..things.len()))?;
        Some(things.swap_remove(nth))
    }

    /// Waits a random number of milliseconds.
    pub(super) async fn wait(&self, millis: RangeInclusive<u64>) {
        let millis = self.number(millis);
        if millis > 0 {
            sleep(Duration::from_millis(millis)).await;
        }
    }

    /// Milliseconds since the beginning.
    pub(super) fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The true time, in milliseconds since 1970.
    pub(super) fn now_millis(&self) -> i64 {
        BEGINNING_MILLIS + i64::try_from(self.elapsed_millis()).unwrap_or_default()
    }

    /// The true time, in seconds since 1970.
    pub(super) fn now_seconds(&self) -> u64 {
        u64::try_from(self.now_millis() / 1000).unwrap_or_default()
    }

    /// Records that something happens to the database, the way to it, or the clock.
    pub(super) fn shake(&self) {
        let now = self.now_millis();
        self.state().shaken_at = now;
    }

    /// Whether nothing has happened to the database, the way to it, or the clock since this time.
    pub(super) fn is_calm_since(&self, millis: i64) -> bool {
        self.state().shaken_at < millis
    }

    /// Adds a line to the trace.
    pub(super) fn note(&self, line: fmt::Arguments<'_>) {
        let at = self.elapsed_millis();
        self.state().trace.add(at, line);
    }

    /// Counts a request of a server to the database. Returns whether there were few enough in this moment: otherwise time
    /// would never go on.
    pub(super) fn may_ask(&self) -> bool {
        let now = self.elapsed_millis();
        let (at, times) = &mut self.state().asked;
        (*at, *times) = (now, if *at == now { *times + 1 } else { 1 });
        *times < ASKED_AT_ONCE
    }

    /// Changes the counts.
    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.state().counts);
    }

    pub(super) fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    /// A hash of the whole trace. Two runs that differ have different hashes.
    pub(super) fn trace_hash(&self) -> u64 {
        self.state().trace.hash()
    }

    /// Takes the last lines of the trace.
    pub(super) fn story(&self) -> Vec<String> {
        self.state().trace.take_lines()
    }
}

impl Counts {
    /// How many troubles struck.
    #[must_use]
    pub fn all_troubles(&self) -> u64 {
        self.troubles.values().sum()
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.refused += other.refused;
        self.received += other.received;
        self.payments += other.payments;
        self.settled += other.settled;
        self.endless += other.endless;
        self.backups += other.backups;
        self.restored += other.restored;
        other.troubles.iter().for_each(|(trouble, count)| *self.troubles.entry(*trouble).or_default() += count);
        for (all, of) in [
            (&mut self.moves, &other.moves),
            (&mut self.transitions, &other.transitions),
            (&mut self.payouts, &other.payouts),
        ] {
            of.iter().for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
        }
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "operations: {}, of them refused {}", self.operations, self.refused)?;
        let list = |map: &BTreeMap<String, u64>| {
            map.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        let troubles = self.troubles.iter().map(|(trouble, count)| (trouble.name().to_owned(), *count)).collect();
        writeln!(f, "faults: {} ({})", self.all_troubles(), list(&troubles))?;
        writeln!(f, "moves: {}", list(&self.moves))?;
        let (unseen, seen): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.transitions.clone().into_iter().partition(|(_, count)| *count == 0);
        writeln!(f, "transitions: {} of {}: {}", seen.len(), seen.len() + unseen.len(), list(&seen))?;
        if !unseen.is_empty() {
            writeln!(f, "not seen: {}", unseen.into_keys().collect::<Vec<_>>().join(", "))?;
        }
        writeln!(f, "payouts: {}; settled rows: {}", list(&self.payouts), self.settled)?;
        writeln!(f, "backups: {}, restored from one: {}", self.backups, self.restored)?;
        write!(f, "deliveries received: {}, payments: {}", self.received, self.payments)
    }
}

/// The clock and random source of one server. Its clock may be wrong.
pub(super) struct ServerAmbient {
    pub(super) fate: Arc<Fate>,
    /// How far the clock is ahead.
    pub(super) skew_millis: Arc<Mutex<i64>>,
}

impl Ambient for ServerAmbient {
    fn now(&self) -> Timestamp {
        let skew = *self.skew_millis.lock();
        Timestamp::from_millis(self.fate.now_millis() + skew).unwrap_or_else(|_| unreachable!("before the year 9999"))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.fate.state().rng.fill(bytes);
    }
}
