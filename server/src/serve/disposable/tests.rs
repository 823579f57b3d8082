//! Disposable stores on a real disk, with a clock that a test sets.

use std::sync::atomic::{AtomicI64, Ordering};

use payments_core::{RANDOM_BYTES, Slot, WorkspaceId};
use tokio::time::timeout;

use super::*;
use crate::{ambient::OperatingSystem, domain::Limits, metrics::Metrics};

const HOUR: i64 = 3_600_000;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + hours * HOUR).unwrap()
}

/// A clock that a test sets.
struct Clock(AtomicI64);

impl Clock {
    fn set(&self, hours: i64) {
        self.0.store(at(hours).as_millis(), Ordering::SeqCst);
    }
}

impl Ambient for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        OperatingSystem.fill_random(bytes);
    }
}

/// A directory, a clock at hour 0, and gauges.
struct Place {
    directory: tempfile::TempDir,
    clock: Arc<Clock>,
    gauges: SandboxGauges,
}

impl Place {
    fn new() -> Self {
        let clock = Arc::new(Clock(AtomicI64::default()));
        clock.set(0);
        Self { directory: tempfile::tempdir().unwrap(), clock, gauges: Metrics::new().sandbox }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("sandbox")
    }

    fn workspace() -> Workspace {
        Workspace {
            version: 7,
            id: WorkspaceId::new(Slot::FIRST, at(0), [1; RANDOM_BYTES]),
            developer_id: "dev_1".parse().unwrap(),
            name: "Sandbox".into(),
            slug: "sandbox".into(),
            website: None,
            status: "active".into(),
            created_at: at(0),
            resets: 0,
            ways: Vec::new(),
            limits: Limits::default(),
        }
    }

    async fn open(&self, max_bytes: u64) -> (Disposable, Present) {
        let (clock, gauges) = (Arc::clone(&self.clock) as Arc<dyn Ambient>, self.gauges.clone());
        Disposable::open(self.path(), max_bytes, Self::workspace(), clock, gauges).await.unwrap()
    }

    /// When each store in the directory began.
    fn begun(&self) -> Vec<Timestamp> {
        left_in(&self.path()).unwrap().into_iter().map(|(begun, _)| begun).collect()
    }
}

/// Whether a store is not replaced immediately.
async fn stays(sandbox: &Disposable, store: &Present) -> bool {
    timeout(Duration::from_millis(500), sandbox.next(store)).await.is_err()
}

/// Marks a store, to recognise it later.
async fn mark(store: &Present) {
    let other =
        Workspace { version: 0, id: WorkspaceId::new(Slot::FIRST, at(1), [2; RANDOM_BYTES]), ..Place::workspace() };
    let other = Workspace { developer_id: "dev_2".parse().unwrap(), slug: "mark".into(), ..other };
    store.store.commit(Change::of(Write::Workspace(other))).await.unwrap();
}

async fn is_marked(store: &Present) -> bool {
    let workspaces = store.store.workspaces().await.unwrap();
    assert!(workspaces.iter().any(|it| it.developer_id == Place::workspace().developer_id), "{workspaces:?}");
    workspaces.len() == 2
}

#[tokio::test]
async fn a_start_opens_the_last_store_again_and_removes_all_others() {
    let place = Place::new();
    let (_, store) = place.open(u64::MAX).await;
    assert!(!is_marked(&store).await);
    mark(&store).await;
    let (clock, gauges) = (Arc::clone(&place.clock) as Arc<dyn Ambient>, place.gauges.clone());
    let another = Disposable::open(place.path(), u64::MAX, Place::workspace(), clock, gauges).await;
    assert!(another.is_err_and(|error| error.is_in_use()), "another server has it");
    store.close();
    fs::create_dir_all(place.path().join(at(-1).as_millis().to_string()).join("below")).unwrap();
    fs::create_dir(place.path().join("of another kind")).unwrap();
    place.clock.set(23);
    let (_, store) = place.open(u64::MAX).await;
    assert!(is_marked(&store).await);
    assert_eq!(place.begun(), [at(0)]);
    assert!(place.path().join("of another kind").is_dir(), "it is not a store");
    store.close();
}

