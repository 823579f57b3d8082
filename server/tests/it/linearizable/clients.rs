//! Clients that work on one payment concurrently and record their answers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gateway_fakes::bkash::{Bkash, WALLET};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect::Policy};
use serde_json::{Value, json};
use todc_utils::Action;
use tokio::time::sleep;

use super::payment::{Actions, Keyed, Operation, State};
use crate::server::{Server, payment_of};

/// How many clients work on one payment. The last ones only read, so that there are readers while writers wait.
const CLIENTS: usize = 4;
const READERS: usize = 2;
/// How many operations a client makes. The readers end with the last writer.
const OPERATIONS: usize = 20;
const READS: usize = 70;
/// How long a client waits for an answer before it asks again.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A merchant with one payment.
pub(super) struct Merchant {
    key: String,
}

impl Merchant {
    pub(super) fn new(server: &Server, number: usize) -> Self {
        Self { key: server.new_key(&format!("Shop {number}"), "live") }
    }
}

/// The servers and the gateway that all clients use.
pub(super) struct Platform {
    http: Client,
    urls: Vec<String>,
    bkash: Arc<Bkash>,
    /// Whether a client sometimes repeats its last read without a request.
    has_cache: bool,
}

/// One payment and its recorded history.
struct Recorded<'s> {
    platform: &'s Platform,
    merchant: Merchant,
    actions: Mutex<Actions>,
    facts: Mutex<Facts>,
    /// How many clients still write.
    writers: AtomicUsize,
}

/// Facts that never change: a payment is created, paid and refunded at most once.
#[derive(Default)]
struct Facts {
    id: Option<String>,
    paid_at: Option<String>,
    refund: Option<String>,
}

/// An answer, and whether an earlier try got none.
struct Answer {
    status: StatusCode,
    is_replayed: bool,
    location: String,
    body: Value,
    is_repeated: bool,
}

impl Platform {
    pub(super) fn new(urls: Vec<String>, bkash: Arc<Bkash>) -> Self {
        // Reuse no connection, because a killed server leaves broken ones.
        let http = Client::builder().redirect(Policy::none()).no_proxy().pool_max_idle_per_host(0).timeout(PATIENCE);
        Self { http: http.build().unwrap(), urls, bkash, has_cache: false }
    }

    pub(super) fn with_cache(self) -> Self {
        Self { has_cache: true, ..self }
    }

    /// Pays one payment. Then the server has the gateway's token. The gateway grants two an hour, and servers that were
    /// killed while they request one would soon get none.
    pub(super) async fn warm_up(&self, merchant: Merchant) {
        let payment = Recorded::new(self, merchant);
        payment.create().await;
        let id = payment.facts.lock().unwrap().id.clone().unwrap();
        payment.pay(&id).await;
    }

    /// Lets the clients of a merchant work. Returns their requests and answers.
    pub(super) async fn play(&self, merchant: Merchant) -> Actions {
        let payment = Recorded::new(self, merchant);
        // Payments begin at different times, so that a fault meets them in different states.
        sleep(Duration::from_millis(fastrand::u64(..1000))).await;
        join_all((0..CLIENTS).map(|client| payment.client(client))).await;
        let mut actions = payment.actions.into_inner().unwrap();
        // A try that may still be in progress ends after everything else.
        let open: Vec<_> = actions.iter().map(|(client, _)| *client).filter(|client| *client >= CLIENTS).collect();
        actions.extend(open.into_iter().map(|open| {
            let by = (open - CLIENTS) % CLIENTS;
            (open, Action::Response(Operation::MayRefund { by }))
        }));
        actions
    }

