//! Power cuts. The test traces the server's system calls while the server works, is killed and starts again. From the trace
//! it builds states that a power cut may leave on the disk, and starts a server on each. Every payment acknowledged before
//! the cut must be there.
//!
//! `POWER_LOSS_IMAGES` sets the number of states, `POWER_LOSS_PAYMENTS` the number of payments before each kill.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fastrand::Rng;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use test_support::{
    disk::{Disk, Fate, Image},
    trace::{Step, steps},
};
use tokio::task::JoinSet;

use crate::{
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, launch, payment_of, server_binary},
};

const CALLS: &str = "trace=openat,lseek,write,pwrite64,writev,sendto,sendmsg,ftruncate,fallocate,mkdir,mkdirat,rename,\
                     renameat,renameat2,unlink,unlinkat,fsync,fdatasync,sync_file_range";

/// How many images run concurrently.
const AT_ONCE: usize = 3;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// The responses, each with its line in the trace.
#[derive(Default)]
struct Answers {
    /// Created payments: id, idempotency key, response body.
    created: Vec<(usize, String, String, Vec<u8>)>,
    /// Ended payments: id, status.
    ended: Vec<(usize, String, String)>,
}

impl Answers {
    /// Records sent bytes if they acknowledge a new or ended payment.
    fn record(&mut self, at: usize, sent: &[u8]) {
        let Some(body) = sent.windows(4).position(|end| end == b"\r\n\r\n").map(|end| &sent[end + 4..]) else { return };
        if sent.starts_with(b"HTTP/1.1 201") {
            let payment: Value = serde_json::from_slice(body).unwrap();
            // Other responses with 201 acknowledge webhook endpoints.
            if let Some(key) = payment["description"].as_str() {
                let id = payment["id"].as_str().unwrap();
                self.created.push((at, id.to_owned(), key.to_owned(), body.to_vec()));
            }
        } else if sent.starts_with(b"HTTP/1.1 200") {
            let Ok(result) = serde_json::from_slice::<Value>(body) else { return };
            let Some(url) = result["redirectUrl"].as_str() else { return };
            let id = url.split_once("payment_id=").unwrap().1.split('&').next().unwrap();
            self.ended.push((at, id.to_owned(), result["status"].as_str().unwrap().to_owned()));
        }
    }
}

/// A server under strace.
struct Traced {
    strace: Child,
    server: String,
    url: String,
}

impl Traced {
    fn start(directory: &Path, trace: &Path) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", CALLS, "-o"]).arg(trace).arg(server_binary());
        let (strace, url) = launch(command, directory, "127.0.0.1:0", &[]);
        let children = format!("/proc/{0}/task/{0}/children", strace.id());
        let server = fs::read_to_string(children).unwrap().trim().to_owned();
        Self { strace, server, url }
    }

    fn end(mut self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.server]).status().unwrap().success());
        self.strace.wait().unwrap();
    }
}

/// Creates `payments` payments from four concurrent customers and ends two of three.
async fn shop(url: &str, round: &str, payments: usize) {
    let next = AtomicUsize::new(0);
    let http = Client::builder().no_proxy().build().unwrap();
    let customer = async || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= payments {
                return;
            }
            let key = format!("{round}-{nth}");
            let answer = create(&http, url, &key).await;
            assert_eq!(answer.status(), StatusCode::CREATED);
            let id = answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
            if let Some(action) = [None, Some("success"), Some("fail")][nth % 3] {
                let simulate =
                    http.post(format!("{url}/api/v1/checkout/{id}/simulate")).json(&json!({"action": action}));
                assert_eq!(simulate.send().await.unwrap().status(), StatusCode::OK);
            }
        }
    };
    tokio::join!(customer(), customer(), customer(), customer());
}

