//! The check of a layout finds each value that is missing, is under a wrong key, or follows from nothing.

use payments_store::{
    Finding, Snapshot as _, Store, Write,
    bytes::{Bytes as _, Cell, with_prefix},
    layout::MemoryStore,
};
use std::sync::Arc;

use crate::{moving, samples::*};

/// Records to which nothing refers, so the check cannot notice that one is missing.
const ALONE: [&str; 10] = [
    "app/",
    "destination/",
    "gateway-token/",
    "gateway-pause/",
    "platform-key/",
    "notices/",
    "log/",
    "lease/",
    "coverage/",
    "person-session/",
];

fn dynamic(store: &Arc<MemoryStore>) -> Arc<Store> {
    store.store()
}

async fn filled() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    moving::fill(dynamic(&store)).await;
    // More payments than a chunk of a list has, some of them paid.
    let new: Vec<_> = (10..50).map(|nth| new_payment(4, at(nth))).collect();
    commit(&dynamic(&store), new.iter().cloned().map(payment).collect()).await.unwrap();
    let moved = new.iter().step_by(3).map(|new| payment(paid(&new.session, at(60))));
    commit(&dynamic(&store), moved.collect()).await.unwrap();
    assert_eq!(findings(&store), []);
    store
}

fn findings(store: &MemoryStore) -> Vec<Finding> {
    store.check(&mut |_| ()).unwrap().findings
}

async fn values(store: &MemoryStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = store.bytes.range(Cell(0), Vec::new()..vec![u8::MAX], false, usize::MAX).await.unwrap();
    all.into_iter().map(Result::unwrap).collect()
}

fn is_alone(key: &[u8]) -> bool {
    ALONE.iter().any(|kind| key.get(4..).is_some_and(|rest| rest.starts_with(kind.as_bytes())))
}

/// The home, the table and the kind of a key.
fn kind(key: &[u8]) -> &[u8] {
    let end = key.iter().skip(4).position(|byte| *byte == b'/').map_or(key.len(), |end| end + 5);
    &key[3..end]
}

#[tokio::test]
async fn each_missing_value_is_found() {
    let store = filled().await;
    for (key, value) in values(&store).await {
        store.bytes.lose(&key);
        let found = findings(&store);
        assert!(!found.is_empty() || is_alone(&key), "{} is missing", key.escape_ascii());
        store.bytes.set(&key, value);
    }
    assert_eq!(findings(&store), []);
}

#[tokio::test]
async fn each_truncated_value_is_found() {
    let store = filled().await;
    for (key, value) in values(&store).await {
        let Some((_, cut)) = value.split_last() else { continue };
        store.bytes.set(&key, cut.to_vec());
        assert!(!findings(&store).is_empty(), "{} is cut off", key.escape_ascii());
        store.bytes.set(&key, value);
    }
}

#[tokio::test]
async fn each_value_under_the_key_of_another_is_found() {
    let store = filled().await;
    let all = values(&store).await;
    for (key, value) in &all {
        let another = all.iter().find(|(other, its)| kind(other) == kind(key) && other != key && its != value);
        let Some((_, another)) = another else { continue };
        store.bytes.set(key, another.clone());
        assert!(!findings(&store).is_empty(), "{} has the value of another", key.escape_ascii());
        store.bytes.set(key, value.clone());
    }
}

#[tokio::test]
async fn each_entry_that_follows_from_no_record_is_found() {
    let store = filled().await;
    for (key, value) in values(&store).await.into_iter().filter(|(key, _)| key[3] != b'/') {
        // The same entry of another developer, payment, time or number.
        let mut other = key.clone();
        let last = other.len() - 1;
        other[last] = if other[last] == b'7' { b'8' } else { b'7' };
        if store.bytes.get(Cell(0), vec![other.clone()]).await.unwrap()[0].is_some() {
            continue;
        }
        store.bytes.set(&other, value);
        assert!(!findings(&store).is_empty(), "{} follows from nothing", other.escape_ascii());
        store.bytes.lose(&other);
    }
    let none = store.bytes.range(Cell(0), with_prefix(b"surprise"), false, 1).await.unwrap();
    assert!(none.is_empty());
    for surprise in ["surprise", "000/surprise/1", "all:surprise/1", "000*surprise"] {
        store.bytes.set(surprise.as_bytes(), b"{}".to_vec());
        assert!(!findings(&store).is_empty(), "{surprise} is of no kind");
        store.bytes.lose(surprise.as_bytes());
    }
}

#[tokio::test]
async fn each_unreadable_value_is_found_and_the_rest_is_checked() {
    let store = filled().await;
    let (before, all) = (store.check(&mut |_| ()).unwrap().records, values(&store).await);
    for (key, _) in all {
        store.bytes.damage(&key);
        let checked = store.check(&mut |_| ()).unwrap();
        let key = key.escape_ascii().to_string();
        assert!(checked.findings.iter().any(|it| it.record == key && it.what.contains("cannot be read")), "{key}");
        assert_eq!(checked.records, before, "{key}");
        store.bytes.mend();
    }
}

#[tokio::test]
async fn each_record_in_an_unknown_currency_or_environment_is_found() {
    let store = filled().await;
    let mut replaced = 0;
    for (key, value) in values(&store).await {
        let Ok(text) = String::from_utf8(value.clone()) else { continue };
        // The public JSON in an event is only passed on.
        let end = text.find(r#""data":"#).unwrap_or(text.len());
        for (known, unknown) in [(r#""BDT""#, r#""EUR""#), (r#""environment":"live""#, r#""environment":"rehearsal""#)]
        {
            let changed = text[..end].replace(known, unknown) + &text[end..];
            if changed != text {
                replaced += 1;
                store.bytes.set(&key, changed.into_bytes());
                assert!(!findings(&store).is_empty(), "{} has {unknown}", key.escape_ascii());
            }
        }
        store.bytes.set(&key, value);
    }
    assert!(replaced > 50, "{replaced}");
}

#[tokio::test]
async fn a_check_goes_on_after_damaged_values_wherever_they_are() {
    let store = Arc::new(MemoryStore::default());
    commit(&dynamic(&store), vec![Write::Workspace(workspace(0))]).await.unwrap();
    for tens in 1..25 {
        let new = (0..10).map(|nth| payment(new_payment(tens * 10 + nth, at(nth.into()))));
        commit(&dynamic(&store), new.collect()).await.unwrap();
    }
    let (records, all) = (store.check(&mut |_| ()).unwrap().records, values(&store).await);
    assert!(all.len() > 700, "{} values are less than three pages", all.len());
    for damaged in [0..1, 100..101, 254..257, 255..256, 250..700, 600..all.len(), 0..all.len()] {
        all[damaged.clone()].iter().for_each(|(key, _)| store.bytes.damage(key));
        let checked = store.check(&mut |_| ()).unwrap();
        assert_eq!(checked.records, records, "{damaged:?}");
        let unreadable = checked.findings.iter().filter(|it| it.what.starts_with("cannot be read")).count();
        assert!(unreadable >= damaged.len(), "{damaged:?}: {unreadable}");
        store.bytes.mend();
    }
}