#[tokio::test]
async fn a_start_begins_a_new_store_if_the_last_is_old_or_too_large_or_does_not_open() {
    let place = Place::new();
    for (hours, max_bytes, is_damaged) in [(24, u64::MAX, false), (25, 1, false), (26, u64::MAX, true)] {
        let (_, store) = place.open(u64::MAX).await;
        mark(&store).await;
        let begun = place.begun();
        store.close();
        if is_damaged {
            let last = place.path().join(begun[0].as_millis().to_string());
            for entry in fs::read_dir(last).unwrap().flatten().filter(|it| it.path().is_file()) {
                fs::write(entry.path(), "damaged").unwrap();
            }
        }
        place.clock.set(hours);
        let (_, store) = place.open(max_bytes).await;
        assert_eq!(place.begun(), [at(hours)]);
        assert!(!is_marked(&store).await);
        store.close();
    }
}

#[tokio::test]
async fn a_due_store_is_replaced_and_is_removed_when_nobody_uses_it_any_more() {
    let place = Place::new();
    let (sandbox, first) = place.open(u64::MAX).await;
    mark(&first).await;
    assert!(stays(&sandbox, &first).await, "it is not due");
    assert!(place.gauges.bytes.get() > 0 && is_marked(&first).await);
    place.clock.set(24);
    let second = sandbox.next(&first).await;
    assert!(!is_marked(&second).await);
    assert_eq!((place.begun(), place.gauges.renewals.get()), (vec![at(0), at(24)], 1));
    let in_use = first.store();
    let removed = spawn_blocking(|| first.remove());
    assert_eq!(in_use.workspaces().await.unwrap().len(), 2, "a reader goes on");
    sleep(Duration::from_millis(50)).await;
    assert!(!removed.is_finished() && place.begun().len() == 2);
    drop(in_use);
    removed.await.unwrap();
    assert_eq!(place.begun(), [at(24)]);
    // The clock steps back by two days. The next store's name is still later than the last one's.
    place.clock.set(-24);
    let third = sandbox.next(&second).await;
    assert_eq!(third.begun, at(24).plus_millis(1));
    second.close();
    third.close();
}

#[tokio::test]
async fn a_store_that_cannot_be_replaced_stays_in_use_and_the_failed_one_is_removed() {
    let place = Place::new();
    let (sandbox, store) = place.open(u64::MAX).await;
    mark(&store).await;
    place.clock.set(24);
    let path = place.path();
    let moved = place.directory.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    fs::write(&path, "in the way").unwrap();
    assert!(stays(&sandbox, &store).await && is_marked(&store).await);
    assert_eq!(place.gauges.renewals.get(), 0);
    fs::remove_file(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    assert_eq!(place.begun(), [at(0)]);
    store.close();
}

#[test]
fn the_length_of_a_directory_is_the_sum_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(bytes_in(&directory.path().join("nothing")), 0);
    fs::create_dir(directory.path().join("below")).unwrap();
    fs::write(directory.path().join("a"), "12345").unwrap();
    fs::write(directory.path().join("below/b"), "123").unwrap();
    assert_eq!(bytes_in(directory.path()), 8);
}

#[test]
fn a_server_without_a_disposable_store_removes_those_of_an_earlier_run() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("sandbox");
    Disposable::remove_left(&left).unwrap();
    fs::create_dir_all(left.join("1700000000000")).unwrap();
    Disposable::remove_left(&left).unwrap();
    assert!(!left.exists());
    fs::write(&left, "not a directory").unwrap();
    assert!(Disposable::remove_left(&left).is_err());
}

#[test]
fn a_store_is_due_when_it_is_too_large_or_a_day_old_even_if_the_clock_steps() {
    assert!(!is_due(at(0), at(0), 100, 100));
    assert!(is_due(at(0), at(0), 101, 100));
    assert!(!is_due(at(0), at(23), 0, 100));
    assert!(is_due(at(0), at(24), 0, 100));
    assert!(!is_due(at(0), at(-23), 0, 100));
    assert!(is_due(at(0), at(-24), 0, 100));
}
