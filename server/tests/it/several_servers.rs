//! Three servers on one database: one is killed, one is paused beyond its leases, and the merchants notice neither.

use std::{
    collections::HashSet,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use test_support::cluster::Cluster;
use tokio::time::sleep;

use crate::{
    engine::{END_LEASES, run_sql},
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

const ENDPOINTS: usize = 3;
/// The longest time that a server delays the others when it is paused in the middle of a batch.
const HELD_UP: Duration = Duration::from_secs(8);

/// Starts servers on one database, all at the same time.
fn start(count: usize, database: &str) -> Vec<Server> {
    let starting: Vec<_> = (0..count)
        .map(|_| {
            let database = database.to_owned();
            thread::spawn(move || Server::start_with(&["--database-url", &database]))
        })
        .collect();
    starting.into_iter().map(|server| server.join().unwrap()).collect()
}

/// Merchants. Each uses one server after another.
struct Merchants<'s> {
    http: Client,
    urls: Vec<&'s str>,
    is_closing: AtomicBool,
    slowest_millis: AtomicU64,
    /// The paused server does not count as slow.
    stopped: &'s str,
}

impl Merchants<'_> {
    /// Sends a POST to the servers in turn until one answers it.
    async fn post(&self, turn: &mut usize, path: &str, key: Option<&str>, body: &Value) -> (u16, Value) {
        let begun = Instant::now();
        loop {
            *turn += 1;
            let url = self.urls[*turn % self.urls.len()];
            let mut request = self.http.post(format!("{url}/api/v1{path}")).json(body);
            if let Some(key) = key {
                request = request.bearer_auth(SANDBOX_KEY).header("idempotency-key", key);
            }
            let patience = if url == self.stopped { 1 } else { 15 };
            let sent = Instant::now();
            let answer = request.timeout(Duration::from_secs(patience)).send().await;
            if url != self.stopped {
                let millis = u64::try_from(sent.elapsed().as_millis()).unwrap();
                self.slowest_millis.fetch_max(millis, Ordering::Relaxed);
            }
            if let Ok(answer) = answer {
                let status = answer.status().as_u16();
                if let Ok(body) = answer.json().await
                    && status < 500
                {
                    return (status, body);
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no answer to {path} for a minute");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Creates and pays payments until the shops close. Returns the ids of the payments.
    async fn shop(&self, shop: usize) -> Vec<String> {
        let (mut ids, mut turn) = (Vec::new(), shop);
        while !self.is_closing.load(Ordering::Relaxed) {
            let key = format!("shop-{shop}-{}", ids.len());
            let (status, payment) = self.post(&mut turn, "/payments", Some(&key), &payment_of(&json!(100))).await;
            assert_eq!(status, 201, "{payment}");
            let id = payment["id"].as_str().unwrap().to_owned();
            let (status, paid) = self.post(&mut turn, &format!("/checkout/{id}/simulate"), None, &json!({})).await;
            assert!(status == 200 || status == 409, "{status} {paid}");
            ids.push(id);
            sleep(Duration::from_millis(20)).await;
        }
        ids
    }
}

fn signal(server: &Server, signal: &str) {
    assert!(Command::new("kill").args([signal, &server.process_id().to_string()]).status().unwrap().success());
}

/// Pauses a server while it has an open transaction. Returns how many tries that took.
async fn stop_within_a_batch(server: &Server, database: &str) -> u32 {
    const OPEN: &str = "SELECT pid, xact_start FROM pg_stat_activity WHERE datname = current_database() AND \
                        state = 'idle in transaction' ORDER BY pid";
    for tries in 1..200 {
        signal(server, "-STOP");
        let open = run_sql(database, OPEN);
        sleep(Duration::from_millis(100)).await;
        let still = run_sql(database, OPEN);
        if still.lines().any(|line| open.lines().any(|other| other == line)) {
            return tries;
        }
        signal(server, "-CONT");
        sleep(Duration::from_millis(7)).await;
    }
    panic!("the server was never in the middle of a batch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_and_a_paused_server_lose_no_event_and_delay_nobody() {
    let database = Cluster::shared().new_database();
    let mut servers = start(3, &database);
    let (mut killed, stopped, running) = (servers.remove(0), servers.remove(0), servers.remove(0));
    let receivers = join_all((0..ENDPOINTS).map(|_| Receiver::ok())).await;
    for (receiver, server) in receivers.iter().zip([&killed, &stopped, &running]) {
        receiver.subscribe(&server.client()).await;
    }
    let urls = [killed.url.clone(), stopped.url.clone(), running.url.clone()];
    let merchants = Merchants {
        http: Client::builder().no_proxy().build().unwrap(),
        urls: urls.iter().map(String::as_str).collect(),
        is_closing: false.into(),
        slowest_millis: 0.into(),
        stopped: &urls[1],
    };
    let shops = join_all((0..24).map(|number| merchants.shop(number)));
    let faults = async {
        sleep(Duration::from_secs(1)).await;
        let tries = stop_within_a_batch(&stopped, &database).await;
        sleep(Duration::from_secs(1)).await;
        killed.kill();
        sleep(HELD_UP).await;
        merchants.is_closing.store(true, Ordering::Relaxed);
        // Now the leases of both end, instead of after a minute.
        run_sql(&database, END_LEASES);
        eprintln!("stopped within a batch at try {tries}");
        sleep(Duration::from_secs(3)).await;
        signal(&stopped, "-CONT");
    };
    let (ids, ()) = tokio::join!(shops, faults);
    let payments = ids.iter().map(Vec::len).sum::<usize>();
    let slowest = Duration::from_millis(merchants.slowest_millis.load(Ordering::Relaxed));
    eprintln!("{payments} payments, the slowest answer took {slowest:?}");
    assert!(slowest < HELD_UP, "a stopped server held up the others for {slowest:?}");
    assert_eq!(ids.concat().into_iter().collect::<HashSet<_>>().len(), payments, "two keys made one payment");

    let begun = Instant::now();
    for receiver in &receivers {
        eventually("every event at every endpoint", async || {
            let id = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["id"].as_str().unwrap().to_owned();
            let events = receiver.received().iter().map(|one| id(&one.body)).collect::<HashSet<_>>();
            assert!(events.len() <= 2 * payments);
            (events.len() == 2 * payments).then_some(())
        })
        .await;
    }
    let (sent, expected) = (receivers.iter().map(|one| one.received().len()).sum::<usize>(), 2 * payments * ENDPOINTS);
    eprintln!("every event {:?} later; {} of {expected} were sent again", begun.elapsed(), sent - expected);
    let deliveries = "SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM payments.delivery";
    eventually("every delivery to end", async || {
        (run_sql(&database, deliveries) == format!("{expected}|0")).then_some(())
    })
    .await;
    killed.restart();
    for server in [&killed, &stopped, &running] {
        let completed = server.get("/payments?status=completed&limit=1").await;
        assert_eq!(completed["total"], payments);
        assert_eq!(server.get("/account").await["balance"]["bdt"], 95 * payments);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_works_on_all_servers_at_once_and_a_revoked_key_on_none_after_a_second() {
    let servers = start(3, &Cluster::shared().new_database());
    let key = servers[0].new_key("Rahim & Sons", "live");
    let statuses = async || {
        let ask = |server: &Server| server.keyless(Method::GET, "/api/v1/account").bearer_auth(&key).send();
        let answers = join_all(servers.iter().map(ask)).await;
        answers.into_iter().map(|answer| answer.unwrap().status().as_u16()).collect::<Vec<_>>()
    };
    assert_eq!(statuses().await, [200; 3]);
    let listed = servers[1].run(&["keys", "list"]);
    let line = listed.lines().find(|line| line.contains(&key[key.len() - 4..])).unwrap();
    servers[1].run(&["keys", "revoke", line.split(' ').next().unwrap()]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(statuses().await, [401; 3]);
}