    /// Sends a request to any server until one answers it.
    async fn insist(&self, request: impl Fn(&str) -> RequestBuilder) -> Answer {
        let begun = Instant::now();
        let mut is_repeated = false;
        loop {
            let outcome = request(&self.urls[fastrand::usize(..self.urls.len())]).send().await;
            assert!(begun.elapsed() < Duration::from_secs(60), "no answer for a minute: {outcome:?}");
            match outcome {
                Ok(answer) if !answer.status().is_server_error() => {
                    if let Some(answer) = Answer::read(answer, is_repeated).await {
                        return answer;
                    }
                    is_repeated = true;
                }
                // Nothing was sent.
                Err(error) if error.is_connect() => {}
                _ => is_repeated = true,
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Answer {
    async fn read(answer: Response, is_repeated: bool) -> Option<Self> {
        let status = answer.status();
        let header = |name| Some(answer.headers().get(name)?.to_str().unwrap().to_owned());
        let (is_replayed, location) = (header("idempotent-replayed").is_some(), header("location"));
        let text = answer.text().await.ok()?;
        let body = serde_json::from_str(&text).unwrap_or_default();
        Some(Self { status, is_replayed, location: location.unwrap_or_default(), body, is_repeated })
    }

    fn keyed(&self) -> Keyed {
        Keyed { is_replayed: self.is_replayed, is_repeated: self.is_repeated }
    }

    /// Whether a transition was refused because the payment is in another state.
    fn refuses(&self, from: &str, to: &str) -> bool {
        let message = format!("a payment that is {from} cannot become {to}");
        self.status == 409 && self.body["message"].as_str().unwrap().contains(&message)
    }
}

impl<'s> Recorded<'s> {
    fn new(platform: &'s Platform, merchant: Merchant) -> Self {
        let (actions, facts) = (Mutex::default(), Mutex::default());
        Self { platform, merchant, actions, facts, writers: AtomicUsize::new(CLIENTS - READERS) }
    }

    async fn client(&self, client: usize) {
        if client >= CLIENTS - READERS {
            let mut last_read = State::Absent;
            for _ in 0..READS {
                if self.writers.load(Ordering::Relaxed) == 0 {
                    break;
                }
                let asked = self.ask(client).await;
                if !self.platform.has_cache || fastrand::bool() {
                    last_read = self.read().await;
                }
                self.answer(client, asked, Operation::Read(last_read));
            }
            return;
        }
        for _ in 0..OPERATIONS {
            let asked = self.ask(client).await;
            let id = self.facts.lock().unwrap().id.clone();
            let operation = match (fastrand::u32(..16), id) {
                (0..3, _) => self.create().await,
                (3..5, Some(id)) => self.pay(&id).await,
                (5..8, Some(id)) => self.refund(&id, client).await,
                _ => Operation::Read(self.read().await),
            };
            self.answer(client, asked, operation);
        }
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits a little, then records a client's request. Returns the position of the action.
    async fn ask(&self, client: usize) -> usize {
        sleep(Duration::from_millis(fastrand::u64(..80))).await;
        let mut actions = self.actions.lock().unwrap();
        actions.push((client, Action::Call(Operation::Asked)));
        actions.len() - 1
    }

    /// Records an answer. A call that may still be in progress is moved to its own client, which makes no other call.
    fn answer(&self, client: usize, asked: usize, operation: Operation) {
        let mut actions = self.actions.lock().unwrap();
        if let Operation::MayRefund { by } = operation {
            let last = actions.iter().map(|(client, _)| *client).max().unwrap_or_default();
            actions[asked].0 = (last / CLIENTS + 1) * CLIENTS + by;
        } else {
            actions.push((client, Action::Response(operation)));
        }
    }

    async fn create(&self) -> Operation {
        let request = |url: &str| {
            let request = self.platform.http.post(format!("{url}/api/v1/payments")).bearer_auth(&self.merchant.key);
            request.header("idempotency-key", "order").json(&payment_of(&json!(100)))
        };
        let answer = self.platform.insist(request).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert_eq!(self.state_of(&answer.body), State::Pending);
        Operation::Created(answer.keyed())
    }

    /// Reads the payment, or the list of the merchant's payments.
    async fn read(&self) -> State {
        let id = self.facts.lock().unwrap().id.clone().filter(|_| fastrand::bool());
        let Some(id) = id else {
            let answer = self.platform.insist(|url| self.get(url, "/payments?limit=2")).await;
            let items = answer.body["items"].as_array().unwrap();
            assert_eq!(answer.body["total"], items.len(), "{}", answer.body);
            return items.first().map_or(State::Absent, |payment| self.state_of(payment));
        };
        let answer = self.platform.insist(|url| self.get(url, &format!("/payments/{id}"))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        self.state_of(&answer.body)
    }

    /// Goes to the gateway, approves, and comes back, until the payment is paid.
    async fn pay(&self, id: &str) -> Operation {
        loop {
            let begin = |url: &str| self.platform.http.post(format!("{url}/api/v1/checkout/{id}/pay"));
            let begun = self.platform.insist(begin).await;
            if ["paid", "refunded"].iter().any(|status| begun.refuses(status, "processing")) {
                return Operation::Paid;
            }
            assert_eq!(begun.status, 200, "{}", begun.body);
            let attempt = begun.body["redirectUrl"].as_str().unwrap().rsplit('/').next().unwrap();
            // If another client was faster, the gateway already knows that the payment is paid.
            if let Some(back) = self.platform.bkash.approve(attempt, WALLET) {
                let path = &back[back.find("/gateways").unwrap()..];
                let back = self.platform.insist(|url| self.platform.http.get(format!("{url}{path}"))).await;
                if back.location.contains("status=completed") {
                    return Operation::Paid;
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Refunds the payment. Each client has its own key and always uses it.
    async fn refund(&self, id: &str, by: usize) -> Operation {
        let request = |url: &str| {
            let request = self.platform.http.post(format!("{url}/api/v1/payments/{id}/refund"));
            let request = request.bearer_auth(&self.merchant.key).header("idempotency-key", format!("refund-{by}"));
            request.json(&json!({"reason": by.to_string()}))
        };
        let answer = self.platform.insist(request).await;
        if answer.status == 200 {
            assert_eq!(self.state_of(&answer.body), State::Refunded { by });
            return Operation::Refunded { by, keyed: answer.keyed() };
        }
        if answer.refuses("refunded", "refunded") {
            return Operation::NotRefunded { by, is_refunded: true };
        }
        let is_pending = ["created", "processing"].iter().any(|status| answer.refuses(status, "refunded"));
        assert!(is_pending, "{} {}", answer.status, answer.body);
        if answer.is_repeated { Operation::MayRefund { by } } else { Operation::NotRefunded { by, is_refunded: false } }
    }

    fn get(&self, url: &str, path: &str) -> RequestBuilder {
        self.platform.http.get(format!("{url}/api/v1{path}")).bearer_auth(&self.merchant.key)
    }

    /// The state of a payment in an answer. It must agree with earlier answers.
    fn state_of(&self, payment: &Value) -> State {
        let mut facts = self.facts.lock().unwrap();
        let Facts { id, paid_at, refund } = &mut *facts;
        for (known, said) in [(id, &payment["id"]), (paid_at, &payment["paid_at"]), (refund, &payment["refund"]["id"])]
        {
            if let Some(said) = said.as_str() {
                assert_eq!(known.get_or_insert_with(|| said.to_owned()), said, "it happened twice: {payment}");
            }
        }
        match payment["status"].as_str().unwrap() {
            "pending" => State::Pending,
            "completed" => State::Completed,
            "refunded" => State::Refunded { by: payment["refund"]["reason"].as_str().unwrap().parse().unwrap() },
            status => panic!("{status}: {payment}"),
        }
    }
}
