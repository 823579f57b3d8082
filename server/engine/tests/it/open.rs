//! Opening, closing, stopping, and what a layout's version means.

use std::{
    fs,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use journaled_tree::{CommitError, Database, Layout, OpenError, Options, Sources, TreeError, Until, View, restore};

use crate::workload::{Bytes, Model, check_and_go_on, commit, in_memory, open, options};

fn put(key: &'static str, value: &'static str) -> impl FnOnce(&mut View<'_>) -> Result<(), TreeError> {
    move |view| {
        view.put(key, value);
        Ok(())
    }
}

fn text(database: &Database, key: &str) -> Option<String> {
    database.get(key.as_bytes()).unwrap().map(|value| String::from_utf8(value).unwrap())
}

#[tokio::test]
async fn a_change_that_fails_writes_nothing_and_the_others_of_its_batch_go_on() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    database.commit(put("a", "1")).await.unwrap();
    let refused = database.commit(|view| {
        view.put("a", "2");
        view.put("b", "2");
        Err::<(), _>(view.get(b"a").unwrap().map(|value| value.into_owned()))
    });
    let (refused, other) = tokio::join!(refused, database.commit(put("c", "3")));
    assert!(matches!(refused, Err(CommitError::Refused(Some(seen))) if seen == b"2"));
    other.unwrap();
    assert_eq!(["a", "b", "c"].map(|key| text(&database, key)), [Some("1".into()), None, Some("3".into())]);
    drop(database);
    closing.wait();
}

#[tokio::test]
async fn a_directory_is_opened_once_at_a_time() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    assert!(matches!(open(directory.path()), Err(OpenError::InUse { .. })));
    drop(database);
    closing.wait();
    let (database, closing) = open(directory.path()).unwrap();
    drop(database);
    closing.wait();
}

struct Version(u32);

impl Layout for Version {
    fn format(&self) -> u32 {
        self.0
    }
}

#[tokio::test]
async fn a_later_layout_is_refused_and_an_earlier_one_can_be_converted() {
    let directory = in_memory();
    let opened = |version| {
        let open = || Options::new(directory.path(), Version(version)).open();
        // A process that another test starts holds the lock until it runs its program.
        let free = (0..1000).map(|_| open()).find(|opened| {
            let is_in_use = matches!(opened, Err(OpenError::InUse { .. }));
            thread::sleep(Duration::from_millis(u64::from(is_in_use)));
            !is_in_use
        });
        free.unwrap_or_else(open)
    };
    let (database, closing) = opened(1).unwrap();
    assert_eq!(text(&database, "meta/format").unwrap(), "1");
    drop(database);
    closing.wait();
    let (database, closing) = opened(2).unwrap();
    assert_eq!(text(&database, "meta/format").unwrap(), "1");
    database
        .commit_blocking(|view| {
            view.put(journaled_tree::FORMAT, "2");
            Ok::<_, TreeError>(())
        })
        .unwrap();
    assert_eq!(text(&database, "meta/format").unwrap(), "2");
    drop(database);
    closing.wait();
    assert!(matches!(opened(1), Err(OpenError::Format { found: 2, known: 1 })));
    // Nothing was done to it.
    let (database, closing) = opened(2).unwrap();
    assert_eq!(text(&database, "meta/format").unwrap(), "2");
    drop(database);
    closing.wait();
}

#[tokio::test]
async fn a_database_counts_its_keys_and_batches_and_a_scan_has_what_lies_between_its_bounds() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    let before = database.last_batch();
    for (nth, key) in ["a", "b"].into_iter().enumerate() {
        database.commit(put(key, key)).await.unwrap();
        assert_eq!(database.last_batch(), before + nth as u64 + 1);
    }
    drop(database);
    closing.wait();
    let (database, closing) = open(directory.path()).unwrap();
    // All batches are in the tree now.
    assert_eq!(database.count(), database.range(..).count());
    let key = |text: &str| text.as_bytes().to_vec();
    let found =
        |keys: (Bound<Vec<u8>>, Bound<Vec<u8>>)| database.range(keys).map(|entry| entry.unwrap().0).collect::<Vec<_>>();
    let none: [Vec<u8>; 0] = [];
    assert_eq!(found((Bound::Included(key("a")), Bound::Included(key("a")))), [key("a")]);
    assert_eq!(found((Bound::Included(key("a")), Bound::Included(key("b")))), [key("a"), key("b")]);
    assert_eq!(found((Bound::Included(key("b")), Bound::Included(key("a")))), none);
    assert_eq!(found((Bound::Included(key("a")), Bound::Excluded(key("a")))), none);
    assert_eq!(found((Bound::Excluded(key("a")), Bound::Excluded(key("a")))), none);
    drop(database);
    closing.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_file_that_is_taken_away_stops_the_engine_and_what_was_acknowledged_is_there() {
    let directory = in_memory();
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&stops);
    let (database, closing) = options(directory.path())
        .on_stop(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .open()
        .unwrap();
    assert_eq!(commit(&database).await.unwrap(), 1);
    for entry in fs::read_dir(directory.path().join("journal")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for _ in 0..3 {
        assert!(matches!(commit(&database).await, Err(CommitError::Stopped)));
        assert_eq!(stops.load(Ordering::SeqCst), 1);
    }
    assert_eq!(Model::default().check(&database, "it can still be read"), 1);
    drop(database);
    closing.wait();
    assert!(directory.path().join("open").exists(), "this end was not in order");
    let (database, closing) = open(directory.path()).unwrap();
    assert_eq!(Model::default().check(&database, "the tree was synced"), 1);
    drop(database);
    closing.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_panics_stops_the_engine() {
    let directory = in_memory();
    let (database, closing) = options(directory.path()).on_stop(|_, _| ()).open().unwrap();
    commit(&database).await.unwrap();
    let panicked = database.commit(|_| -> Result<(), TreeError> { panic!("as it should") }).await;
    assert!(matches!(panicked, Err(CommitError::Stopped)));
    assert!(matches!(commit(&database).await, Err(CommitError::Stopped)));
    drop(database);
    closing.wait();
    let (count, model) = (1, &mut Model::default());
    assert_eq!(check_and_go_on(directory.path(), model, "after a panic").await, count);
}

#[tokio::test]
async fn after_an_orderly_end_a_start_applies_nothing_again() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    for _ in 0..5 {
        commit(&database).await.unwrap();
    }
    drop(database);
    closing.wait();
    let list: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.path().join("journal.json")).unwrap()).unwrap();
    // The first entry is the opening's own.
    assert_eq!(list["in_tree"], 6);
}

