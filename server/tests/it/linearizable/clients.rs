//! Clients that work on one payment at the same time and record what they are answered.

use std::{
    sync::{Arc, Mutex},
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

/// How many clients work on one payment.
const CLIENTS: usize = 4;
/// How many operations each of them makes.
const OPERATIONS: usize = 20;
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
pub(super) struct Street {
    http: Client,
    urls: Vec<String>,
    bkash: Arc<Bkash>,
    /// Whether a client sometimes reads what it read before, without asking.
    has_cache: bool,
}

/// One payment and what is recorded about it.
struct Shop<'s> {
    street: &'s Street,
    merchant: Merchant,
    actions: Mutex<Actions>,
    /// The payment's id, once a client knows it.
    id: Mutex<Option<String>>,
}

/// An answer, and whether an earlier try got none.
struct Answer {
    status: StatusCode,
    is_replayed: bool,
    location: String,
    body: Value,
    is_repeated: bool,
}

impl Street {
    pub(super) fn new(urls: Vec<String>, bkash: Arc<Bkash>) -> Self {
        // No connection is reused: a server that was killed leaves broken ones.
        let http = Client::builder().redirect(Policy::none()).no_proxy().pool_max_idle_per_host(0).timeout(PATIENCE);
        Self { http: http.build().unwrap(), urls, bkash, has_cache: false }
    }

    pub(super) fn with_cache(self) -> Self {
        Self { has_cache: true, ..self }
    }

    /// Begins a payment at the gateway. Afterwards the server has the gateway's token, of which there are two in an hour: servers
    /// that are killed while they ask for one would soon get none.
    pub(super) async fn warm_up(&self, merchant: Merchant) {
        let shop = Shop { street: self, merchant, actions: Mutex::default(), id: Mutex::default() };
        shop.create().await;
        let id = shop.id.lock().unwrap().clone().unwrap();
        shop.pay(&id).await;
    }

    /// Lets the clients of a merchant work. Returns what was asked and answered.
    pub(super) async fn play(&self, merchant: Merchant) -> Actions {
        let shop = Shop { street: self, merchant, actions: Mutex::default(), id: Mutex::default() };
        join_all((0..CLIENTS).map(|client| shop.client(client))).await;
        let mut actions = shop.actions.into_inner().unwrap();
        // A try that may still be under way ends after everything else.
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

    /// Whether a payment was refused a move because it is in another state.
    fn refuses(&self, from: &str, to: &str) -> bool {
        let message = format!("a payment that is {from} cannot become {to}");
        self.status == 409 && self.body["message"].as_str().unwrap().contains(&message)
    }
}

impl Shop<'_> {
    async fn client(&self, client: usize) {
        let mut last_read = State::Absent;
        for _ in 0..OPERATIONS {
            sleep(Duration::from_millis(fastrand::u64(..80))).await;
            let asked = self.record(client, Action::Call(Operation::Asked));
            let id = self.id.lock().unwrap().clone();
            let answered = match (fastrand::u32(..16), id) {
                (0..3, _) => self.create().await,
                (3, Some(id)) => self.pay(&id).await,
                (4..6, Some(id)) => self.refund(&id, client).await,
                (6..8, Some(_)) if self.street.has_cache => Operation::Read(last_read),
                (6..11, Some(id)) => Operation::Read(self.read(&id).await),
                _ => Operation::Read(self.list().await),
            };
            if let Operation::Read(state) = answered {
                last_read = state;
            }
            match answered {
                Operation::MayRefund { by } => self.leave_open(asked, by),
                answered => drop(self.record(client, Action::Response(answered))),
            }
        }
    }

    /// Returns the place of the action.
    fn record(&self, client: usize, action: Action<Operation>) -> usize {
        let mut actions = self.actions.lock().unwrap();
        actions.push((client, action));
        actions.len() - 1
    }