async fn create(http: &Client, url: &str, key: &str) -> reqwest::Response {
    let mut body = payment_of(&json!(100));
    body["description"] = json!(key);
    let request = http.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY).header("idempotency-key", key);
    request.json(&body).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_at_any_moment_loses_no_acknowledged_payment() {
    let (images, payments) = (number("POWER_LOSS_IMAGES", 100), number("POWER_LOSS_PAYMENTS", 80));
    let seed = std::env::var("POWER_LOSS_SEED").map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    println!("POWER_LOSS_SEED={seed}");
    let directory = tempfile::tempdir().unwrap();

    // The first run ends with a kill, the second with a clean shutdown.
    let mut traces = Vec::new();
    for (round, signal) in [("first", "-KILL"), ("second", "-TERM")] {
        let trace = directory.path().join(round);
        let server = Traced::start(directory.path(), &trace);
        let receiver = Receiver::ok().await;
        let client = payments_client::Client::builder(SANDBOX_KEY).base_url(&server.url).build().unwrap();
        receiver.subscribe(&client).await;
        shop(&server.url, round, payments).await;
        server.end(signal);
        traces.push(fs::read_to_string(trace).unwrap());
    }

    let mut runs = Vec::new();
    let mut lines = 0;
    for trace in traces {
        runs.push(steps(&trace, directory.path(), lines));
        lines += trace.lines().count();
    }
    let mut moments = Vec::new();
    let mut answers = Answers::default();
    for (at, step) in runs.iter().flatten() {
        match step {
            Step::Disk(_) => moments.push(*at),
            Step::Sent(bytes) => answers.record(*at, bytes),
        }
    }
    let mut rng = Rng::with_seed(seed);
    // Creating the store takes few calls, but all later ones depend on them. So every fourth cut is among those calls.
    let first_answer = answers.created.iter().map(|(at, ..)| *at).min().unwrap();
    let making = moments.iter().take_while(|at| **at < first_answer).count();
    let mut cut = |nth: usize| moments[rng.usize(..if nth.is_multiple_of(4) { making } else { moments.len() })];
    let mut cuts: Vec<usize> = (0..images).map(&mut cut).collect();
    cuts.sort_unstable();
    println!(
        "{} calls on the disk, {} answers, {images} cuts",
        moments.len(),
        answers.created.len() + answers.ended.len()
    );

    let trials = Arc::new(Trials {
        // Reuse no connection, because each image has its own port.
        http: Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap(),
        answers,
        opened: AtomicUsize::new(0),
        rebuilt: AtomicUsize::new(0),
    });
    let mut under_way = JoinSet::new();
    let mut cuts = cuts.into_iter().peekable();
    let mut disk = Disk::new(directory.path());
    for run in runs {
        disk.close_all();
        for (at, step) in run {
            if let Step::Disk(call) = step {
                disk.apply(call);
            }
            while cuts.next_if(|cut| *cut <= at).is_some() {
                while under_way.len() >= AT_ONCE {
                    under_way.join_next().await.unwrap().unwrap();
                }
                let fate = Fate::random(&mut rng, at);
                let image = disk.image(fate, &mut rng);
                let what = format!("POWER_LOSS_SEED={seed}, line {at}, {fate:?}");
                let (trials, rng) = (Arc::clone(&trials), rng.fork());
                under_way.spawn(async move { trials.open(image, at, rng, &what).await });
            }
        }
    }
    while let Some(ended) = under_way.join_next().await {
        ended.unwrap();
    }
    let (opened, rebuilt) = (trials.opened.load(Ordering::Relaxed), trials.rebuilt.load(Ordering::Relaxed));
    println!("{opened} states opened, {rebuilt} of them with a rebuilt engine");
    assert_eq!(opened, images);
}

struct Trials {
    http: Client,
    answers: Answers,
    opened: AtomicUsize,
    rebuilt: AtomicUsize,
}

impl Trials {
    /// Starts a server on an image, compares it with the responses before the cut, kills it and runs `check`.
    async fn open(&self, image: Image, at: usize, mut rng: Rng, what: &str) {
        let directory = in_memory();
        for (path, content) in image {
            let path = directory.path().join(path);
            match content {
                // Paths are sorted, so a directory comes before its content.
                None => fs::create_dir(path).unwrap(),
                Some(bytes) => fs::write(path, bytes).unwrap(),
            }
        }
        let server = match Server::try_start_on(directory) {
            Ok(server) => server,
            Err((directory, log)) => panic!("{what}: refused in {}: {log}", directory.keep().display()),
        };
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.rebuilt
            .fetch_add(usize::from(server.log().contains("the tree was rebuilt from the journal")), Ordering::Relaxed);
        let mut statuses = BTreeMap::new();
        for page in 1.. {
            let request = self.http.get(format!("{}/api/v1/payments?limit=100&page={page}", server.url));
            let page: Value = request.bearer_auth(SANDBOX_KEY).send().await.unwrap().json().await.unwrap();
            let items = page["items"].as_array().unwrap();
            for payment in items {
                statuses.insert(payment["id"].as_str().unwrap().to_owned(), payment["rawStatus"].clone());
            }
            if items.len() < 100 {
                break;
            }
        }
        let created: Vec<_> = self.answers.created.iter().take_while(|(answered, ..)| *answered <= at).collect();
        for (_, id, ..) in &created {
            assert!(statuses.contains_key(id), "{what}: lost {id}");
        }
        for (_, id, status) in self.answers.ended.iter().take_while(|(answered, ..)| *answered <= at) {
            assert_eq!(statuses[id], **status, "{what}: {id} has another status");
        }
        for _ in 0..3.min(created.len()) {
            let (_, _, key, body) = created[rng.usize(..created.len())];
            let again = create(&self.http, &server.url, key).await;
            assert_eq!(again.bytes().await.unwrap(), body, "{what}: another response to {key}");
        }
        // Kills the server and runs `check`.
        drop(server);
    }
}

/// Creates a directory in memory, because the image is temporary and needs no syncs.
fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}