#[tokio::test]
async fn however_the_clock_steps_the_times_of_entries_never_decrease_after_a_start_as_well() {
    let directory = in_memory();
    let data = directory.path().join("data");
    let now = Arc::new(AtomicI64::new(0));
    for nth in 0..2 {
        let clock = Arc::clone(&now);
        let (database, closing) = options(&data).clock(move || clock.load(Ordering::Relaxed)).open().unwrap();
        for millis in [1_000, 9_000, 2_000 + nth, 3_000 + nth] {
            now.store(millis, Ordering::Relaxed);
            commit(&database).await.unwrap();
        }
        drop(database);
        closing.wait();
    }
    // The first entry is the opening's own, of no time; the third was committed at 9,000, and so was what came after it.
    for (until, last) in [(999, 1), (1_000, 2), (8_999, 2), (9_000, 9)] {
        let sources =
            Sources { journal: Some(&data.join("journal")), until: Some(Until::Time(until)), ..Sources::default() };
        let restored = restore(&sources, &directory.path().join(format!("until-{until}")), Bytes).unwrap();
        assert_eq!(restored.last, last, "until {until}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_a_crash_damaged_is_rebuilt_from_the_journal_and_after_a_backup_from_both() {
    let directory = in_memory();
    let (data, backup) = (directory.path().join("data"), directory.path().join("backup"));
    let model = &mut Model::default();
    let damage = || fs::write(data.join("sled/db"), b"noise").unwrap();
    let (database, closing) = open(&data).unwrap();
    for _ in 0..30 {
        commit(&database).await.unwrap();
    }
    drop(database);
    closing.wait();
    fs::write(data.join("open"), b"").unwrap();
    damage();
    assert_eq!(check_and_go_on(&data, model, "rebuilt").await, 30);
    assert_eq!(fs::read(data.join("sled.damaged/db")).unwrap(), b"noise");

    let (database, closing) = open(&data).unwrap();
    let made = database.back_up(backup.clone()).await.unwrap();
    database.keep_journal_after(made.from);
    let first = data.join("journal/00000000000000000001.journal");
    let is_there = || first.exists() || first.with_extension("journal.zst").exists();
    let mut count = 0;
    // A file goes when a later one is begun after the tree was synced.
    while is_there() {
        count = commit(&database).await.unwrap();
        assert!(count < 5_000, "the backup has what it holds");
    }
    drop(database);
    closing.wait();
    damage();
    assert!(matches!(open(&data), Err(OpenError::Damaged { .. })));
    let restored = directory.path().join("restored");
    let sources = Sources { backup: Some(&backup), journal: Some(&data.join("journal")), until: None };
    restore(&sources, &restored, Bytes).unwrap();
    assert_eq!(check_and_go_on(&restored, model, "restored").await, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_arrives_alone_is_decided_on_its_callers_thread() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    for _ in 0..3 {
        let here = thread::current().id();
        let decided_on = database.commit(|view| Ok::<_, TreeError>((view.put("a", "1"), thread::current().id()).1));
        assert_eq!(decided_on.await.unwrap(), here);
    }
    drop(database);
    closing.wait();
}

#[tokio::test]
async fn what_is_committed_reaches_the_tree_while_nothing_else_is_and_needs_no_second_journal_file() {
    let directory = in_memory();
    let batches = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&batches);
    let count = move |changes, _| {
        assert_eq!(changes, 1);
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let (database, closing) = options(directory.path()).on_sync(count).open().unwrap();
    let before = database.count();
    for key in ["a", "b", "c"] {
        database.commit(put(key, "1")).await.unwrap();
    }
    assert_eq!(batches.load(Ordering::Relaxed), 3);
    let begun = std::time::Instant::now();
    while database.count() < before + 3 {
        assert!(begun.elapsed() < Duration::from_secs(10), "the tree has {} keys", database.count());
        thread::sleep(Duration::from_millis(20));
    }
    let is_file = |name: &str| name.ends_with(".journal");
    let names = fs::read_dir(directory.path().join("journal")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| is_file(name)).count(), 1, "{names:?}");
    drop(database);
    closing.wait();
}
