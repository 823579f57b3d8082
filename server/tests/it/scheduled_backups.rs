//! Scheduled backups: which of them stay, whatever restores, restarts, clocks and other stores do to their directory.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::small_disk::SmallDisk;

use crate::server::{Server, eventually, payment_of, server_binary, text_of};

/// A directory for backups.
struct Backups(TempDir);

impl Backups {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// The flags of a server that makes backups in this directory.
    fn flags<'f>(&'f self, every: &'f str, keep: &'f str) -> [&'f str; 6] {
        ["--backup-dir", self.0.path().to_str().unwrap(), "--backup-every", every, "--backup-keep", keep]
    }

    /// The whole backups, sorted by name.
    fn whole(&self) -> Vec<PathBuf> {
        let mut found = self.all();
        found.retain(|path| path.join("backup.json").exists());
        found
    }

    fn all(&self) -> Vec<PathBuf> {
        let mut found: Vec<_> = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }

    /// Waits until there is a whole backup.
    async fn first(&self) -> PathBuf {
        eventually("a backup", async || self.whole().into_iter().next()).await
    }

    /// Waits until there is a new whole backup.
    async fn next(&self) -> PathBuf {
        let before = self.whole();
        eventually("a backup", async || self.whole().into_iter().find(|path| !before.contains(path))).await
    }
}

/// The number of the last change in a backup.
fn end_of(backup: &Path) -> u64 {
    let manifest: Value = serde_json::from_slice(&fs::read(backup.join("backup.json")).unwrap()).unwrap();
    manifest["to"].as_u64().unwrap()
}

fn restore(backup: &Path, more: &[&str], to: &Path) -> Output {
    let mut command = Command::new(server_binary());
    command.arg("restore").arg(backup).args(more).arg("--data-dir").arg(to).output().unwrap()
}

/// How many payments a backup alone restores.
fn payments_in(backup: &Path) -> u64 {
    let directory = TempDir::new().unwrap();
    let output = restore(backup, &["--json"], &directory.path().join("restored"));
    assert!(output.status.success(), "{}", text_of(&output));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    said["check"]["payments"].as_u64().unwrap()
}

#[tokio::test]
async fn after_a_restore_into_the_past_old_backups_stay_and_new_ones_have_the_new_payments() {
    let backups = Backups::new();
    let mut server = Server::start_with(&backups.flags("1", "2"));
    server.create(&payment_of(&json!(1))).await;
    let early = backups.next().await;
    for _ in 0..20 {
        server.create(&payment_of(&json!(2))).await;
    }
    backups.next().await;
    server.kill();
    let of_before: Vec<_> = backups.whole();

    // A mistake happens after the early backup.
    let (restored, lost) = (server.directory.path().join("restored"), server.directory.path().join("lost"));
    let output = restore(&early, &[], &restored);
    assert!(output.status.success(), "{}", text_of(&output));
    fs::rename(server.data(), &lost).unwrap();
    fs::rename(&restored, server.data()).unwrap();
    server.restart();
    let kept = server.get("/payments").await["total"].as_u64().unwrap();
    server.create(&payment_of(&json!(3))).await;
    for _ in 0..4 {
        backups.next().await;
    }
    server.kill();
    for backup in &of_before {
        assert!(backup.join("backup.json").exists(), "{} was removed", backup.display());
    }
    let new: Vec<_> = backups.whole().into_iter().filter(|backup| !of_before.contains(backup)).collect();
    assert!(new.len() >= 2, "{new:?}");
    assert_eq!(payments_in(new.last().unwrap()), kept + 1);

    // A later backup of the old store, with the journal written since, would give a store that never existed.
    let journal = server.data().join("journal");
    let mixed = server.directory.path().join("mixed");
    let latest = of_before.iter().max_by_key(|backup| end_of(backup)).unwrap();
    let output = restore(latest, &["--journal", journal.to_str().unwrap()], &mixed);
    assert!(!output.status.success() && text_of(&output).contains("do not belong together"), "{}", text_of(&output));
    assert!(!mixed.exists());
    // The restored store continues in that journal.
    let output = restore(&early, &["--journal", journal.to_str().unwrap()], &mixed);
    assert!(output.status.success(), "{}", text_of(&output));
}

#[tokio::test]
async fn two_stores_in_one_backup_directory_keep_their_own_backups() {
    let backups = Backups::new();
    let one = Server::start_with(&backups.flags("1", "2"));
    one.create(&payment_of(&json!(1))).await;
    let other = Server::start_with(&backups.flags("1", "2"));
    for _ in 0..8 {
        backups.next().await;
    }
    drop(other);
    drop(one);
    let of_one = backups.whole().iter().filter(|backup| payments_in(backup) == 1).count();
    let of_other = backups.whole().iter().filter(|backup| payments_in(backup) == 0).count();
    assert!(of_one >= 2 && of_other >= 2, "{of_one} and {of_other} are left");
}

