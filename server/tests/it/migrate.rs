//! `payments-server migrate` moves a store between a directory and a database without loss.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::{cluster::Cluster, relay::Relay};

use crate::{
    engine::{DAMAGE, REPAIR, run_sql},
    live::Live,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of, server_binary, text_of},
};

fn command(from: &str, to: &str) -> Command {
    let mut command = Command::new(server_binary());
    command.args(["migrate", "--json", "--from", from, "--to", to]);
    command
}

/// Moves a store. Returns the number of records of each kind, and their digest.
pub(crate) fn moved(from: &str, to: &str) -> Value {
    let output = command(from, to).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The message of a command that must fail.
fn refused(mut command: Command) -> String {
    let output: Output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Creates a payment with a key. Returns whether the answer is a replay, and the answer's bytes.
async fn create(live: &Live, key: &str) -> (bool, String) {
    let body = json!({"amount": 12.5, "currency": "BDT", "success_url": "https://shop.example/paid",
        "cancel_url": "https://shop.example/cart"});
    let request = live.request(Method::POST, "/payments").header("idempotency-key", key).json(&body);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    (answer.headers().contains_key("idempotent-replayed"), answer.text().await.unwrap())
}

/// The answers of the server and its commands about everything except deliveries.
async fn answers(live: &Live) -> Vec<String> {
    let mut answers = Vec::new();
    for path in [
        "/payments?limit=100",
        "/payments?status=completed",
        "/payments?status=refunded",
        "/account",
        "/account/apps",
        "/account/keys",
        "/webhooks",
    ] {
        answers.push(live.request(Method::GET, path).send().await.unwrap().text().await.unwrap());
        answers.push(live.server.request(Method::GET, path).send().await.unwrap().text().await.unwrap());
    }
    for command in [&["keys", "list"][..], &["refunds", "list"], &["reviews", "list"], &["export", "payments"]] {
        answers.push(live.server.run(command));
    }
    answers.push(live.server.run(&["export", "postings"]));
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_moved_to_a_database_and_back_answers_as_before_and_stays_usable() {
    let mut live = Live::start("gateway-timeout = 1").await;
    // Otherwise a restarted server books them.
    live.stripe.program().delay_fees(true);
    let hanging = Receiver::start(Reply::Never).await;
    let hook = json!({"url": hanging.url(), "events": "*"});
    let hook = live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
    let secret = hook.json::<Value>().await.unwrap()["secret"].as_str().unwrap().to_owned();
    let (_, first) = create(&live, "order-1").await;
    let opened = serde_json::from_str::<Value>(&first).unwrap()["id"].as_str().unwrap().to_owned();
    let (refunded, paid) = (live.paid(30.0, "BDT").await, live.paid(99.99, "USD").await);
    let refund = live.request(Method::POST, &format!("/payments/{refunded}/refund")).send().await.unwrap();
    assert_eq!(refund.status(), StatusCode::OK);
    let disputed = live.create(100.0, "BDT").await;
    let (_, attempt) = live.pay(&disputed).await;
    live.bkash.program().falsify_amount(&attempt, "1.00");
    live.come_back(&live.bkash.program().approve(&attempt, gateway_fakes::bkash::WALLET).unwrap()).await;
    let test = live.server.create(&payment_of(&json!(5))).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", test["id"].as_str().unwrap());
    live.server.keyless(Method::POST, &simulate).send().await.unwrap();
    let before = answers(&live).await;
    assert!(before.iter().any(|it| it.contains(&refunded)) && before.iter().any(|it| it.contains(&paid)));

    // The deliveries are in flight or in the outbox.
    eventually("a request to the endpoint", async || (!hanging.received().is_empty()).then_some(())).await;
    live.server.kill();
    let (database, data) = (Cluster::shared().new_database(), live.server.data());
    let there = moved(text(&data), &database);
    for (kind, at_least) in
        [("payment", 5), ("api_key", 2), ("gateway_token", 1), ("endpoint", 1), ("response", 1), ("delivery", 1)]
    {
        assert!(there["records"][kind].as_u64().is_some_and(|count| count >= at_least), "{kind}: {there}");
    }
    assert_eq!(there["sha256"].as_str().unwrap().len(), 64);
    let address = hanging.address();
    drop(hanging);
    eventually("the endpoint to close", async || std::net::TcpListener::bind(&address).ok().map(drop)).await;
    let receiver = Receiver::start_at(&address, Reply::Status(StatusCode::OK, String::new())).await;
    live.server.restart_on(Some(&database));
    assert_eq!(answers(&live).await, before);
    assert_eq!(create(&live, "order-1").await, (true, first.clone()));
    // Now every event of the payments reaches the endpoint, signed with its secret.
    let about = |it: &crate::receiver::Received, id: &str| String::from_utf8_lossy(&it.body).contains(id);
    for id in [&opened, &refunded, &paid, &disputed] {
        let event = eventually("an event", async || receiver.received().into_iter().find(|it| about(it, id))).await;
        assert!(event.verified_with_any_age(&secret));
    }
    eventually("the outbox to be empty", async || {
        let list = live.request(Method::GET, "/webhooks/deliveries?limit=100").send().await.unwrap();
        let list: Value = list.json().await.unwrap();
        list["items"].as_array().unwrap().iter().all(|delivery| delivery["status"] != "pending").then_some(())
    })
    .await;
    let (deliveries, made) = (live.server.run(&["export", "deliveries"]), live.server.run(&["refunds", "list"]));
    assert!(made.contains(&refunded), "{made}");

    assert!(live.server.terminate().success());
    fs::rename(&data, live.server.directory.path().join("moved-away")).unwrap();
    let back = moved(&database, text(&data));
    assert_eq!(back["records"]["payment"], there["records"]["payment"]);
    live.server.restart_on(None);
    assert_eq!(answers(&live).await, before);
    assert_eq!(live.server.run(&["export", "deliveries"]), deliveries);
    assert_eq!(create(&live, "order-1").await, (true, first));
    assert!(!create(&live, "order-2").await.0);
    live.server.run(&["refunds", "settle", &refunded, "--reference", "TRX9"]);
    live.server.run(&["reviews", "resolve", &disputed, "--note", "seen", "--as", "paid"]);
    assert_eq!(live.payment(&disputed).await["rawStatus"], "paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_a_filled_target_or_a_damaged_source_is_refused() {
    let mut server = Server::start();
    server.create(&payment_of(&json!(5))).await;
    let on_database = Server::start_with(&["--database-url", &Cluster::shared().new_database()]);
    on_database.create(&payment_of(&json!(6))).await;
    let (data, database) = (server.data(), on_database.database().unwrap().to_owned());
    let directory = tempfile::tempdir().unwrap();
    let (empty, empty_database) = (directory.path().join("empty"), Cluster::shared().new_database());

    let says = |from: &str, to: &str| refused(command(from, to));
    let in_use = says(text(&data), &empty_database);
    assert!(in_use.contains("open; stop it"), "{in_use}");
    for (from, to) in [(&*database, text(&empty)), (text(&empty), &database)] {
        let used = says(from, to);
        let is_missing = used.contains("there is no store in");
        assert!(is_missing == (from == text(&empty)) && (is_missing || used.contains("connections of")), "{used}");
    }
    assert!(!empty.exists());
    assert!(server.terminate().success());
    let used = says(text(&data), &database);
    assert!(used.contains("connections of payments-server") && used.contains("stop its servers"), "{used}");
    drop(on_database);
    for (from, to) in [(text(&data), &*database), (&database, text(&data))] {
        let filled = says(from, to);
        assert!(filled.contains("the target holds records"), "{filled}");
    }
    assert!(says(text(&data), text(&data)).contains("open; stop it"));

    let with_password = says("postgres://me:hush@one/shop", text(&empty));
    assert!(with_password.contains("--from-password-file") && !with_password.contains("hush"), "{with_password}");
    let to_with_password = says(text(&data), "postgres://me:hush@one/shop");
    assert!(to_with_password.contains("PAYMENTS_TO") && !to_with_password.contains("hush"), "{to_with_password}");
    let mut of_a_file = command(text(&data), &empty_database);
    of_a_file.args(["--to-password-file", "/nowhere"]);
    assert!(refused(of_a_file).contains("/nowhere"));

    run_sql(&database, DAMAGE);
    let damaged = says(&database, text(&empty));
    assert!(damaged.contains("the source is damaged: ") && damaged.contains("check"), "{damaged}");
    run_sql(&database, REPAIR);
    // The same works through the environment. The target remembers that the migration was begun.
    let mut by_environment = Command::new(server_binary());
    by_environment.arg("migrate").env("PAYMENTS_FROM", &database).env("PAYMENTS_TO", text(&empty));
    let output = by_environment.output().unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    assert!(
        ["api key: 1\n", "payment: 1\n", "workspace: 1\n"].iter().all(|it| said.contains(it))
            && said.contains("SHA-256 "),
        "{said}"
    );
}

/// A store of many payments, paid and open, with stored responses and deliveries.
async fn filled() -> Server {
    let mut server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let create = async |number: usize| {
        let request = server.request(Method::POST, "/payments").header("idempotency-key", format!("order-{number}"));
        let payment: Value = request.json(&payment_of(&json!(100.5))).send().await.unwrap().json().await.unwrap();
        if number.is_multiple_of(4) {
            let simulate = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
            server.keyless(Method::POST, &simulate).send().await.unwrap();
        }
    };
    stream::iter(0..PAYMENTS).for_each_concurrent(16, create).await;
    assert!(server.terminate().success());
    server
}

const PAYMENTS: usize = 100;

/// How often a migration is killed before it ends.
const KILLS: usize = 5;

/// A relay to the tests' databases. With it, a test kills a migration at a request that it names, and not after a time.
async fn relay() -> Relay {
    Relay::start(Cluster::shared().socket(), 1).await
}

/// The URL of a database of [`Cluster::shared`] through a relay.
fn through(relay: &Relay, database: &str) -> String {
    relay.url(database.split(['/', '?']).nth(3).unwrap())
}

/// Runs a migration and kills it after this many requests to its database, unless it ends earlier. Returns what it wrote.
fn killed_after(relay: &Relay, requests: usize, from: &str, to: &str) -> String {
    relay.stop_after(requests);
    let mut process = command(from, to).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !relay.has_stopped() && process.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    let _ = process.kill();
    let output = process.wait_with_output().unwrap();
    relay.stop_after(0);
    text_of(&output)
}

/// Moves a store. Returns what [`moved`] returns, and how many requests to the database it took.
fn counted(relay: &Relay, from: &str, to: &str) -> (Value, usize) {
    relay.stop_after(0);
    (moved(from, to), relay.requests())
}

/// Kills migrations later and later. Returns how many of them continued an earlier one.
fn killed_and_resumed(relay: &Relay, requests: usize, from: &str, to: &str, expected: &Value) -> usize {
    let kill = |nth| killed_after(relay, requests * nth / KILLS + fastrand::usize(..=requests / KILLS), from, to);
    let resumed = (0..KILLS).map(kill).filter(|said| said.contains("the migration goes on")).count();
    let output = command(from, to).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), *expected);
    resumed + usize::from(text_of(&output).contains("the migration goes on"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_killed_at_any_moment_continues_and_ends_with_the_same_records() {
    let (server, relay) = (filled().await, relay().await);
    let data = server.data();
    let new_database = || through(&relay, &Cluster::shared().new_database());
    let (whole, database) = (new_database(), new_database());
    let (expected, requests) = counted(&relay, text(&data), &whole);
    assert_eq!(expected["records"]["payment"], PAYMENTS);
    // One more response is the endpoint's.
    assert_eq!(expected["records"]["response"], PAYMENTS + 1);
    assert!(killed_and_resumed(&relay, requests, text(&data), &database, &expected) > 0);

    let directory = tempfile::tempdir().unwrap();
    let (moved_back, requests) = counted(&relay, &whole, text(&directory.path().join("whole")));
    assert_eq!(moved_back, expected);
    let to = directory.path().join("data");
    assert!(killed_and_resumed(&relay, requests, &database, text(&to), &expected) > 0);
    // A finished migration stays finished.
    assert_eq!(moved(&database, text(&to)), expected);
    let restored = Server::try_start_on(directory).map_err(|(_, log)| log).unwrap();
    assert_eq!(restored.get("/payments").await["total"], PAYMENTS);
}

/// Kills a migration after half of its requests.
fn cut_off(relay: &Relay, requests: usize, from: &str, to: &str) {
    killed_after(relay, requests / 2, from, to);
    let check = if to.starts_with('/') { "--data-dir" } else { "--database-url" };
    let said = text_of(&Command::new(server_binary()).args(["check", check, to]).output().unwrap());
    // The few records that come before the payments are always the same.
    assert!(said.contains("holds only a part") && !said.contains(" 0 records"), "{said}");
}

/// Asserts that every command refuses a part of a store.
fn refused_by_all(store: [&str; 2], from: &str) {
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for arguments in [&["check"][..], &["export", "payments"], &["keys", "list"], &serve] {
        let mut command = Command::new(server_binary());
        command.args(arguments).args(store);
        let said = refused(command);
        let is_told = said.contains("holds only a part of ") && said.contains("run payments-server migrate again");
        assert!(is_told && said.contains(from), "{arguments:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_store_does_not_open_and_a_change_of_the_source_is_detected() {
    let (mut server, relay) = (filled().await, relay().await);
    let (data, directory) = (server.data(), tempfile::tempdir().unwrap());
    let new_database = || through(&relay, &Cluster::shared().new_database());
    let (whole, database) = (new_database(), new_database());
    let (expected, requests) = counted(&relay, text(&data), &whole);
    cut_off(&relay, requests, text(&data), &database);
    refused_by_all(["--database-url", &database], text(&data));
    let from_a_part = refused(command(&database, text(&directory.path().join("data"))));
    assert!(from_a_part.contains("holds only a part"), "{from_a_part}");

    let [whole_again, to] = ["whole", "part"].map(|name| directory.path().join(name));
    let (moved_back, requests) = counted(&relay, &whole, text(&whole_again));
    assert_eq!(moved_back, expected);
    cut_off(&relay, requests, &whole, text(&to));
    refused_by_all(["--data-dir", text(&to)], "the database test_");
    assert_eq!(moved(&whole, text(&to)), expected);

    // A moved payment changes, and a new payment arrives.
    server.restart();
    let page = PAYMENTS - PAYMENTS / 4;
    let oldest = server.get(&format!("/payments?status=pending&limit=1&page={page}")).await;
    let oldest = oldest["items"][0]["id"].as_str().unwrap();
    let simulate = server.keyless(Method::POST, &format!("/api/v1/checkout/{oldest}/simulate"));
    assert_eq!(simulate.json(&json!({"action": "cancel"})).send().await.unwrap().status(), StatusCode::OK);
    server.create(&payment_of(&json!(7))).await;
    assert!(server.terminate().success());
    let differs = refused(command(text(&data), &database));
    let named = format!("the first is the payment {oldest}, which differs");
    assert!(differs.contains(&named) && differs.contains("empty the target"), "{differs}");
    // A migration from another store never continues it.
    let other = Server::start();
    let (mut other, other_data) = (other, directory.path().join("other"));
    assert!(other.terminate().success());
    fs::rename(other.data(), &other_data).unwrap();
    let mixed = refused(command(text(&other_data), &database));
    assert!(mixed.contains("holds a part of") && mixed.contains(text(&data)), "{mixed}");
}

/// Makes another live payment, on a server whose store was moved before.
async fn goes_on(server: &mut Server) -> String {
    server.restart();
    let payment = server.create(&payment_of(&json!(8))).await;
    assert!(server.terminate().success());
    payment["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_migration_that_is_run_again_moves_nothing_and_reports_later_changes() {
    let mut server = Server::start();
    server.create(&payment_of(&json!(7))).await;
    assert!(server.terminate().success());
    let (data, database) = (server.data(), Cluster::shared().new_database());
    let there = moved(text(&data), &database);
    assert_eq!(moved(text(&data), &database), there, "nothing has changed");

    let id = goes_on(&mut server).await;
    let count = |said: &str| {
        let number = said.split("differ in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        number.parse::<u64>().unwrap()
    };
    let says = |from: &str, to: &str| refused(command(from, to));
    for _ in 0..2 {
        let said = says(text(&data), &database);
        let named = format!("the first is the payment {id}, which is only in the source");
        assert!(said.contains(&named) && said.contains("was changed after the migration"), "{said}");
        assert!(count(&said) >= 2, "the payment and its event: {said}");
    }

    // The other direction: the database was moved, and is still in use.
    let (directory, on_database) = (tempfile::tempdir().unwrap(), Cluster::shared().new_database());
    let mut server = Server::start_with(&["--database-url", &on_database]);
    server.create(&payment_of(&json!(9))).await;
    assert!(server.terminate().success());
    let back = directory.path().join("back");
    moved(&on_database, text(&back));
    let id = goes_on(&mut server).await;
    let said = says(&on_database, text(&back));
    assert!(said.contains(&format!("payment {id}, which is only in the source")), "{said}");
}
