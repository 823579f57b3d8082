//! The sandbox of a public server has its own store, limited in size and age.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use payments_client::Client;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::cluster::Cluster;

use crate::{
    document,
    engine::{Engine, run_sql},
    live::Live,
    lost_files::{create_long, entries_end, files},
    receiver::{Receiver, Reply},
    routes::{Route, routes},
    server::{SANDBOX_KEY, Server, eventually, metric, payment_of, server_binary, text_of},
};

const PUBLIC: [&str; 4] = ["--base-url", "https://pay.example", "--sandbox", "--allow-local-targets"];

/// The directories of the sandbox's stores.
fn stores(server: &Server) -> Vec<PathBuf> {
    stores_in(&server.data().join("sandbox"))
}

fn stores_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Makes a sandbox's store look a day older.
fn age(store: &Path) {
    let begun: i64 = store.file_name().unwrap().to_str().unwrap().parse().unwrap();
    fs::rename(store, store.with_file_name((begun - 24 * 60 * 60 * 1000).to_string())).unwrap();
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

async fn payments(server: &Server) -> Value {
    server.get("/payments").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_has_a_size_limit_and_writes_nothing_to_the_main_store() {
    let server = Server::start_with(&[&PUBLIC[..], &["--sandbox-mib", "64"]].concat());
    let main_store_end = entries_end(&files(&server)[0]);
    let mut made = 0;
    while !server.log().contains("the sandbox was emptied") {
        let creates = (made..made + 100).map(|nth| create_long(&server.url, nth));
        let answers: Vec<_> = stream::iter(creates).buffer_unordered(16).collect().await;
        assert!(answers.into_iter().all(|answer| answer.unwrap().status() == StatusCode::CREATED));
        made += 100;
        assert!(made < 10_000, "the sandbox is not reset after {made} payments of 23 KB");
    }
    eventually("the server to remove the full store", async || (stores(&server).len() == 1).then_some(())).await;
    // The server checks the size once a second, so the store can exceed its limit.
    assert!(bytes_in(&server.data().join("sandbox")) < 2 * 64 * 1024 * 1024);
    assert_eq!(entries_end(&files(&server)[0]), main_store_end, "the main store has grown");
    assert!(payments(&server).await["total"].as_u64().unwrap() < made as u64);

    // The new store also works with events.
    let receiver = Receiver::ok().await;
    let webhook = json!({"url": receiver.url(), "events": "*"});
    let subscribed = server.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert_eq!(subscribed.status(), StatusCode::CREATED);
    let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({})).send().await.unwrap();
    let id = demo.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let simulate = server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap();
    assert_eq!(simulate.status(), StatusCode::OK);
    eventually("both events", async || (receiver.received().len() == 2).then_some(())).await;
    assert_eq!(server.get("/webhooks/deliveries").await["total"], 2);
    assert_eq!(server.get("/account").await["volume"]["total_payments"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_survives_a_crash_and_expires_after_a_day() {
    let mut server = Server::start_with(&PUBLIC);
    let key = server.new_key("Rahim", "test");
    let merchants = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&key).json(&payment_of(&json!(2)));
    let merchants: Value = merchants.send().await.unwrap().json().await.unwrap();
    let own = create_long(&server.url, 1).await.unwrap().text().await.unwrap();
    let path = format!("/payments/{}", serde_json::from_str::<Value>(&own).unwrap()["id"].as_str().unwrap());

    server.crash_and_restart();
    assert_eq!(create_long(&server.url, 1).await.unwrap().text().await.unwrap(), own, "the key replays the response");
    assert_eq!(payments(&server).await["total"], 1);

    server.kill();
    age(&stores(&server)[0]);
    server.restart();
    let gone = server.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    assert_eq!(payments(&server).await["total"], 0);
    assert_eq!(stores(&server).len(), 1);
    let path = format!("/api/v1/payments/{}", merchants["id"].as_str().unwrap());
    let kept = server.keyless(Method::GET, &path).bearer_auth(&key).send().await.unwrap();
    assert_eq!(kept.json::<Value>().await.unwrap(), merchants);

    // A damaged sandbox store does not prevent the start.
    server.kill();
    let store = stores(&server).remove(0);
    fs::write(store.join("journal.json"), "torn").unwrap();
    server.restart();
    server.assert_logs("it starts empty");
    assert_eq!(create_long(&server.url, 2).await.unwrap().status(), StatusCode::CREATED);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_payments_from_the_main_store_still_work_after_the_sandbox_gets_its_own() {
    let mut server = Server::start_with(&["--session-ttl", "3"]);
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let paid = server.create(&payment_of(&json!(1))).await;
    let open = server.create(&payment_of(&json!(2))).await;
    server.kill();
    server.restart_with(&PUBLIC);
    assert_eq!(payments(&server).await["total"], 0, "the key sees only the new store");
    let raw_status = async |payment: &Value| {
        let path = format!("/api/v1/checkout/{}", payment["id"].as_str().unwrap());
        let checkout = server.keyless(Method::GET, &path).send().await.unwrap();
        checkout.json::<Value>().await.unwrap()["status"].as_str().unwrap().to_owned()
    };
    let path = format!("/api/v1/checkout/{}/simulate", paid["id"].as_str().unwrap());
    let simulated = server.keyless(Method::POST, &path).send().await.unwrap();
    assert_eq!(simulated.status(), StatusCode::OK);
    assert_eq!(raw_status(&paid).await, "paid");
    eventually("the open session to expire", async || (raw_status(&open).await == "expired").then_some(())).await;
    let events = || receiver.received().into_iter().map(|received| received.body).collect::<HashSet<_>>();
    eventually("all three events", async || (events().len() == 3).then_some(())).await;
    // Wait until the last delivery is logged.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sent = receiver.received().len();
    server.crash_and_restart();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.received().len(), sent, "the restart resent finished deliveries");
    assert!(server.terminate().success());
    // A server without a public sandbox removes the sandbox store.
    server.restart_with(&[]);
    assert!(!server.data().join("sandbox").exists());
}

/// Asks for `method path` with a key, and returns the status.
async fn status(server: &Server, key: &str, method: Method, path: &str) -> StatusCode {
    let request = server.keyless(method, &format!("/api/v1{path}")).bearer_auth(key);
    request.json(&json!({})).send().await.unwrap().status()
}

/// The status of a payment's checkout page, and the API's answer about it.
async fn checkout(server: &Server, id: &str) -> (StatusCode, Value) {
    let page = server.keyless(Method::GET, &format!("/checkout/{id}")).send().await.unwrap();
    let shown = server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap();
    (page.status(), shown.json::<Value>().await.unwrap()["status"].take())
}

async fn a_public_sandbox_and_the_lasting_store_are_apart(engine: Engine) {
    let directory = TempDir::new().unwrap();
    let beside = ["--sandbox-dir", directory.path().to_str().unwrap(), "--metrics-listen", "127.0.0.1:0"];
    let mut live = Live::start_on(engine, "", &[&PUBLIC[..], &beside].concat()).await;
    let server = &live.server;
    let client = Client::builder(&live.key).base_url(&server.url).build().unwrap();
    let (of_live, of_sandbox) = (Receiver::ok().await, Receiver::ok().await);
    of_live.subscribe(&client).await;
    of_sandbox.subscribe(&server.client()).await;
    let made = server.create(&payment_of(&json!(5))).await["id"].as_str().unwrap().to_owned();
    let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({})).send().await.unwrap();
    let demo = demo.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let sold = live.create(5.0, "BDT").await;

    // Each key finds only its own records.
    for (key, own) in [(SANDBOX_KEY, &made), (&*live.key, &sold)] {
        assert_eq!(status(server, key, Method::GET, &format!("/payments/{own}")).await, StatusCode::OK);
    }
    let ids = async |client: &Client, payment: &str| {
        let hook = client.webhooks().list().await.unwrap().remove(0).id;
        let event = eventually("an event", async || client.events().list().await.unwrap().items.pop()).await;
        let delivery =
            eventually("a delivery", async || client.webhooks().deliveries().await.unwrap().items.pop()).await;
        [payment.to_owned(), hook.to_string(), event.id().to_string(), delivery.id.to_string()]
    };
    let document = document::open();
    for (key, others) in [(SANDBOX_KEY, ids(&client, &sold).await), (&*live.key, ids(&server.client(), &made).await)] {
        for route in routes(&document).filter(Route::is_keyed) {
            let Some(kind) = route.kind_of_id() else { continue };
            let other = others.iter().find(|id| id.trim_start_matches("test_").starts_with(kind));
            // Neither has a payout.
            let other = other.map_or("po_0", String::as_str);
            let request = route.request(server, other).bearer_auth(key).json(&route.valid_body());
            assert_eq!(request.send().await.unwrap().status(), StatusCode::NOT_FOUND, "{} {other}", route.id);
        }
    }
    assert_eq!(payments(server).await["total"], 2);
    assert_eq!(client.payments().list().await.unwrap().total, Some(1));

    // The checkout pages and the webhooks of both stores work.
    for id in [&made, &demo, &sold] {
        assert_eq!(checkout(server, id).await, (StatusCode::OK, json!("created")), "{id}");
    }
    let simulate = async |id: &str| {
        server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap().status()
    };
    assert_eq!((simulate(&made).await, simulate(&demo).await), (StatusCode::OK, StatusCode::OK));
    assert!(simulate(&sold).await.is_client_error());
    let statuses = [checkout(server, &made).await.1, checkout(server, &demo).await.1, checkout(server, &sold).await.1];
    assert_eq!(statuses, ["paid", "paid", "created"]);
    eventually("all events of the sandbox", async || (of_sandbox.received().len() == 4).then_some(())).await;
    eventually("the live event", async || (of_live.received().len() == 1).then_some(())).await;

    // The metrics count both stores.
    let metrics = metrics(server).await;
    let counted = |labels: &str| metric::<u64>(&metrics, &format!("payments_payments{{{labels}}}"));
    assert_eq!(counted(r#"environment="test",status="completed""#), 2);
    assert_eq!(counted(r#"environment="live",status="pending""#), 1);
    assert!(metric::<u64>(&metrics, "payments_sandbox_bytes") > 0);

    if engine == Engine::Directory {
        let delivery = server.get("/webhooks/deliveries").await["items"][0]["id"].as_str().unwrap().to_owned();
        server.run_for_line(&["deliveries", "resend", &delivery]);
        eventually("the webhook again", async || (of_sandbox.received().len() == 5).then_some(())).await;
    }
    if let Some(url) = server.database() {
        assert_eq!(run_sql(url, "SELECT count(*) FROM payments.payment").trim(), "1", "the live one");
    }

    // The sandbox is replaced by an empty one, and all else stays.
    live.server.kill();
    age(&stores_in(directory.path())[0]);
    live.server.restart();
    let server = &live.server;
    assert_eq!(stores_in(directory.path()).len(), 1);
    assert_eq!(
        (payments(server).await["total"].clone(), checkout(server, &made).await.0),
        (json!(0), StatusCode::NOT_FOUND)
    );
    assert_eq!(client.payments().list().await.unwrap().total, Some(1));
    assert_eq!(checkout(server, &sold).await, (StatusCode::OK, json!("created")));
    server.create(&payment_of(&json!(5))).await;

    // An operator ends it by revoking its key.
    let keys: Value = serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap();
    let mut keys = keys["keys"].as_array().unwrap().iter();
    let id = keys.find(|key| key["last4"] == "demo").unwrap()["id"].as_str().unwrap();
    server.run(&["keys", "revoke", id]);
    let revoked = async || {
        let refused = status(server, SANDBOX_KEY, Method::GET, "/account").await == StatusCode::UNAUTHORIZED;
        refused.then_some(())
    };
    eventually("the revoked key to be refused", revoked).await;
    assert_eq!(status(server, &live.key, Method::GET, "/account").await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_sandbox_and_the_lasting_store_are_separate_on_a_directory() {
    a_public_sandbox_and_the_lasting_store_are_apart(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_sandbox_and_the_lasting_store_are_separate_on_postgresql() {
    a_public_sandbox_and_the_lasting_store_are_apart(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_endpoints_in_the_sandbox_take_no_permit_of_a_live_delivery() {
    let live = Live::start_with("", &[&PUBLIC[..], &["--metrics-listen", "127.0.0.1:0"]].concat()).await;
    let server = &live.server;
    let (silent, shop) = (Receiver::start(Reply::Never).await, Receiver::ok().await);
    for _ in 0..100 {
        let webhook = json!({"url": silent.url(), "events": "*"});
        let subscribed = server.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
        assert_eq!(subscribed.status(), StatusCode::CREATED);
    }
    server.create(&payment_of(&json!(5))).await;
    // One developer gets seven eighths of the sandbox's 64 permits.
    eventually("the slots to be taken", async || (held(server).await >= 56).then_some(())).await;
    shop.subscribe(&Client::builder(&live.key).base_url(&server.url).build().unwrap()).await;
    live.create(5.0, "BDT").await;
    eventually("the live event", async || (!shop.received().is_empty()).then_some(())).await;
    assert!(held(server).await <= 56, "the other endpoints wait");
}

/// How many deliveries are in flight.
async fn held(server: &Server) -> u64 {
    metric(&metrics(server).await, "payments_delivery_places_held")
}

/// Reads `/metrics` of a public server, which serves them at a separate address.
async fn metrics(server: &Server) -> String {
    let log = server.log();
    let own = log.split("/metrics is on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    reqwest::get(format!("{own}/metrics")).await.unwrap().text().await.unwrap()
}

#[test]
fn a_public_sandbox_beside_a_database_needs_a_directory() {
    let database = Cluster::shared().new_database();
    for (command, directory, says) in [
        ("serve", &[][..], "the sandbox of a public server keeps its records out of the database; name a directory"),
        ("doctor", &[], "FAILED   configuration"),
        ("serve", &["--sandbox-dir", "/proc/nothing"], "cannot open the sandbox in /proc/nothing (--sandbox-dir): "),
    ] {
        let arguments = [command, "--listen", "127.0.0.1:0", "--database-url", &database, "--sandbox"];
        let output = Command::new(server_binary()).args(arguments).args(&PUBLIC[..2]).args(directory).output().unwrap();
        let said = text_of(&output);
        let named = said.lines().any(|line| line.contains(says) && line.contains("--sandbox-dir"));
        assert!(output.status.code() == Some(1) && named, "{command}: {said}");
    }
}