#[tokio::test]
async fn restarts_within_seconds_keep_earlier_backups() {
    let backups = Backups::new();
    let mut server = Server::start_with(&backups.flags("3600", "2"));
    let first = backups.first().await;
    for _ in 0..4 {
        server.create(&payment_of(&json!(1))).await;
        server.crash_and_restart();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(first.join("backup.json").exists(), "it is a few seconds old");
    assert!(backups.whole().len() <= 2, "a server that starts again and again must not fill the disk with backups");
}

/// Renames a backup as if a clock a year ahead had made it.
fn made_a_year_ahead(backup: &Path) -> PathBuf {
    let name = backup.file_name().unwrap().to_str().unwrap();
    let (digits, rest) = name.strip_prefix("backup-").unwrap().split_at(15);
    let ahead = digits.parse::<u64>().unwrap() + 365 * 86_400_000;
    let renamed = backup.with_file_name(format!("backup-{ahead:015}{rest}"));
    fs::rename(backup, &renamed).unwrap();
    renamed
}

#[tokio::test]
async fn a_backup_made_after_the_clock_stepped_back_stays() {
    let backups = Backups::new();
    let mut server = Server::start_with(&backups.flags("1", "1"));
    server.create(&payment_of(&json!(1))).await;
    backups.next().await;
    server.kill();
    let ahead: BTreeSet<_> = backups.whole().iter().map(|backup| made_a_year_ahead(backup)).collect();
    server.restart();
    server.create(&payment_of(&json!(1))).await;
    eventually("the backups from before to be removed", async || {
        (!ahead.iter().any(|backup| backup.exists())).then_some(())
    })
    .await;
    server.kill();
    assert_eq!(backups.whole().iter().map(|backup| payments_in(backup)).max(), Some(2));
}

#[tokio::test]
async fn backups_by_operators_and_backups_without_a_line_stay() {
    let backups = Backups::new();
    // Create the payment first, so that each backup has it.
    let mut server = Server::start();
    server.create(&payment_of(&json!(1))).await;
    assert!(server.terminate().success());
    server.restart_with(&backups.flags("1", "1"));
    let (monday, made) = (backups.0.path().join("backup-monday"), backups.next().await);
    server.run(&["backup", monday.to_str().unwrap()]);
    let unknown = backups.0.path().join("backup-001700000000000");
    crate::server::copy(&made, &unknown);
    for _ in 0..4 {
        backups.next().await;
    }
    server.kill();
    assert_eq!((payments_in(&monday), payments_in(&unknown)), (1, 1));
    assert!(!made.exists());
    server.restart();
    eventually("the log", async || {
        let log = server.log();
        log.contains("backup-001700000000000").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_without_room_leaves_nothing_and_says_how_much_it_needs() {
    let directory = TempDir::new().unwrap();
    let _disk = SmallDisk::mount(directory.path(), "64k");
    let (server, target) = (Server::start(), directory.path().join("backup"));
    for _ in 0..100 {
        server.create(&payment_of(&json!(1))).await;
    }
    for _ in 0..2 {
        let output = server.try_run(&["backup", target.to_str().unwrap()]);
        let said = text_of(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(" KiB are free") && said.contains("needs about"), "{said}");
        assert!(!target.exists(), "a part of it is left");
    }
    // Files that existed before the command stay.
    fs::create_dir(&target).unwrap();
    assert!(!server.try_run(&["backup", target.to_str().unwrap()]).status.success());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_scheduled_backups_leave_nothing_and_killed_ones_are_removed_later() {
    let backups = Backups::new();
    let mut server = Server::start_with(&backups.flags("1", "1"));
    for _ in 0..100 {
        server.create(&payment_of(&json!(1))).await;
    }
    let made = backups.next().await;
    server.kill();
    // A killed backup leaves a directory without the last file.
    let name = made.file_name().unwrap().to_str().unwrap();
    let (_, line) = name.rsplit_once('-').unwrap();
    let cut_off = made.with_file_name(format!("backup-000000000000001-{line}"));
    crate::server::copy(&made, &cut_off);
    fs::remove_file(cut_off.join("backup.json")).unwrap();
    for backup in backups.whole() {
        fs::remove_dir_all(backup).unwrap();
    }
    let ballast = {
        let disk = SmallDisk::mount(backups.0.path(), "64k");
        server.restart();
        eventually("a failed backup", async || server.log().contains("backup failed").then_some(())).await;
        server.assert_logs(" KiB are free");
        assert_eq!(backups.all(), [] as [PathBuf; 0], "a part of it is left");
        server.kill();
        disk
    };
    drop(ballast);
    assert!(cut_off.exists(), "it lies under the small disk");
    server.restart();
    eventually("the part to be removed", async || (!cut_off.exists()).then_some(())).await;
}
