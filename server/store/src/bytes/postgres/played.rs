//! Plays the protocol in memory, with servers that freeze, break and come back at any step.

use std::{collections::BTreeMap, env, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as Lock, OwnedMutexGuard, mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use super::{
    protocol::{Failed, Job, Locked, Steps},
    view::{Found, HotWrite, Stored, Writes},
    writer::{Connect, Waiting, Writer},
};
use crate::{
    StoreError,
    bytes::{Batch, Decision, View},
};

/// How many hot entries the cell has.
const COUNTERS: u64 = 4;
/// After how long an idle transaction is cut off.
const CUT_OFF: Duration = Duration::from_secs(5);

#[derive(Default)]
struct State {
    batches: Vec<Batch>,
    values: BTreeMap<Vec<u8>, Stored>,
}

impl State {
    fn newest(&self) -> Batch {
        self.batches.last().copied().unwrap_or(Batch { number: 0, tag: 0 })
    }

    fn find(&self, keys: &[Vec<u8>]) -> Found {
        keys.iter().map(|key| (key.clone(), self.values.get(key).cloned())).collect()
    }

    /// Applies the writes of a batch, as the database does.
    fn write(&mut self, after: Batch, batch: Batch, writes: &Writes) -> Result<(), Failed> {
        if self.newest() != after {
            return Err(Failed::Overtaken("another batch was first".into()));
        }
        if writes.inserted.iter().any(|(key, _)| self.values.contains_key(key)) {
            return Err(Failed::Met("it is there".into()));
        }
        for HotWrite { key, body, replaces } in &writes.hot {
            assert_eq!(self.values.get(key).map(|stored| stored.batch), *replaces, "an old value was kept");
            self.values.insert(key.clone(), Stored { body: body.clone().unwrap(), batch: batch.number });
        }
        for (key, body) in writes.inserted.iter().chain(&writes.updated) {
            self.values.insert(key.clone(), Stored { body: body.clone(), batch: 0 });
        }
        writes.deleted.iter().for_each(|key| drop(self.values.remove(key)));
        self.batches.push(batch);
        Ok(())
    }
}

/// A database and what may go wrong on the way to it.
#[derive(Clone)]
struct Database {
    state: Arc<Lock<State>>,
    chance: Arc<Mutex<fastrand::Rng>>,
}

impl Database {
    fn new(seed: u64) -> Self {
        Self { state: Arc::default(), chance: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    fn below(&self, many: u64) -> u64 {
        self.chance.lock().u64(..many)
    }

    fn one_in(&self, many: u64) -> bool {
        self.below(many) == 0
    }

    async fn pause(&self) {
        sleep(Duration::from_micros(self.below(500))).await;
    }
}

struct InMemory {
    database: Database,
    held: Option<(OwnedMutexGuard<State>, Instant)>,
    is_broken: bool,
}

impl InMemory {
    /// Begins a step of the server, which may freeze first, and whose connection may break.
    async fn step(&mut self) -> Result<(), Failed> {
        self.database.pause().await;
        if self.database.one_in(60) {
            self.freeze().await;
        }
        self.is_broken |= self.database.one_in(60);
        if self.is_broken {
            self.held = None;
            return Err(Failed::Broken("on the way there".into()));
        }
        Ok(())
    }

    /// The database does not wait for longer than its timeout.
    async fn freeze(&mut self) {
        let seconds = Duration::from_secs(self.database.below(9));
        let Some((held, since)) = self.held.take() else { return sleep(seconds).await };
        let (ends, thaws) = (since + CUT_OFF, Instant::now() + seconds);
        sleep_until(ends.min(thaws)).await;
        if thaws < ends {
            self.held = Some((held, since));
            return;
        }
        drop(held);
        sleep_until(thaws).await;
        self.is_broken = true;
    }

    /// Returns an answer, unless the connection breaks on the way back.
    fn answer<T>(&mut self, answer: T) -> Result<T, Failed> {
        self.is_broken |= self.database.one_in(60);
        if self.is_broken { Err(Failed::Broken("on the way back".into())) } else { Ok(answer) }
    }

    async fn hold(&mut self) -> &mut State {
        let held = Arc::clone(&self.database.state).lock_owned().await;
        &mut self.held.insert((held, Instant::now())).0
    }
}

impl Steps for InMemory {
    async fn lock(
        &mut self,
        as_of: Option<Batch>,
        always: Vec<Vec<u8>>,
        unless: Vec<Vec<u8>>,
    ) -> Result<Locked, Failed> {
        self.step().await?;
        let state = self.hold().await;
        let newest = state.newest();
        let mut found = state.find(&always);
        if as_of != Some(newest) {
            found.extend(state.find(&unless));
        }
        self.answer(Locked { newest, found })
    }

    async fn fetch(&mut self, keys: Vec<Vec<u8>>) -> Result<Found, Failed> {
        self.step().await?;
        let found = self.held.as_ref().unwrap().0.find(&keys);
        self.answer(found)
    }

    async fn commit(&mut self, after: Batch, batch: Batch, writes: &Writes) -> Result<(), Failed> {
        self.step().await?;
        let (mut state, _) = self.held.take().unwrap();
        state.write(after, batch, writes)?;
        drop(state);
        self.answer(())
    }

    async fn commit_at_once(&mut self, after: Batch, batch: Batch, writes: &Writes) -> Result<(), Failed> {
        self.step().await?;
        if self.database.one_in(20) {
            // The connection breaks while the batch is on its way, and the database reads the batch later.
            self.is_broken = true;
            let (database, writes) = (self.database.clone(), writes.clone());
            tokio::spawn(async move {
                sleep(Duration::from_millis(database.below(2_000))).await;
                let _ = database.state.lock().await.write(after, batch, &writes);
            });
            return Err(Failed::Broken("with a batch on the way".into()));
        }
        let written = self.hold().await.write(after, batch, writes);
        self.held = None;
        self.answer(())?;
        written
    }

    async fn roll_back(&mut self) -> Result<(), Failed> {
        self.held = None;
        self.step().await
    }

    async fn fence(&mut self, tag: u128, unknown: Option<Batch>) -> Result<(Batch, bool), Failed> {
        self.step().await?;
        let state = self.hold().await;
        let fence = Batch { number: state.newest().number + 1, tag };
        let is_there = unknown.is_some_and(|batch| state.batches.contains(&batch));
        state.batches.push(fence);
        self.held = None;
        self.answer((fence, is_there))
    }

    fn is_closed(&self) -> bool {
        self.is_broken
    }
}

impl Connect for Database {
    type Steps = InMemory;

    async fn connect(&self) -> Result<InMemory, String> {
        self.pause().await;
        Ok(InMemory { database: self.clone(), held: None, is_broken: false })
    }
}

fn counter(of: u64) -> Vec<u8> {
    format!("000*c{of}").into_bytes()
}

fn record(key: u64) -> Vec<u8> {
    format!("000/{key}").into_bytes()
}

fn owner(key: u64) -> Vec<u8> {
    format!("000:owner/{key}").into_bytes()
}

/// The outcome of the decision for a key: the number that it counted, or `None` if the key had a record.
type Count = Arc<Mutex<Option<Option<u64>>>>;

/// Counts once under a key, whose record has the number. An entry exists until the counter's next count removes it.
fn count(of: u64, key: u64) -> (Count, Decision) {
    let outcome = Count::default();
    let decided = Arc::clone(&outcome);
    let decide = move |view: &mut dyn View| {
        if view.get(&record(key))?.is_some() {
            *decided.lock() = Some(None);
            return Ok(false);
        }
        let (before, last) = match view.get(&counter(of))? {
            Some(body) => (u64::from_be_bytes(body[..8].try_into().unwrap()), body[8..].to_vec()),
            None => (0, Vec::new()),
        };
        if !last.is_empty() {
            assert!(view.get(&last)?.is_none_or(|value| value.is_empty()));
            view.remove(last);
        }
        view.append(owner(key), &[])?;
        view.put(counter(of), [&(before + 1).to_be_bytes()[..], &owner(key)].concat());
        view.put(record(key), [of.to_be_bytes(), before.to_be_bytes()].concat());
        *decided.lock() = Some(Some(before));
        Ok(true)
    };
    (outcome, Box::new(decide))
}

/// Looks whether a key has a record, and writes nothing.
fn look(key: u64) -> (Arc<Mutex<Option<bool>>>, Decision) {
    let outcome = Arc::<Mutex<Option<bool>>>::default();
    let decided = Arc::clone(&outcome);
    let decide = move |view: &mut dyn View| {
        *decided.lock() = Some(view.get(&record(key))?.is_some());
        Ok(false)
    };
    (outcome, Box::new(decide))
}

async fn commit(cell: &mpsc::Sender<Waiting>, decision: Decision) -> Result<(), StoreError> {
    let (answer, outcome) = oneshot::channel();
    cell.send(Waiting { job: Job::new(decision, true), answer }).await.map_err(|_| StoreError::Stopped)?;
    outcome.await.map_err(|_| StoreError::Stopped)?
}

async fn play(seed: u64) {
    let database = Database::new(seed);
    let mut tasks = Vec::new();
    // Keys that have records.
    let there = Arc::<Mutex<Vec<u64>>>::default();
    for server in 0..3 {
        let (cell, queue) = mpsc::channel(64);
        tokio::spawn(Writer::new(database.clone(), 0..=0, server).run(queue, |_, _, _| ()));
        for task in 0..4 {
            let (cell, database, there) = (cell.clone(), database.clone(), Arc::clone(&there));
            tasks.push(tokio::spawn(async move {
                let mut outcomes = Vec::new();
                for nth in 0..15 {
                    // A batch seldom has all counters.
                    let (of, key) = ((task + nth) % COUNTERS, server * 1_000 + task * 100 + nth);
                    database.pause().await;
                    let (counted, decision) = count(of, key);
                    let ended = commit(&cell, decision).await.map(|()| counted.lock().unwrap());
                    if ended.is_ok() {
                        there.lock().push(key);
                    }
                    outcomes.push((of, key, ended));
                    if !database.one_in(4) {
                        continue;
                    }
                    let again = {
                        let there = there.lock();
                        there.get(usize::try_from(nth).unwrap()).copied()
                    };
                    let Some(again) = again else { continue };
                    let (counted, decision) = count(of, again);
                    if commit(&cell, decision).await.is_ok() {
                        assert_eq!(counted.lock().unwrap(), None, "{again} is counted again");
                    }
                    let (found, decision) = look(again);
                    if commit(&cell, decision).await.is_ok() {
                        assert_eq!(*found.lock(), Some(true), "{again} is there");
                    }
                }
                outcomes
            }));
        }
    }
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.extend(task.await.unwrap());
    }
    // Batches that are still on their way arrive.
    sleep(Duration::from_secs(60)).await;
    let state = database.state.lock().await;
    let known = outcomes.iter().filter(|(.., outcome)| outcome.is_ok()).count();
    assert!(known > 100, "only {known} changes were answered");
    for (of, key, outcome) in outcomes {
        let found = state.values.get(&record(key)).map(|stored| &stored.body[..]);
        match outcome {
            Ok(Some(nth)) => assert_eq!(found, Some(&[of.to_be_bytes(), nth.to_be_bytes()].concat()[..])),
            Ok(None) => panic!("{key} was committed twice"),
            Err(_) => {}
        }
    }
    for of in 0..COUNTERS {
        let records = state.values.iter().filter(|(key, _)| key.starts_with(b"000/"));
        let bodies = records.map(|(_, stored)| stored.body.split_at(8));
        let of_this = bodies.filter(|(counter, _)| **counter == of.to_be_bytes());
        let mut numbers: Vec<u64> = of_this.map(|(_, nth)| u64::from_be_bytes(nth.try_into().unwrap())).collect();
        numbers.sort_unstable();
        let total = u64::try_from(numbers.len()).unwrap();
        assert_eq!(numbers, (0..total).collect::<Vec<_>>(), "the order has gaps");
        assert_eq!(state.values[&counter(of)].body[..8], total.to_be_bytes());
    }
    let owners = state.values.keys().filter(|key| key.starts_with(b"000:")).count();
    assert_eq!(u64::try_from(owners).unwrap(), COUNTERS, "each counter has removed the entries before its last");
    assert!(state.batches.iter().zip(1..).all(|(batch, number)| batch.number == number));
}

/// `CELL_SEEDS` sets the number of seeds.
#[tokio::test(start_paused = true)]
async fn every_change_is_committed_once_and_counted_without_gaps() {
    let seeds = env::var("CELL_SEEDS").map_or(40, |text| text.parse().unwrap());
    for seed in 0..seeds {
        eprintln!("seed {seed}");
        play(seed).await;
    }
}
