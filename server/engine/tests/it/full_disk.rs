//! A disk that is full for a while.

use std::{fs, process::Command};

use journaled_tree::CommitError;
use test_support::small_disk::SmallDisk;

use crate::workload::{Model, check_and_go_on, commit, in_memory, open};

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_commits_fail_whole_and_can_be_tried_again_and_nothing_is_lost() {
    let held = in_memory();
    let disk = SmallDisk::mount(held.path(), "32m");
    let data = held.path().join("data");
    let (mut model, ballast) = (Model::default(), held.path().join("ballast"));
    let (database, closing) = open(&data).unwrap();
    let mut count = 0;
    for _ in 0..3 {
        let mut fill = Command::new("dd");
        fill.args(["if=/dev/zero", "bs=64K", "count=3000", "status=none"]).arg(format!("of={}", ballast.display()));
        assert!(!fill.status().unwrap().success(), "the disk is full now");
        // The journal and the tree have some room in advance.
        let refused = loop {
            match commit(&database).await {
                Ok(number) => count = number,
                Err(error) => break error,
            }
        };
        for refused in [refused, commit(&database).await.unwrap_err(), commit(&database).await.unwrap_err()] {
            assert!(matches!(refused, CommitError::NotWritten), "{refused}");
        }
        assert_eq!(model.check(&database, "while the disk is full"), count);
        fs::remove_file(&ballast).unwrap();
        for _ in 0..20 {
            count += 1;
            assert_eq!(commit(&database).await.unwrap(), count);
        }
    }
    drop(database);
    closing.wait();
    assert_eq!(check_and_go_on(&data, &mut model, "after a full disk").await, count);
    drop(disk);
}
