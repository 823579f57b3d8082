//! Readers beside commits: what was acknowledged is there, and nobody sees an older state after a newer one.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use journaled_tree::TreeError;

use crate::workload::{in_memory, open};

const COMMITS: u64 = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_finds_what_was_acknowledged_and_never_an_older_state_after_a_newer_one() {
    let directory = in_memory();
    let (database, closing) = open(directory.path()).unwrap();
    let (database, acknowledged) = (Arc::new(database), Arc::new(AtomicU64::new(0)));
    let number = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (database, acknowledged) = (Arc::clone(&database), Arc::clone(&acknowledged));
        tasks.spawn_blocking(move || {
            let mut seen = 0;
            while seen < COMMITS {
                let least = acknowledged.load(Ordering::SeqCst).max(seen);
                // Each commit writes all of these keys, the last first.
                for key in [b"k1", b"k2", b"k3"] {
                    let found = database.get(key).unwrap().map_or(0, |value| number(&value));
                    assert!(found >= least, "{found} is older than {least}");
                    seen = seen.max(found);
                }
                let entries: Vec<_> = database.range(b"k".to_vec()..b"l".to_vec()).map(Result::unwrap).collect();
                assert!(entries.is_sorted_by(|(one, _), (next, _)| one < next));
                assert!(entries.iter().all(|(_, value)| number(value) >= least));
                assert_eq!(entries.len(), if least > 0 { 3 } else { entries.len() });
            }
        });
    }
    for nth in 1..=COMMITS {
        // In turns alone and together with others.
        let commit = |is_real: bool| {
            database.commit(move |view| {
                if is_real {
                    for key in ["k3", "k2", "k1"] {
                        view.put(key, nth.to_be_bytes());
                    }
                }
                Ok::<_, TreeError>(())
            })
        };
        match nth % 2 {
            0 => commit(true).await.unwrap(),
            _ => {
                let (one, other) = tokio::join!(commit(true), commit(false));
                one.and(other).unwrap();
            }
        }
        acknowledged.store(nth, Ordering::SeqCst);
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome.unwrap();
    }
    drop(database);
    closing.wait();
}
