//! Commits that no standby has. A server never answers from one, because the promotion of the standby would undo it.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::relay::{Fault, Relay};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    engine::run_sql,
    server::{Server, eventually, payment_of},
    standby::Pair,
};

const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND \
                       application_name = 'payments-server'";
const COUNT: &str = "SELECT count(*) FROM payments.payment";

/// Sends a request that creates a payment with the key `order-2`. Returns its future answer.
fn create(server: &Server) -> JoinHandle<(StatusCode, Value)> {
    let request = server.request(Method::POST, "/payments").header("idempotency-key", "order-2");
    let request = request.json(&payment_of(&json!(20))).timeout(Duration::from_secs(20));
    tokio::spawn(async move {
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    })
}

/// Starts a create that waits for the missing standby. Returns its future answer.
async fn waiting_create(pair: &Pair, server: &Server) -> JoinHandle<(StatusCode, Value)> {
    let creating = create(server);
    eventually("the commit to wait", async || (!run_sql(&pair.url_of("one"), WAITING).is_empty()).then_some(())).await;
    assert_eq!(run_sql(&pair.url_of("one"), COUNT), "1", "nobody sees a commit that waits");
    creating
}

/// Reads and repeats the create for some seconds. No answer may come from the commit that no standby has.
async fn assert_nothing_is_answered(server: &Server, time: Duration) {
    let begun = Instant::now();
    let mut refused = 0;
    while begun.elapsed() < time {
        let creating = create(server);
        let list = server.request(Method::GET, "/payments").send();
        if let Ok(list) = timeout(Duration::from_secs(1), list).await {
            let list = list.unwrap();
            assert_eq!(list.status(), 503, "a read was answered: {}", list.text().await.unwrap());
        }
        match timeout(Duration::from_secs(1), creating).await {
            Ok(answer) => assert_eq!(answer.unwrap().0, 503, "the create was answered"),
            Err(_) => refused += 1,
        }
        sleep(Duration::from_millis(50)).await;
    }
    eprintln!("{refused} creates waited");
}

/// Repeats the create until it is answered.
async fn insist(server: &Server) -> Value {
    eventually("the create", async || {
        let (status, payment) = create(server).await.unwrap();
        assert!(status == 201 || status == 503, "{status} {payment}");
        (status == 201).then_some(payment)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_comes_from_a_commit_that_only_a_restarted_primary_has() {
    let mut pair = Pair::start();
    let server = Server::start_with(&["--database-url", &pair.url()]);
    server.create(&payment_of(&json!(10))).await;
    pair.crash_server("two");
    let creating = waiting_create(&pair, &server).await;
    pair.crash_server("one");
    pair.start_server("one");
    assert_eq!(run_sql(&pair.url_of("one"), COUNT), "2", "the primary shows the commit, although no standby has it");
    assert_nothing_is_answered(&server, Duration::from_secs(7)).await;
    assert_eq!(creating.await.unwrap().0, 503);

    // Once the standby has it, the commit is like any other.
    pair.start_server("two");
    let begun = Instant::now();
    insist(&server).await;
    eprintln!("answered {:?} after the standby's start", begun.elapsed());
    assert_eq!(server.get("/payments").await["total"], 2);
    assert_eq!(run_sql(&pair.url_of("two"), COUNT), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_stays_invisible_if_its_connection_breaks_while_it_waits_for_a_standby() {
    let mut pair = Pair::start();
    let relay = Relay::start(pair.socket_of("one"), 1).await;
    let server = Server::start_with(&["--database-url", &relay.url("shop")]);
    server.create(&payment_of(&json!(10))).await;
    pair.crash_server("two");
    relay.hit_next_commit(Fault::Reset);
    let creating = waiting_create(&pair, &server).await;
    // The server checks whether the commit happened, and reads go on as if it had not.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(server.get("/payments").await["total"], 1, "after {:?}", begun.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(creating.await.unwrap().0, 503);
    pair.start_server("two");
    insist(&server).await;
    assert_eq!(server.get("/payments").await["total"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_cancelled_while_it_waits_for_a_standby_is_not_acknowledged() {
    let mut pair = Pair::start();
    let server = Server::start_with(&["--database-url", &pair.url()]);
    server.create(&payment_of(&json!(10))).await;
    pair.crash_server("two");
    let creating = waiting_create(&pair, &server).await;
    for pid in run_sql(&pair.url_of("one"), WAITING).lines() {
        run_sql(&pair.url_of("one"), &format!("SELECT pg_cancel_backend({pid})"));
    }
    eventually("the row to show", async || (run_sql(&pair.url_of("one"), COUNT) == "2").then_some(())).await;
    assert_nothing_is_answered(&server, Duration::from_secs(7)).await;
    assert_eq!(creating.await.unwrap().0, 503);
    server.assert_logs("the database warns");

    // The primary is lost, and with it the commit. The key makes one payment on the promoted standby.
    pair.crash_server("one");
    pair.start_server("two");
    assert_eq!(run_sql(&pair.url_of("two"), COUNT), "1");
    pair.promote();
    let begun = Instant::now();
    let payment = insist(&server).await;
    eprintln!("answered {:?} after the promotion", begun.elapsed());
    assert_eq!(server.get("/payments").await["total"], 2);
    assert_eq!(insist(&server).await, payment);
}
