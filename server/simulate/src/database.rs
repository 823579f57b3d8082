//! The database of all servers: the embedded store on a simulated disk. It crashes, and starts again.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use journaled_tree::simulation::{Crash, SimulatedDisk, Worker};
use parking_lot::{Mutex, MutexGuard};
use payments_store::embedded::{Closing, EmbeddedStore};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Trouble,
    backups::Backups,
    fate::{Fate, ServerAmbient},
};

/// How many bytes are left on a disk that fills up.
const ROOM: u64 = 64 << 10;
/// How often the database does work that is not urgent.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Database {
    fate: Arc<Fate>,
    disk: SimulatedDisk,
    running: Mutex<Option<Running>>,
    files: Mutex<Files>,
    pub(super) backups: Backups,
    /// Notified when a commit waits.
    waits: Notify,
    has_stopped: Arc<AtomicBool>,
}

/// Where the database is on its disk.
struct Files {
    directory: PathBuf,
    /// How many directories were named.
    made: u32,
}

impl Files {
    /// A directory with a name that was not used before.
    fn new_directory(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        PathBuf::from(format!("/{name}-{}", self.made))
    }
}

struct Running {
    store: Arc<EmbeddedStore>,
    closing: Closing,
    /// Cancelled when the database crashes.
    ended: CancellationToken,
}

impl Database {
    pub(super) fn new(fate: Arc<Fate>) -> Result<Arc<Self>, String> {
        let disk = SimulatedDisk::new(fate.number(0..=u64::MAX));
        let (running, waits) = (Mutex::default(), Notify::new());
        let files = Mutex::new(Files { directory: "/data".into(), made: 0 });
        let (backups, has_stopped) = (Backups::new(&fate, &disk), Arc::default());
        let database = Arc::new(Self { fate, disk, running, files, backups, waits, has_stopped });
        database.open()?;
        Ok(database)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock()
    }

    fn open(&self) -> Result<(), String> {
        let ambient = Arc::new(ServerAmbient { fate: Arc::clone(&self.fate), skew_millis: Arc::default() });
        self.has_stopped.store(false, Ordering::Relaxed);
        let has_stopped = Arc::clone(&self.has_stopped);
        let on_stop = move |_: &'static str, _: &dyn std::error::Error| has_stopped.store(true, Ordering::Relaxed);
        let directory = self.files().directory.clone();
        let opened = EmbeddedStore::open_simulated(&self.disk, &directory, ambient, on_stop);
        let (store, closing) = opened.map_err(|error| format!("the database does not open: {error}"))?;
        let store = Arc::new(store);
        *self.lock() = Some(Running { store: Arc::clone(&store), closing, ended: CancellationToken::new() });
        self.backups.started(&store);
        Ok(())
    }

    /// The open store, and the token that is cancelled at its end; `None` while the database is down.
    pub(super) fn current(&self) -> Option<(Arc<EmbeddedStore>, CancellationToken)> {
        self.lock().as_ref().map(|running| (Arc::clone(&running.store), running.ended.clone()))
    }

    /// Tells the database that a commit waits for the next sync.
    pub(super) fn commit_waits(&self) {
        self.waits.notify_one();
    }

    /// Crashes in one of the next calls on its disk.
    pub(super) fn crash_soon(&self) {
        self.disk.crash_after(self.fate.number(0..=12));
    }

    /// Makes calls on the disk fail, or leaves it little room.
    pub(super) fn fail_disk(&self) {
        match self.fate.one_in(2) {
            true => self.disk.leave_room(self.fate.number(0..=ROOM)),
            false => self.disk.fail(0..self.fate.number(1..=40), self.fate.number(1..=8)),
        }
    }

    /// Makes the disk work again, with room.
    pub(super) fn mend_disk(&self) {
        self.disk.mend();
    }

    /// Commits waiting changes, does other work now and then, and starts again after a crash. Returns why it cannot start
    /// again.
    pub(super) async fn run(self: Arc<Self>) -> String {
        let mut next_tick = Instant::now() + TICK;
        loop {
            if timeout_at(next_tick, self.waits.notified()).await.is_ok() {
                self.fate.wait(1..=3).await;
                self.step(Worker::Committer);
            }
            if Instant::now() >= next_tick {
                self.step(Worker::Applier);
                self.step(Worker::Archivist);
                if let Some((store, _)) = self.current() {
                    self.backups.keep_on(&store);
                }
                next_tick = Instant::now() + TICK;
            }
            if (self.disk.has_crashed() || self.has_stopped.load(Ordering::Relaxed))
                && let Err(what) = self.start_again().await
            {
                return what;
            }
        }
    }

    fn step(&self, worker: Worker) {
        if let Some((store, _)) = self.current() {
            while store.database_simulated().step(worker) {}
        }
    }

    async fn start_again(&self) -> Result<(), String> {
        self.disk.crash();
        let Some(Running { store, closing, ended }) = self.lock().take() else {
            return Err("the database is not open".to_owned());
        };
        ended.cancel();
        let (is_left, down) = (Arc::downgrade(&store), self.fate.number(300..=8_000));
        drop((store, closing));
        sleep_until(Instant::now() + Duration::from_millis(down)).await;
        if is_left.strong_count() > 0 {
            return Err("a task holds the store of a crashed database".to_owned());
        }
        let crash = if self.fate.one_in(2) { Crash::Kill } else { Crash::PowerCut };
        self.disk.restart(crash);
        self.fate.note(format_args!("the database starts again after {down} ms and a {crash:?}"));
        if self.fate.one_in(4) {
            self.restore()?;
        }
        // It may be the first of several crashes.
        if self.fate.strikes(Trouble::Database, 4) {
            self.disk.crash_after(self.fate.number(0..=300));
        }
        // The disk may still fail, or a power cut may have damaged the tree. The operator does what the messages say.
        let Err(what) = self.open() else { return Ok(()) };
        self.recover(&what);
        let Err(what) = self.open() else { return Ok(()) };
        self.recover(&what);
        self.restore()?;
        self.open()
    }

    /// After a failed opening, makes the disk work and ends the process.
    fn recover(&self, what: &str) {
        self.fate.note(format_args!("{what}"));
        self.disk.crash();
        self.disk.mend();
        self.disk.restart(Crash::Kill);
    }

    /// Restores the database from its journal and any backup, if there is one. Nothing is lost, whichever backup it is.
    fn restore(&self) -> Result<(), String> {
        let (lost, directory) = {
            let mut files = self.files();
            (files.directory.clone(), files.new_directory("data"))
        };
        self.disk.mend();
        let (backup, journal) = (self.backups.any(), lost.join("journal"));
        let restored = EmbeddedStore::restore_simulated(&self.disk, backup.as_deref(), Some(&journal), &directory);
        let restored = restored.map_err(|error| format!("the database cannot be restored: {error}"))?;
        self.fate.note(format_args!("the database is restored up to change {}", restored.last));
        self.fate.count(|counts| counts.restored += 1);
        self.files().directory = directory;
        self.backups.restored(backup);
        Ok(())
    }
}
