//! `payments-server doctor` finds each fault and says how to repair it, but changes nothing.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use gateway_fakes::{
    Running,
    bkash::{self, Bkash},
    stripe::{self, Stripe},
};
use test_support::cluster::Cluster;

use crate::{
    engine::Engine,
    server::{Server, server_binary, text_of, write_settings},
};

/// Runs the doctor, with a limit of open files, in a directory.
fn doctor_limited(directory: &Path, descriptors: u32, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let script = format!("ulimit -n {descriptors} && exec \"$0\" doctor \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", &script, server_binary()])
        .args(arguments)
        .current_dir(directory)
        .env("PAYMENTS_LISTEN", "127.0.0.1:0");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn doctor(directory: &Path, arguments: &[&str]) -> Output {
    doctor_limited(directory, 8192, &[], arguments)
}

/// The only line of the output about this subject.
fn line<'o>(output: &'o str, about: &str) -> &'o str {
    let lines: Vec<_> = output.lines().filter(|line| line.split_whitespace().nth(1) == Some(about)).collect();
    assert_eq!(lines.len(), 1, "{about}: {output}");
    lines[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_setup_passes_every_check() {
    let stripe = Running::start(Stripe::new(), "127.0.0.1:0").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("payments.toml");
    let (url, key, secret) = (stripe.url(), stripe::SECRET_KEY, stripe::WEBHOOK_SECRET);
    let text = format!("[stripe]\nbase_url = '{url}'\nsecret_key = '{key}'\nwebhook_secret = '{secret}'\n");
    write_settings(&config, &text);
    let server = Server::start();
    let data = server.data();
    let arguments = ["--config", "payments.toml", "--data-dir", data.to_str().unwrap()];
    let output = tokio::task::block_in_place(|| doctor(directory.path(), &arguments));
    let said = text_of(&output);
    assert!(output.status.success(), "{said}");
    for (about, says) in [
        ("configuration", "valid; http://127.0.0.1:0; Stripe for USD: at http://127.0.0.1:"),
        ("store", "; a server runs on it"),
        ("address", "127.0.0.1:0 is free"),
        ("permissions", "only this user can read"),
        ("disk", " MiB are free on the disk of "),
        ("descriptors", "8192 open files: 4096 connections, 1024 webhook requests at once"),
        ("clock", "it is 2"),
        ("gateway", "Stripe answers at http://127.0.0.1:"),
    ] {
        let line = line(&said, about);
        assert!(line.contains(says) && (line.starts_with("ok ") || about == "disk"), "{line}");
    }
    assert!(!said.contains(key) && !said.contains(secret), "{said}");
}

#[test]
fn each_fault_is_named_with_its_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = directory.path().join("payments.toml");
    let text = format!(
        "listen = '{taken}'\nbase-url = 'http://pay.example'\nsandbox = true\n[stripe]\nbase_url = 'http://{unreachable}'\n\
         secret_key = 'sk_live_hush'\nwebhook_secret = 'whsec_hush'\n"
    );
    write_settings(&config, &text);
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(data.join("secret"), "hush").unwrap();
    fs::set_permissions(data.join("secret"), fs::Permissions::from_mode(0o644)).unwrap();
    let script = "ulimit -n 100 && exec \"$0\" doctor \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, server_binary(), "--config", "payments.toml", "--data-dir", "data"]);
    let output = command.current_dir(&directory).env("PAYMENTS_LISEN", "x").output().unwrap();
    let said = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for (verdict, says) in [
        ("warning", "customers and API keys reach http://pay.example unencrypted; put a TLS proxy in front"),
        ("warning", "--sandbox lets everyone who reaches the server create test payments"),
        ("warning", "live payments move no real money: Stripe for USD: at http://127.0.0.1:"),
        (
            "warning",
            "the variable PAYMENTS_LISEN is set, and payments-server knows no such variable; did you mean PAYMENTS_LISTEN?",
        ),
        ("warning", "it has other files"),
        ("warning", "other users can read 1 files in "),
        ("warning", "for 4096 connections raise the hard limit"),
        ("FAILED", "Address already in use (os error 98); choose another with --listen"),
        ("FAILED", "Stripe cannot be reached at http://127.0.0.1:"),
    ] {
        let line = said.lines().find(|line| line.contains(says));
        assert!(line.is_some_and(|line| line.starts_with(verdict)), "{says}: {said}");
    }
    assert!(said.contains("2 of ") && said.contains(" checks failed") && !said.contains("hush"), "{said}");
    let few = doctor_limited(directory.path(), 60, &[], &[]);
    let says = "this process may open only 60 files and sockets, and the server needs 64; raise `ulimit -n`";
    assert!(!few.status.success() && text_of(&few).contains(says), "{}", text_of(&few));
}

#[test]
fn the_doctor_creates_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let said = text_of(&doctor(directory.path(), &[]));
    assert!(line(&said, "store").contains("it does not exist, and no server serves from it"), "{said}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);

    let database = Cluster::shared().new_database();
    for makes in [false, true] {
        let said = text_of(&doctor(directory.path(), &["--database-url", &database]));
        assert_eq!(line(&said, "store").starts_with("warning"), !makes, "{said}");
        let create = ["workspaces", "create", "--name", "Shop", "--database-url", &database];
        assert!(Command::new(server_binary()).args(create).output().unwrap().status.success());
    }
    let away = text_of(&doctor(directory.path(), &["--database-url", "postgres://nobody@127.0.0.1:1/none"]));
    assert!(line(&away, "store").contains("the database cannot be reached"), "{away}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_has_the_server_ask_bkash_for_its_token() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("payments.toml");
    for password in [bkash::PASSWORD, "hush"] {
        let fake = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
        write_settings(&config, &fake.settings().replace(bkash::PASSWORD, password));
        for engine in [Engine::Directory, Engine::Postgres] {
            let mut server = Server::start_on(engine, &["--config", config.to_str().unwrap()]);
            let data = server.data();
            let place = match server.database() {
                Some(url) => ["--database-url", url].map(str::to_owned),
                None => ["--data-dir", data.to_str().unwrap()].map(str::to_owned),
            };
            let examine = || {
                let arguments = ["--config", "payments.toml", &place[0], &place[1]];
                tokio::task::block_in_place(|| text_of(&doctor(directory.path(), &arguments)))
            };
            for _ in 0..2 {
                let said = examine();
                let line = line(&said, "token");
                match password {
                    "hush" => assert!(line.starts_with("FAILED") && line.contains("check the credentials"), "{line}"),
                    _ => assert!(
                        line.starts_with("ok ") && line.contains("bKash granted a token, valid until"),
                        "{line}"
                    ),
                }
                assert!(!said.contains("hush") && !said.contains(bkash::APP_SECRET), "{said}");
            }
            if engine == Engine::Directory {
                server.kill();
                let said = examine();
                let line = line(&said, "token");
                assert!(line.starts_with("warning") && line.contains("was not asked for a token"), "{line}");
                assert!(line.contains("no server runs on the store"), "{line}");
            }
        }
        // Each of the two stores has one token, however often the doctor looks. The fake would refuse a third one within the
        // hour.
        assert_eq!(fake.faults().calls_of("token"), 2);
    }
}
