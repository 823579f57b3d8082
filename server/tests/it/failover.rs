//! A primary fails under load repeatedly, and a standby takes over. No acknowledged payment is lost, no key makes two
//! payments, and payments go on within seconds, even if the lost primary accepts connections and never answers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all, stream};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    server::{SANDBOX_KEY, Server, eventually, payment_of},
    trio::Trio,
};

const SHOPS: usize = 8;
/// How long a shop waits for an answer before it asks the other server.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long a restarted primary shows commits that no standby has. In that time each shop repeats its request.
const SHOWN: Duration = Duration::from_secs(2);
/// The number of batches so far.
const BATCHES: &str = "SELECT sum(newest) FROM (SELECT max(batch) AS newest FROM payments.batch GROUP BY cell) cells";
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// The longest allowed time without an acknowledgement: the promotion, and the time until the servers find the new primary.
const LONGEST_GAP: Duration = Duration::from_secs(8);

/// A failure of the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    /// All its processes are killed, and a standby is promoted.
    Node,
    /// Its first process is killed, and it restarts in place.
    Postmaster,
    /// It restarts in place with commits that no standby has. Then it is killed, and a standby is promoted.
    PostmasterThenNode,
    /// It survives without its standbys, so that its commits wait forever. A standby is promoted.
    Alone,
    /// All its processes are stopped, while the kernel still accepts connections. A standby is promoted.
    Frozen,
    /// It is killed. A process in its place accepts connections but never answers. A standby is promoted.
    Silent,
}

/// The failures in order. The first one happens to the first host of the URL.
const FAILURES: [Failure; 7] = [
    Failure::Alone,
    Failure::Silent,
    Failure::Frozen,
    Failure::PostmasterThenNode,
    Failure::Node,
    Failure::Postmaster,
    Failure::Node,
];

/// A payment whose creation was acknowledged.
#[derive(Debug, Clone, PartialEq)]
struct Acknowledged {
    shop: usize,
    key: String,
    id: String,
    at: Instant,
    is_paid: bool,
}

/// The shops, each of which creates one payment after another and pays every third.
struct Load {
    http: Client,
    urls: Vec<String>,
    is_closing: AtomicBool,
    acknowledged: Mutex<Vec<Acknowledged>>,
}