    /// Gives a call to a client of its own, which makes no other.
    fn leave_open(&self, asked: usize, by: usize) {
        let mut actions = self.actions.lock().unwrap();
        let last = actions.iter().map(|(client, _)| *client).max().unwrap_or_default();
        let round = last / CLIENTS + 1;
        actions[asked].0 = round * CLIENTS + by;
    }

    async fn create(&self) -> Operation {
        let request = |url: &str| {
            let request = self.street.http.post(format!("{url}/api/v1/payments")).bearer_auth(&self.merchant.key);
            request.header("idempotency-key", "order").json(&payment_of(&json!(100)))
        };
        let answer = self.street.insist(request).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        self.knows(&answer.body);
        Operation::Created(answer.keyed())
    }

    async fn read(&self, id: &str) -> State {
        let answer = self.street.insist(|url| self.get(url, &format!("/payments/{id}"))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        state_of(&answer.body)
    }

    async fn list(&self) -> State {
        let answer = self.street.insist(|url| self.get(url, "/payments?limit=2")).await;
        let items = answer.body["items"].as_array().unwrap();
        assert_eq!(answer.body["total"], items.len(), "{}", answer.body);
        items.first().map_or(State::Absent, |payment| {
            self.knows(payment);
            state_of(payment)
        })
    }

    /// Goes to the gateway, approves, and comes back, until the payment is paid.
    async fn pay(&self, id: &str) -> Operation {
        loop {
            let begin = |url: &str| self.street.http.post(format!("{url}/api/v1/checkout/{id}/pay"));
            let begun = self.street.insist(begin).await;
            if ["paid", "refunded"].iter().any(|status| begun.refuses(status, "processing")) {
                return Operation::Paid;
            }
            assert_eq!(begun.status, 200, "{}", begun.body);
            let attempt = begun.body["redirectUrl"].as_str().unwrap().rsplit('/').next().unwrap();
            // The gateway knows already that the payment is paid, if somebody else was faster.
            if let Some(back) = self.street.bkash.approve(attempt, WALLET) {
                let path = &back[back.find("/gateways").unwrap()..];
                let back = self.street.insist(|url| self.street.http.get(format!("{url}{path}"))).await;
                if back.location.contains("status=completed") {
                    return Operation::Paid;
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Refunds the payment. Each client has a key of its own and uses it again and again.
    async fn refund(&self, id: &str, by: usize) -> Operation {
        let request = |url: &str| {
            let request = self.street.http.post(format!("{url}/api/v1/payments/{id}/refund"));
            let request = request.bearer_auth(&self.merchant.key).header("idempotency-key", format!("refund-{by}"));
            request.json(&json!({"reason": by.to_string()}))
        };
        let answer = self.street.insist(request).await;
        if answer.status == 200 {
            assert_eq!(state_of(&answer.body), State::Refunded { by });
            return Operation::Refunded { by, keyed: answer.keyed() };
        }
        if answer.refuses("refunded", "refunded") {
            return Operation::NotRefunded { is_refunded: true };
        }
        let is_pending = ["created", "processing"].iter().any(|status| answer.refuses(status, "refunded"));
        assert!(is_pending, "{} {}", answer.status, answer.body);
        if answer.is_repeated { Operation::MayRefund { by } } else { Operation::NotRefunded { is_refunded: false } }
    }

    fn get(&self, url: &str, path: &str) -> RequestBuilder {
        self.street.http.get(format!("{url}/api/v1{path}")).bearer_auth(&self.merchant.key)
    }

    /// Remembers the payment's id. There is one payment.
    fn knows(&self, payment: &Value) {
        let id = payment["id"].as_str().unwrap();
        assert_eq!(self.id.lock().unwrap().get_or_insert_with(|| id.to_owned()), id, "a second payment");
    }
}

fn state_of(payment: &Value) -> State {
    match payment["status"].as_str().unwrap() {
        "pending" => State::Pending,
        "completed" => State::Completed,
        "refunded" => State::Refunded { by: payment["refund"]["reason"].as_str().unwrap().parse().unwrap() },
        status => panic!("{status}: {payment}"),
    }
}
