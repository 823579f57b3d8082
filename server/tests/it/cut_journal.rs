//! Journal files that are cut off, and restores from a journal that ends before the backup.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    lost_files::{create_long, entries_end, files, fill_all_but},
    server::{Server, payment_of, server_binary, text_of, try_launch},
};

/// How many payments the server acknowledges before its journal is cut off.
const PAYMENTS: usize = 28;

async fn create_payments(server: &Server) {
    for nth in 0..PAYMENTS {
        assert_eq!(create_long(&server.url, nth).await.unwrap().status(), 201);
    }
}

async fn assert_all_are_there(server: &Server) {
    for nth in 0..PAYMENTS {
        let again = create_long(&server.url, nth).await.unwrap();
        assert!(again.headers().contains_key("idempotent-replayed"), "payment {nth} is lost");
    }
}

/// Asserts that no command opens the store, and that each names the file and what can still be read.
fn assert_is_refused(server: &Server, journal: &Path, what: &str) {
    let mut said: Vec<_> = [&["check"][..], &["keys", "list"], &["export", "payments"]]
        .into_iter()
        .map(|command| (server.try_run(command).status.success(), text_of(&server.try_run(command))))
        .collect();
    said.push(match try_launch(Command::new(server_binary()), server.directory.path(), "127.0.0.1:0", &[]) {
        Ok((mut process, _)) => {
            process.kill().unwrap();
            process.wait().unwrap();
            (true, "the server started".to_owned())
        }
        Err(log) => (false, log),
    });
    for (is_done, said) in said {
        assert!(!is_done && said.contains("was cut off"), "{what}: {said}");
        assert!(said.contains(journal.to_str().unwrap()), "{what}: {said}");
    }
}

fn restore(arguments: &[&str], to: &Path) -> (bool, String) {
    let mut command = Command::new(server_binary());
    let output = command.arg("restore").args(arguments).arg("--data-dir").arg(to).output().unwrap();
    assert_eq!(output.status.success(), to.exists(), "{}", text_of(&output));
    (output.status.success(), text_of(&output))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_a_cut_off_journal_file_opens_only_once_the_file_is_whole() {
    let mut server = Server::start();
    create_payments(&server).await;
    server.kill();
    let journal = files(&server).remove(0);
    let whole = fs::read(&journal).unwrap();
    let end = usize::try_from(entries_end(&journal)).unwrap();
    for length in [0, 8, 16, end / 2, end - 1, end] {
        fs::write(&journal, &whole[..length]).unwrap();
        assert_is_refused(&server, &journal, &format!("{length} of {end} bytes"));
    }
    // Only zeros followed the last change.
    fs::write(&journal, &whole[..end + 4096]).unwrap();
    server.restart();
    server.assert_logs("no change is missing");
    assert_all_are_there(&server).await;
    server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_journal_file_is_cut_off_stops_at_once_and_loses_nothing() {
    let mut server = Server::start();
    create_payments(&server).await;
    let journal = files(&server).remove(0);
    let end = entries_end(&journal);
    fs::File::options().write(true).open(&journal).unwrap().set_len(end / 2).unwrap();
    assert!(create_long(&server.url, PAYMENTS).await.is_err(), "the server must not answer");
    assert_eq!(server.wait().code(), Some(74));
    server.assert_logs("or cut off");
    server.restart();
    assert_all_are_there(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_file_that_was_emptied_after_it_was_begun_is_not_opened() {
    let mut server = Server::start();
    fill_all_but(&server, PAYMENTS / 2).await;
    create_payments(&server).await;
    server.kill();
    assert_eq!(files(&server).len(), 2);
    let journal = files(&server).remove(1);
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, "").unwrap();
    assert_is_refused(&server, &journal, "emptied");
    fs::write(&journal, whole).unwrap();
    server.restart();
    assert_all_are_there(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_off_journal_is_restored_only_if_a_flag_accepts_the_loss() {
    let mut server = Server::start();
    create_payments(&server).await;
    server.kill();
    let journal = files(&server).remove(0);
    let end = entries_end(&journal);
    fs::File::options().write(true).open(&journal).unwrap().set_len(end - 1).unwrap();
    let (directory, restored) = (server.data().join("journal"), server.directory.path().join("restored"));
    let of_journal = ["--journal", directory.to_str().unwrap()];
    let (is_done, said) = restore(&of_journal, &restored);
    assert!(!is_done && said.contains("was cut off"), "{said}");
    let left = said.rsplit_once("--until-entry ").unwrap().1.trim();
    let (is_done, said) = restore(&[&of_journal[..], &["--until-entry", left]].concat(), &restored);
    let payments = format!("{} of them payments, up to change {left}; {left} changes from the journal", PAYMENTS - 1);
    assert!(is_done && said.contains(&payments), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_refuses_a_journal_that_ends_before_the_backup_and_names_both_ends() {
    let mut server = Server::start();
    let within = |server: &Server, name: &str| server.directory.path().join(name).to_str().unwrap().to_owned();
    let create = async |server: &Server| {
        for _ in 0..5 {
            server.create(&payment_of(&json!(1))).await;
        }
    };
    create(&server).await;
    server.kill();
    let older = within(&server, "older");
    fs::create_dir(&older).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([within(&server, "data/journal"), within(&server, "data/journal.json"), older.clone()])
        .status();
    assert!(copied.unwrap().success());
    server.restart();
    create(&server).await;
    let backup = within(&server, "backup");
    let made = server.run_for_line(&["backup", &backup]);
    let to = made.rsplit_once(' ').unwrap().1.to_owned();
    create(&server).await;
    server.kill();

    let target = server.directory.path().join("restored");
    let (is_done, said) = restore(&[&backup, "--journal", &format!("{older}/journal")], &target);
    let ends = format!("before the backup's end at {to}:");
    assert!(!is_done && said.contains("/older/journal ends at change ") && said.contains(&ends), "{said}");
    let (is_done, said) = restore(&[&backup, "--journal", &within(&server, "data/journal")], &target);
    assert!(is_done && said.contains("15 of them payments") && said.contains(" changes from the journal"), "{said}");
}