impl Load {
    /// Sends a request to the servers in turn until one answers it.
    async fn insist(&self, turn: &mut usize, path: &str, key: Option<&str>) -> (u16, Value) {
        let begun = Instant::now();
        loop {
            let url = &self.urls[*turn % self.urls.len()];
            if let Some((status, body)) = answer_to(request(&self.http, url, path, key)).await
                && status < 500
            {
                return (status, body);
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no answer to {path} for a minute");
            *turn += 1;
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn shop(self: Arc<Self>, shop: usize) {
        let mut turn = shop;
        for number in 0.. {
            if self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            let key = format!("shop-{shop}-{number}");
            let (status, payment) = self.insist(&mut turn, "/payments", Some(&key)).await;
            assert_eq!(status, 201, "{payment}");
            let id = payment["id"].as_str().unwrap().to_owned();
            let acknowledged = Acknowledged { shop, key, id: id.clone(), at: Instant::now(), is_paid: false };
            let place = {
                let mut all = self.acknowledged.lock().unwrap();
                all.push(acknowledged);
                all.len() - 1
            };
            if number % 3 == 0 {
                let (status, paid) = self.insist(&mut turn, &format!("/checkout/{id}/simulate"), None).await;
                // A try without an answer may have paid the payment.
                assert!(status == 200 || status == 409, "{status} {paid}");
                self.acknowledged.lock().unwrap()[place].is_paid = true;
            }
            sleep(Duration::from_millis(60)).await;
        }
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Waits until each shop has a new acknowledgement.
    async fn wait_until_all_are_served(&self) {
        let now = Instant::now();
        eventually("every shop to be served", async || {
            let since: HashSet<_> = self.acknowledged().iter().filter(|one| one.at > now).map(|one| one.shop).collect();
            (since.len() == SHOPS).then_some(())
        })
        .await;
    }

    /// The longest time without an acknowledgement since the primary was killed.
    fn longest_gap(&self, killed: Instant) -> Duration {
        let mut times: Vec<_> = self.acknowledged().iter().map(|one| one.at).filter(|at| *at > killed).collect();
        times.push(killed);
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
    }
}

fn request(http: &Client, url: &str, path: &str, key: Option<&str>) -> RequestBuilder {
    let request = http.post(format!("{url}/api/v1{path}"));
    match key {
        Some(key) => request.bearer_auth(SANDBOX_KEY).header("idempotency-key", key).json(&payment_of(&json!(100))),
        None => request,
    }
}

async fn answer_to(request: RequestBuilder) -> Option<(u16, Value)> {
    let answer = request.send().await.ok()?;
    Some((answer.status().as_u16(), answer.json().await.ok()?))
}

impl Failure {
    /// Makes the failure happen, and waits until the shops are served again. Returns when the primary was last killed.
    async fn happen(self, trio: &mut Trio, load: &Load) -> Instant {
        let mut killed = Instant::now();
        match self {
            Self::Node => {
                trio.kill_primary();
                trio.fail_over();
            }
            Self::Postmaster => {
                trio.kill_postmaster();
                trio.restart_primary();
            }
            Self::PostmasterThenNode => {
                trio.cut_standbys_off();
                eventually("commits to wait", async || (trio.ask_primary(WAITING) != "0").then_some(())).await;
                // Let answers arrive that were sent before the standbys were cut off.
                sleep(PATIENCE / 3).await;
                let acknowledged = load.acknowledged();
                trio.kill_postmaster();
                trio.restart_primary();
                let count = |text: String| text.parse::<usize>().unwrap();
                let (shown, replicated) = (count(trio.ask_primary(BATCHES)), trio.ask_standbys(BATCHES).map(count));
                assert!(shown > replicated[0].max(replicated[1]), "{shown} shown, {replicated:?} on the standbys");
                sleep(SHOWN).await;
                assert_eq!(load.acknowledged(), acknowledged, "something was acknowledged without a standby");
                killed = Instant::now();
                trio.kill_primary();
                trio.fail_over();
            }
            Self::Alone => {
                trio.cut_standbys_off();
                eventually("commits to wait", async || (trio.ask_primary(WAITING) != "0").then_some(())).await;
                trio.fail_over();
            }
            Self::Frozen => {
                trio.freeze_primary();
                trio.cut_standbys_off();
                trio.fail_over();
            }
            Self::Silent => {
                trio.silence_primary();
                trio.fail_over();
            }
        }
        load.wait_until_all_are_served().await;
        killed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failovers_under_load_neither_lose_nor_repeat_an_acknowledged_payment() {
    // Set FAILOVERS=40 for a long run.
    let failures = std::env::var("FAILOVERS").map_or(6, |text| text.parse().unwrap());
    let mut trio = Trio::start();
    let servers = [(); 2].map(|()| Server::start_with(&["--database-url", &trio.url()]));
    let load = Arc::new(Load {
        http: Client::builder().no_proxy().timeout(PATIENCE).build().unwrap(),
        urls: servers.iter().map(|server| server.url.clone()).collect(),
        is_closing: AtomicBool::new(false),
        acknowledged: Mutex::default(),
    });
    let shops: Vec<_> = (0..SHOPS).map(|shop| tokio::spawn(Arc::clone(&load).shop(shop))).collect();
    load.wait_until_all_are_served().await;

    let mut gaps = BTreeMap::<Failure, Vec<Duration>>::new();
    for failure in FAILURES.into_iter().cycle().take(failures) {
        sleep(Duration::from_millis(300)).await;
        let primary = trio.primary();
        let killed = failure.happen(&mut trio, &load).await;
        let gap = load.longest_gap(killed);
        let acknowledged = load.acknowledged();
        let ids: HashSet<_> = trio.ask_primary("SELECT id FROM payments.payment").lines().map(str::to_owned).collect();
        let lost: Vec<_> = acknowledged.iter().filter(|one| !ids.contains(&one.id)).collect();
        assert!(lost.is_empty(), "{failure:?}: lost {lost:?}");
        eprintln!("{failure:?}: {gap:?} without an acknowledgement, {} acknowledged", acknowledged.len());
        assert!(gap < LONGEST_GAP, "{failure:?}: {gap:?} without an acknowledgement");
        gaps.entry(failure).or_default().push(gap);
        if trio.primary() != primary {
            trio.rebuild(primary);
        }
        trio.wait_for_standbys();
    }
    load.is_closing.store(true, Ordering::Relaxed);
    join_all(shops).await.into_iter().for_each(|shop| shop.unwrap());
    for (failure, mut gaps) in gaps {
        gaps.sort_unstable();
        let [shortest, median, longest] = [0, gaps.len() / 2, gaps.len() - 1].map(|nth| gaps[nth]);
        eprintln!("{} of {failure:?}: gap {shortest:?} to {longest:?}, median {median:?}", gaps.len());
    }
    assert_nothing_is_lost_or_twice(&servers[0], &load.acknowledged()).await;
    servers[1].run(&["check"]);
}

/// Compares the list of payments with the keys, and repeats each create.
async fn assert_nothing_is_lost_or_twice(server: &Server, acknowledged: &[Acknowledged]) {
    let mut listed = HashMap::new();
    for page in 1.. {
        let list = server.get(&format!("/payments?limit=100&page={page}")).await;
        assert_eq!(list["total"], acknowledged.len(), "a key made no payment, or two");
        let items = list["items"].as_array().unwrap();
        if items.is_empty() {
            break;
        }
        listed.extend(items.iter().map(|item| (item["id"].as_str().unwrap().to_owned(), item["status"].clone())));
    }
    assert_eq!(listed.len(), acknowledged.len());
    let repeat = async |one: &Acknowledged| {
        let status = if one.is_paid { "completed" } else { "pending" };
        assert_eq!(listed[&one.id], status, "{one:?}");
        let again = server.request(Method::POST, "/payments").header("idempotency-key", &one.key);
        let again = again.json(&payment_of(&json!(100))).send().await.unwrap();
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!(again.json::<Value>().await.unwrap()["id"], one.id, "{}", one.key);
    };
    stream::iter(acknowledged).for_each_concurrent(SHOPS, repeat).await;
}
