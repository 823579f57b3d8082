//! A test key empties its own sandbox, and advances its time.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use payments_client::{
    Client, CreatePayment, CreateWebhook, Delivery, DeliveryStatus, Money, PaymentId, Retries, SimulateOutcome, Status,
    Subscription,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually, server_binary, text_of},
};

fn client(server: &Server, key: &str) -> Client {
    Client::builder(key).base_url(format!("http://{}", server.address())).build().unwrap()
}

async fn create(client: &Client) -> PaymentId {
    let params = CreatePayment::of(Money::taka(750))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart");
    client.payments().create(params).await.unwrap().id
}

async fn total(client: &Client) -> u64 {
    client.payments().list().await.unwrap().total.unwrap()
}

/// Two test keys and a live key of one workspace, and a test key of another.
fn keys(server: &Server) -> [Client; 4] {
    let [one, other] = ["Shop", "Other"].map(|name| server.run_for_line(&["workspaces", "create", "--name", name]));
    let key = |workspace: &str, environment: &str| {
        let line = server.run_for_line(&["keys", "create", "--workspace", workspace, "--environment", environment]);
        client(server, &line)
    };
    [key(&one, "test"), key(&one, "test"), key(&one, "live"), key(&other, "test")]
}

async fn a_reset_empties_the_sandbox_of_one_workspace(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let [shop, till, live, other] = keys(&server);
    let receiver = Receiver::ok().await;
    receiver.subscribe(&shop).await;
    let theirs = create(&other).await;
    let old = create(&shop).await;
    shop.checkout().simulate(&old, SimulateOutcome::Completed).await.unwrap();
    let account = shop.account().retrieve().await.unwrap();
    let app = server.run_for_line(&["apps", "create", "--workspace", account.workspace.id.as_str(), "--name", "Till"]);

    for round in 0..2 {
        shop.sandbox().reset().await.unwrap();
        for key in [&shop, &till] {
            assert_eq!(total(key).await, 0);
            assert!(key.payments().retrieve(&old).await.unwrap_err().is_not_found());
            assert!(key.webhooks().list().await.unwrap().is_empty());
            assert!(key.events().list().await.unwrap().items.is_empty());
            let now = key.account().retrieve().await.unwrap();
            assert_eq!((now.workspace.id.clone(), now.volume.total_payments), (account.workspace.id.clone(), 0));
            assert_eq!(key.account().apps().await.unwrap().len(), 1, "{app}");
        }
        assert_eq!(total(&other).await, 1, "of another workspace");
        assert_eq!(total(&live).await, 0);
        let new = create(&till).await;
        assert_eq!(shop.payments().retrieve(&new).await.unwrap().id, new, "round {round}: the keys see the same");
        let page = server.keyless(Method::GET, &format!("/api/v1/checkout/{new}")).send().await.unwrap();
        assert_eq!(page.json::<Value>().await.unwrap()["merchantName"], "Shop");
    }
    server.crash_and_restart();
    let shop = client(
        &server,
        &server.run_for_line(&[
            "keys",
            "create",
            "--workspace",
            account.workspace.id.as_str(),
            "--environment",
            "test",
        ]),
    );
    assert_eq!(total(&shop).await, 1, "a key made after a reset sees what the others see");
    assert_eq!(other.payments().retrieve(&theirs).await.map(|it| it.id).unwrap_or_else(|_| theirs.clone()), theirs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_empties_the_sandbox_of_one_workspace_on_a_directory() {
    a_reset_empties_the_sandbox_of_one_workspace(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_empties_the_sandbox_of_one_workspace_on_postgresql() {
    a_reset_empties_the_sandbox_of_one_workspace(Engine::Postgres).await;
}

async fn the_time_of_one_sandbox_moves(engine: Engine) {
    let server = Server::start_on(engine, &["--session-ttl", "3600"]);
    let [shop, _, _, other] = keys(&server);
    let (first, paid) = (create(&shop).await, create(&shop).await);
    let theirs = create(&other).await;
    shop.checkout().simulate(&paid, SimulateOutcome::Completed).await.unwrap();

    let moved = shop.sandbox().advance(3000).await.unwrap();
    assert_eq!((moved.sessions, moved.expired), (1, 0));
    let late = create(&shop).await;
    let moved = shop.sandbox().advance(1200).await.unwrap();
    assert_eq!((moved.sessions, moved.expired), (2, 1), "the first has waited for 4,200 s and the late one for 1,200");
    let status = async |client: &Client, id: &PaymentId| client.payments().retrieve(id).await.unwrap().status;
    assert_eq!(status(&shop, &first).await, Status::Expired);
    assert_eq!(status(&shop, &paid).await, Status::Completed);
    assert_eq!(status(&shop, &late).await, Status::Pending);
    assert_eq!(status(&other, &theirs).await, Status::Pending, "nobody else's time moved");
    let moved = shop.sandbox().advance(31 * 24 * 60 * 60).await.unwrap();
    assert_eq!((moved.sessions, moved.expired), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_only_one_sandbox_advances_on_a_directory() {
    the_time_of_one_sandbox_moves(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_only_one_sandbox_advances_on_postgresql() {
    the_time_of_one_sandbox_moves(Engine::Postgres).await;
}

/// Waits until a client's only delivery has had this many attempts and waits for the next.
async fn waiting_after(client: &Client, attempts: u32) -> Delivery {
    eventually("the delivery to wait", || async {
        let delivery = client.webhooks().deliveries().await.unwrap().items.pop()?;
        (delivery.attempts == attempts && delivery.next_attempt_at.is_some()).then_some(delivery)
    })
    .await
}

async fn the_retries_of_one_sandbox_come_sooner(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let [shop, _, _, other] = keys(&server);
    let fails = StatusCode::INTERNAL_SERVER_ERROR;
    let receiver = Receiver::start(Reply::InTurn(vec![fails, fails, StatusCode::OK])).await;
    let failing = Receiver::start(Reply::Status(fails, String::new())).await;
    for (client, receiver) in [(&shop, &receiver), (&other, &failing)] {
        let params = CreateWebhook::new(receiver.url(), Subscription::All).retries(Retries::Standard);
        client.webhooks().create(params).await.unwrap();
        create(client).await;
    }
    let (first, theirs) = (waiting_after(&shop, 1).await, waiting_after(&other, 1).await);
    let advance = async |seconds| shop.sandbox().advance(seconds).await.unwrap().retries;
    assert_eq!(advance(1).await, 1);
    let second = waiting_after(&shop, 1).await;
    let wait = |delivery: &Delivery| delivery.next_attempt_at.unwrap().as_millis();
    assert_eq!(wait(&first) - wait(&second), 1_000);
    assert_eq!(advance(3_600).await, 1);

    // Advance the time by five to six minutes.
    let second = waiting_after(&shop, 2).await;
    assert_eq!(advance(240).await, 1);
    assert_eq!(wait(&second) - wait(&waiting_after(&shop, 2).await), 240_000);
    let is_empty = async || server.metrics().await.contains("payments_outbox_deliveries 0\n").then_some(());
    eventually("no attempt to be due", is_empty).await;
    assert_eq!(advance(240).await, 1);
    let ended = eventually("the third attempt", || async {
        let delivery = shop.webhooks().deliveries().await.unwrap().items.pop()?;
        (delivery.status == DeliveryStatus::Success).then_some(delivery)
    })
    .await;
    assert_eq!((&ended.id, ended.attempts, receiver.received().len()), (&first.id, 3, 3));
    assert_eq!(advance(3_600).await, 0, "nothing waits");
    let attempted_at = waiting_after(&other, 2).await.attempt_log.unwrap()[1].attempted_at;
    assert!(attempted_at >= theirs.next_attempt_at.unwrap(), "nobody else's time moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retries_of_only_one_sandbox_come_sooner_on_a_directory() {
    the_retries_of_one_sandbox_come_sooner(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retries_of_only_one_sandbox_come_sooner_on_postgresql() {
    the_retries_of_one_sandbox_come_sooner(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_sandbox_and_live_records_stay_unchanged() {
    let public = Server::start_with(&["--sandbox", "--base-url", "https://pay.example"]);
    let live = public.new_key("Shop", "live");
    for (key, named) in [("sk_test_demo", "use a test key of your own"), (&*live, "this is a live key")] {
        for (path, body) in [("reset", json!({})), ("advance", json!({"seconds": 60}))] {
            let request = public.keyless(Method::POST, &format!("/api/v1/sandbox/{path}")).bearer_auth(key).json(&body);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 403, "{path}");
            let body: Value = answer.json().await.unwrap();
            assert_eq!(body["code"], "own_sandbox_required");
            assert!(body["message"].as_str().unwrap().contains(named), "{body}");
        }
    }
    let local = Server::start();
    create(&local.client()).await;
    local.client().sandbox().reset().await.unwrap();
    assert_eq!(total(&local.client()).await, 0, "of a server that only this machine reaches");
}

#[test]
fn the_command_asks_before_it_empties_the_sandbox() {
    let server = Server::start();
    let url = format!("http://{}", server.address());
    let reset = |said: &str, arguments: &[&str]| {
        let mut command = Command::new(server_binary());
        command.args(["reset", "--api", &url]).args(arguments).env_remove("PAYMENTS_API_KEY");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        (output.status.success(), text_of(&output))
    };
    let (done, text) = reset("no\n", &[]);
    assert!(!done && text.contains("\"Sandbox\"") && text.ends_with("nothing was changed\n"), "{text}");
    let (done, text) = reset("yes\n", &[]);
    assert!(done && text.ends_with("the sandbox of \"Sandbox\" is empty\n"), "{text}");
    let (done, text) = reset("", &["--yes"]);
    assert!(done && !text.contains("Type yes"), "{text}");
}
