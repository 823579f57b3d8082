//! Random sequences of what merchants and customers do, with restarts and crashes in between, against a model: a few
//! vectors in memory that say what every answer must be, and at the end what the whole store must hold.
//!
//! Each sequence has a server of its own, with two merchants: one with a test key, and one with a live key, whose
//! gateways are fakes on this machine. A sequence that fails is made as short as it can be and printed.
//! `MODEL_CASES` says how many sequences there are, 24 unless given.

use std::{
    collections::BTreeMap,
    env, fmt, thread,
    time::{Duration, Instant},
};

use gateway_fakes::{bkash, stripe};
use proptest::{
    option,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::sleep_until};

use crate::{
    live::Live,
    receiver::{Manner, Receiver},
    server::{SANDBOX_KEY, eventually},
};

/// A session that ends within this time is waited for, so that no request is under way while one ends.
const MARGIN: Duration = Duration::from_secs(2);
/// Nobody listens there.
const DEAD: &str = "http://127.0.0.1:9/hook";
/// What a server logs that finds its store as a crash leaves it.
const MENDED: &str = "the server did not shut down cleanly";
const STATUSES: [&str; 6] = ["pending", "completed", "failed", "cancelled", "refunded", "expired"];

/// Whose key a step is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Test,
    Live,
}

/// What is done. A payment or an endpoint is told by its place, counted on from the first again where there are fewer.
#[derive(Debug, Clone)]
enum Operation {
    Create { amount: String, currency: &'static str, key: Option<&'static str> },
    Replay { place: usize },
    Simulate { payment: usize, outcome: &'static str },
    Pay { payment: usize, outcome: &'static str },
    Refund { payment: usize, reason: Option<&'static str>, key: Option<&'static str> },
    Read { payment: usize },
    List { status: Option<&'static str>, page: usize, limit: usize },
    Account,
    Subscribe { events: &'static [&'static str], is_dead: bool, key: Option<&'static str> },
    Unsubscribe { endpoint: usize },
    Ping { endpoint: usize, key: Option<&'static str> },
    Endpoints,
    Deliveries { endpoint: Option<usize>, page: usize, limit: usize },
    Restart,
    Crash,
    LetSessionsEnd,
}

type Step = (Who, Operation);

struct Steps(Vec<Step>);

/// A line a step, for whoever has to read what failed.
impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "\n{step:?}"))
    }
}

/// What fails only at times may not fail again while it is made shorter, so whatever failed is printed.
impl Drop for Steps {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("these steps failed:{self:?}");
        }
    }
}

fn steps(sessions_end: bool) -> impl Strategy<Value = Steps> {
    let by = |who| operations(who, sessions_end).prop_map(move |operation| (who, operation));
    prop::collection::vec(prop_oneof![by(Who::Test), by(Who::Live)], 1..=60).prop_map(Steps)
}

fn operations(who: Who, sessions_end: bool) -> impl Strategy<Value = Operation> {
    // Few keys, so that they are used again, with the same request and with others.
    let key = || option::weighted(0.7, select(&["a", "b", "c"][..]));
    let outcome = || prop_oneof![3 => Just("paid"), 1 => Just("failed"), 1 => Just("cancelled")];
    let amount = prop_oneof![
        8 => "[1-9][0-9]{0,4}(\\.[0-9]{1,2})?",
        1 => "0(\\.[0-9]{1,2})?",
        1 => "[1-9][0-9]{11}\\.[0-9]{2}",
    ];
    let events = select(vec![&["*"][..], &["payment.created"], &["payment.completed", "payment.refunded"]]);
    // What each does mostly; the rest is refused.
    let (simulate, pay, refund) = if who == Who::Test { (5, 2, 1) } else { (1, 6, 6) };
    let operation = prop_oneof![
        7 => (amount, select(&["BDT", "USD"][..]), key())
            .prop_map(|(amount, currency, key)| Operation::Create { amount, currency, key }),
        2 => (0..9_usize).prop_map(|place| Operation::Replay { place }),
        simulate => (0..9_usize, outcome()).prop_map(|(payment, outcome)| Operation::Simulate { payment, outcome }),
        pay => (0..9_usize, outcome()).prop_map(|(payment, outcome)| Operation::Pay { payment, outcome }),
        refund => (0..9_usize, option::of(Just("damaged")), key())
            .prop_map(|(payment, reason, key)| Operation::Refund { payment, reason, key }),
        2 => (0..9_usize).prop_map(|payment| Operation::Read { payment }),
        2 => (option::of(select(&STATUSES[..])), 1..4_usize, prop_oneof![1..5_usize, 1..=100_usize])
            .prop_map(|(status, page, limit)| Operation::List { status, page, limit }),
        1 => Just(Operation::Account),
        2 => (events, any::<bool>(), key())
            .prop_map(|(events, is_dead, key)| Operation::Subscribe { events, is_dead, key }),
        1 => (0..4_usize).prop_map(|endpoint| Operation::Unsubscribe { endpoint }),
        1 => (0..4_usize, key()).prop_map(|(endpoint, key)| Operation::Ping { endpoint, key }),
        1 => Just(Operation::Endpoints),
        1 => (option::of(0..4_usize), 1..4_usize, 1..5_usize)
            .prop_map(|(endpoint, page, limit)| Operation::Deliveries { endpoint, page, limit }),
        1 => Just(Operation::Restart),
        1 => Just(Operation::Crash),
    ];
    if sessions_end {
        prop_oneof![30 => operation, 1 => Just(Operation::LetSessionsEnd)].boxed()
    } else {
        operation.boxed()
    }
}

/// A payment as it must be.
struct Payment {
    id: String,
    who: Who,
    minor: u64,
    currency: &'static str,
    raw: &'static str,
    method: Option<&'static str>,
    /// What the API last told, which must not change unless the payment does.
    text: String,
    /// Its session ends between these.
    ends: (Instant, Instant),
}

struct Endpoint {
    id: String,
    text: String,
    secret: String,
    events: &'static [&'static str],
    is_dead: bool,
    is_removed: bool,
}

/// An event that an endpoint gets.
struct Owed {
    endpoint: String,
    event: &'static str,
    data: Value,
}

/// A success under an idempotency key.
struct Kept {
    path: String,
    key: &'static str,
    body: String,
    status: StatusCode,
    text: String,
}

/// What a merchant must find, everything in the order in which it was made.
struct Merchant {
    key: String,
    payments: Vec<Payment>,
    endpoints: Vec<Endpoint>,
    owed: Vec<Owed>,
    kept: Vec<Kept>,
}

struct Told {
    status: StatusCode,
    is_replayed: bool,
    text: String,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A refusal, with this in its message.
    fn is_refused(&self, status: u16, why: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["statusCode"], status);
        assert!(body["message"].to_string().contains(why), "{why:?} is not in {}", self.text);
    }
}

/// So many minor units as the API writes them.
fn money(minor: u64) -> Value {
    let text = format!("{}.{:02}", minor / 100, minor % 100);
    serde_json::from_str(text.trim_end_matches('0').trim_end_matches('.')).unwrap()
}

/// The minor units of a plain decimal.
fn minor_units(amount: &str) -> u64 {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{whole}{fraction:0<2}").parse().unwrap()
}

/// 5 percent, half a minor unit rounded up.
fn fee(minor: u64) -> u64 {
    (minor + 10) / 20
}

fn public(raw: &'static str) -> &'static str {
    match raw {
        "created" => "pending",
        "paid" => "completed",
        raw => raw,
    }
}

/// The place that a step tells of, if there is any.
fn place_in<T>(all: &[T], place: usize) -> Option<usize> {
    place.checked_rem(all.len())
}

fn page_of<'a, T>(all: impl DoubleEndedIterator<Item = &'a T>, page: usize, limit: usize) -> Vec<&'a T> {
    all.rev().skip((page - 1) * limit).take(limit).collect()
}

impl Payment {
    fn net(&self) -> u64 {
        self.minor - fee(self.minor)
    }

    fn is_open(&self) -> bool {
        self.raw == "created"
    }

    /// Whether it is shown as it must be.
    fn agrees_with(&self, text: &str) {
        let told: Value = serde_json::from_str(text).unwrap();
        let environment = if self.who == Who::Live { "live" } else { "test" };
        let expected = json!({
            "id": self.id, "amount": money(self.minor), "currency": self.currency,
            "status": public(self.raw), "rawStatus": self.raw,
            "environment": environment, "isSimulated": self.who == Who::Test, "paymentMethod": self.method,
            "platformFeeAmount": money(fee(self.minor)), "platform_fee": money(fee(self.minor)), "feePercentage": 5,
            "netAmount": money(self.net()), "net_amount": money(self.net()),
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&told[name], value, "{name} in {text}");
        }
        assert_eq!(told["paid_at"].is_string(), matches!(self.raw, "paid" | "refunded"), "paid_at in {text}");
        assert_eq!(told["refund"].is_object(), self.raw == "refunded", "refund in {text}");
        if self.raw == "refunded" {
            assert_eq!(told["refund"]["amount"], money(self.minor));
            assert_eq!(told["refund"]["requiresManualSettlement"], self.currency == "BDT");
        }
    }
}

/// The server and the model of it.
struct World {
    live: Live,
    receiver: Receiver,
    http: reqwest::Client,
    /// How long a session lives.
    life: Duration,
    merchants: [Merchant; 2],
}

impl World {
    async fn new(life: Duration) -> Self {
        let live = Live::start_with("", &["--session-ttl", &life.as_secs().to_string()]).await;
        let merchant = |key: &str| Merchant {
            key: key.to_owned(),
            payments: Vec::new(),
            endpoints: Vec::new(),
            owed: Vec::new(),
            kept: Vec::new(),
        };
        let merchants = [merchant(SANDBOX_KEY), merchant(&live.key)];
        // A connection that is kept would not survive the server.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let receiver = Receiver::start(Manner::Answer(StatusCode::OK, String::new())).await;
        Self { live, receiver, http, life, merchants }
    }

    fn of(&self, who: Who) -> &Merchant {
        &self.merchants[who as usize]
    }

    fn of_mut(&mut self, who: Who) -> &mut Merchant {
        &mut self.merchants[who as usize]
    }

    async fn step(&mut self, (who, operation): &Step) {
        let who = *who;
        self.let_sessions_end(Instant::now() + MARGIN).await;
        match operation {
            Operation::Create { amount, currency, key } => self.create(who, amount, currency, *key).await,
            Operation::Replay { place } => {
                let kept = &self.of(who).kept;
                let Some(place) = place_in(kept, *place) else { return };
                let Kept { path, key, body, .. } = &kept[place];
                let (path, key, body) = (path.clone(), *key, body.clone());
                assert!(self.post(who, &path, Some(key), &body).await.is_none());
            }
            Operation::Simulate { payment, outcome } => {
                let body = json!({"action": match *outcome {
                    "paid" => "success",
                    "failed" => "fail",
                    _ => "cancel",
                }});
                self.simulate(who, *payment, "simulate", &body, outcome).await;
            }
            Operation::Pay { payment, outcome } if who == Who::Live => self.pay(*payment, outcome).await,
            Operation::Pay { payment, .. } => self.simulate(who, *payment, "pay", &json!({}), "paid").await,
            Operation::Refund { payment, reason, key } => self.refund(who, *payment, *reason, *key).await,
            Operation::Read { payment } => {
                if let Some(place) = place_in(&self.of(who).payments, *payment) {
                    self.read(who, place).await;
                }
            }
            Operation::List { status, page, limit } => self.list(who, *status, *page, *limit).await,
            Operation::Account => self.account(who).await,
            Operation::Subscribe { events, is_dead, key } => self.subscribe(who, events, *is_dead, *key).await,
            Operation::Unsubscribe { endpoint } => self.unsubscribe(who, *endpoint).await,
            Operation::Ping { endpoint, key } => self.ping(who, *endpoint, *key).await,
            Operation::Endpoints => self.endpoints(who).await,
            Operation::Deliveries { endpoint, page, limit } => {
                let endpoints = &self.of(who).endpoints;
                let endpoint = endpoint.and_then(|endpoint| place_in(endpoints, endpoint));
                self.deliveries(who, endpoint, *page, *limit).await;
            }
            Operation::Restart => {
                assert!(self.live.server.terminate().success());
                let crashes = self.live.server.log().matches(MENDED).count();
                self.live.server.restart();
                assert_eq!(
                    self.live.server.log().matches(MENDED).count(),
                    crashes,
                    "an end in order leaves all in order"
                );
            }
            Operation::Crash => self.live.server.crash_and_restart(),
            Operation::LetSessionsEnd => self.let_sessions_end(Instant::now() + self.life).await,
        }
    }

    /// A request below `/api/v1`: by the customer, who has no key, to the checkout, else by the merchant.
    async fn ask(&self, who: Who, method: Method, path: &str, key: Option<&str>, body: Option<&str>) -> Told {
        let mut request = self.http.request(method, format!("{}/api/v1{path}", self.live.server.url));
        if !path.starts_with("/checkout/") {
            request = request.bearer_auth(&self.of(who).key);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        let answer = request.send().await.unwrap();
        let is_replayed = answer.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
        Told { status: answer.status(), is_replayed, text: answer.text().await.unwrap() }
    }

    async fn get(&self, who: Who, path: &str) -> Told {
        self.ask(who, Method::GET, path, None, None).await
    }

    /// A POST by the merchant. What it must be answered with is decided here if its key was used before; then there is
    /// `None`, since it must have no effect.
    async fn post(&mut self, who: Who, path: &str, key: Option<&'static str>, body: &str) -> Option<Told> {
        let told = self.ask(who, Method::POST, path, key, Some(body)).await;
        let kept = self.of(who).kept.iter().find(|kept| Some(kept.key) == key && kept.path == path);
        match (kept, key) {
            (Some(kept), _) if kept.body == body => {
                assert_eq!((told.status, told.is_replayed, &told.text), (kept.status, true, &kept.text));
                return None;
            }
            (Some(_), _) => {
                told.is_refused(422, "Idempotency-Key");
                return None;
            }
            (None, Some(key)) if told.status.is_success() => {
                let (path, body, text) = (path.to_owned(), body.to_owned(), told.text.clone());
                self.of_mut(who).kept.push(Kept { path, key, body, status: told.status, text });
            }
            (None, _) => {}
        }
        assert!(!told.is_replayed, "{path} was not asked before");
        Some(told)
    }

    async fn create(&mut self, who: Who, amount: &str, currency: &'static str, key: Option<&'static str>) {
        let body = format!(
            r#"{{"amount":{amount},"currency":"{currency}","success_url":"https://shop.example/paid","cancel_url":"https://shop.example/cart"}}"#
        );
        let begun = Instant::now();
        let Some(told) = self.post(who, "/payments", key, &body).await else { return };
        let minor = minor_units(amount);
        if minor == 0 {
            return told.is_refused(400, "amount must be a positive number");
        }
        assert_eq!(told.status, StatusCode::CREATED, "{}", told.text);
        let payment = Payment {
            id: told.json()["id"].as_str().unwrap().to_owned(),
            who,
            minor,
            currency,
            raw: "created",
            method: None,
            ends: (begun + self.life, Instant::now() + self.life),
            text: told.text.clone(),
        };
        payment.agrees_with(&told.text);
        self.of_mut(who).payments.push(payment);
        self.owe(who, "payment.created", &told.json());
    }

    /// From now on the endpoints that want it are owed this event.
    fn owe(&mut self, who: Who, event: &'static str, data: &Value) {
        let Merchant { endpoints, owed, .. } = self.of_mut(who);
        let wanting = endpoints.iter().filter(|endpoint| {
            !endpoint.is_removed && endpoint.events.iter().any(|wanted| ["*", event].contains(wanted))
        });
        owed.extend(wanting.map(|endpoint| Owed { endpoint: endpoint.id.clone(), event, data: data.clone() }));
    }

    /// A payment has moved: the API must show it so from now on.
    async fn moved(&mut self, who: Who, place: usize, raw: &'static str) {
        let told = self.get(who, &format!("/payments/{}", self.of(who).payments[place].id)).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        let payment = &mut self.of_mut(who).payments[place];
        (payment.raw, payment.text) = (raw, told.text.clone());
        payment.agrees_with(&told.text);
        if raw == "paid" {
            self.owe(who, "payment.completed", &told.json());
        }
    }

    /// The customer of a test session ends it, by `simulate` or by `pay`.
    async fn simulate(&mut self, who: Who, place: usize, verb: &str, body: &Value, outcome: &'static str) {
        let Some(place) = place_in(&self.of(who).payments, place) else { return };
        let Payment { id, raw, .. } = &self.of(who).payments[place];
        let (id, raw) = (id.clone(), *raw);
        let path = format!("/checkout/{id}/{verb}");
        let told = self.ask(who, Method::POST, &path, None, Some(&body.to_string())).await;
        if who == Who::Live {
            return told.is_refused(403, "a live payment cannot be simulated");
        }
        if raw != "created" {
            return told.is_refused(409, &format!("a payment that is {raw} cannot become {outcome}"));
        }
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        let page = if outcome == "paid" { "paid" } else { "cart" };
        let redirect = format!("https://shop.example/{page}?payment_id={id}&status={}", public(outcome));
        let expected = json!({"status": outcome, "redirectUrl": redirect, "success": outcome == "paid"});
        assert_eq!(told.json(), expected);
        if outcome == "paid" {
            self.of_mut(who).payments[place].method = Some("test");
        }
        self.moved(who, place, outcome).await;
    }

    /// The customer of a live session goes to the gateway, ends it there, and comes back.
    async fn pay(&mut self, place: usize, outcome: &'static str) {
        let Some(place) = place_in(&self.of(Who::Live).payments, place) else { return };
        let Payment { id, raw, currency, minor, .. } = &self.of(Who::Live).payments[place];
        let (id, raw, currency, minor) = (id.clone(), *raw, *currency, *minor);
        if raw != "created" {
            let told = self.ask(Who::Live, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
            return told.is_refused(409, &format!("a payment that is {raw} cannot become processing"));
        }
        if !(100..10_000_000).contains(&minor) {
            // The processor takes neither very little nor very much.
            return;
        }
        let (_, attempt) = self.live.pay(&id).await;
        let cancelled = format!("{}/gateways/stripe/return/{id}?outcome=cancel", self.live.server.url);
        let (bkash, stripe) = (self.live.bkash.program(), self.live.stripe.program());
        let (back, method, raw) = match (currency, outcome) {
            ("BDT", "paid") => (bkash.approve(&attempt, bkash::WALLET), "mfs", outcome),
            ("BDT", "failed") => (bkash.approve(&attempt, bkash::POOR_WALLET), "mfs", outcome),
            ("BDT", _) => (bkash.cancel(&attempt), "mfs", outcome),
            (_, "paid") => (stripe.pay(&attempt, stripe::CARD), "card", outcome),
            // Whose card is declined is asked for another one, and can only give up.
            (_, _) => (Some(cancelled), "card", "cancelled"),
        };
        self.live.come_back(&back.unwrap()).await;
        self.of_mut(Who::Live).payments[place].method = Some(method);
        self.moved(Who::Live, place, raw).await;
    }

    async fn refund(&mut self, who: Who, place: usize, reason: Option<&str>, key: Option<&'static str>) {
        let Some(place) = place_in(&self.of(who).payments, place) else { return };
        let Payment { id, raw, .. } = &self.of(who).payments[place];
        let (path, raw) = (format!("/payments/{id}/refund"), *raw);
        let body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
        let Some(told) = self.post(who, &path, key, &body.to_string()).await else { return };
        if who == Who::Test {
            return told.is_refused(409, "a test payment cannot become refunded");
        }
        if raw != "paid" {
            return told.is_refused(409, &format!("a payment that is {raw} cannot become refunded"));
        }
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        self.moved(who, place, "refunded").await;
        assert_eq!(told.text, self.of(who).payments[place].text);
        let mut data = told.json();
        assert_eq!(data["refund"]["reason"], json!(reason));
        data["refund_reason"] = json!(reason);
        self.owe(who, "payment.refunded", &data);
    }

    /// Nobody has moved this payment, and nobody else sees it.
    async fn read(&self, who: Who, place: usize) {
        let path = format!("/payments/{}", self.of(who).payments[place].id);
        let told = self.get(who, &path).await;
        assert_eq!((told.status, &told.text), (StatusCode::OK, &self.of(who).payments[place].text));
        let stranger = if who == Who::Live { Who::Test } else { Who::Live };
        self.get(stranger, &path).await.is_refused(404, "payment");
    }

    async fn list(&self, who: Who, status: Option<&str>, page: usize, limit: usize) {
        let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
        let told = self.get(who, &format!("/payments?page={page}&limit={limit}{filter}")).await;
        let payments = self.of(who).payments.iter();
        let listed: Vec<_> =
            payments.filter(|payment| status.is_none_or(|status| status == public(payment.raw))).collect();
        let items: Vec<&str> = page_of(listed.iter(), page, limit).iter().map(|payment| &*payment.text).collect();
        let (items, total) = (items.join(","), listed.len());
        let expected = format!(r#"{{"items":[{items}],"total":{total},"page":{page},"limit":{limit}}}"#);
        assert_eq!((told.status, told.text), (StatusCode::OK, expected));
    }

    async fn account(&self, who: Who) {
        let account = self.get(who, "/account").await.json();
        let balances = self.get(who, "/account/balance").await.json();
        let sum = |currency, raws: &[&str], part: fn(&Payment) -> u64| {
            let payments = self.of(who).payments.iter();
            let summed = payments.filter(|payment| payment.currency == currency && raws.contains(&payment.raw));
            (money(summed.clone().map(part).sum()), summed.count())
        };
        let (bdt, usd) = (sum("BDT", &["paid"], Payment::net).0, sum("USD", &["paid"], Payment::net).0);
        let ever = |currency| sum(currency, &["paid", "refunded"], |payment| payment.minor);
        let ((bdt_volume, bdt_count), (usd_volume, usd_count)) = (ever("BDT"), ever("USD"));
        assert_eq!(account["balance"], json!({"bdt": bdt, "usd": usd, "bdt_balance": bdt, "usd_balance": usd}));
        assert_eq!(balances, json!({"bdt_balance": bdt, "usd_balance": usd}));
        let volume = json!({"bdt": bdt_volume, "usd": usd_volume, "total_payments": bdt_count + usd_count});
        assert_eq!(account["volume"], volume);
    }

    async fn subscribe(&mut self, who: Who, events: &'static [&'static str], is_dead: bool, key: Option<&'static str>) {
        let url = if is_dead { DEAD.to_owned() } else { self.receiver.url() };
        let body = json!({"url": url, "events": events}).to_string();
        let Some(told) = self.post(who, "/webhooks", key, &body).await else { return };
        assert_eq!(told.status, StatusCode::CREATED, "{}", told.text);
        let endpoint = told.json();
        assert_eq!((&endpoint["url"], &endpoint["events"]), (&json!(url), &json!(events)));
        let text = |name: &str| endpoint[name].as_str().unwrap().to_owned();
        let (id, secret) = (text("id"), text("secret"));
        self.of_mut(who).endpoints.push(Endpoint { id, text: told.text, secret, events, is_dead, is_removed: false });
    }

    async fn unsubscribe(&mut self, who: Who, place: usize) {
        let Some(place) = place_in(&self.of(who).endpoints, place) else { return };
        let path = format!("/webhooks/{}", self.of(who).endpoints[place].id);
        let told = self.ask(who, Method::DELETE, &path, None, None).await;
        if std::mem::replace(&mut self.of_mut(who).endpoints[place].is_removed, true) {
            return told.is_refused(404, "webhook endpoint");
        }
        assert_eq!(told.json(), json!({"success": true, "message": "Webhook endpoint removed"}));
    }

    async fn ping(&mut self, who: Who, place: usize, key: Option<&'static str>) {
        let Some(place) = place_in(&self.of(who).endpoints, place) else { return };
        let Endpoint { id, is_dead, is_removed, .. } = &self.of(who).endpoints[place];
        let (id, is_dead, is_removed) = (id.clone(), *is_dead, *is_removed);
        let Some(told) = self.post(who, &format!("/webhooks/{id}/test"), key, "{}").await else { return };
        if is_removed {
            return told.is_refused(404, "webhook endpoint");
        }
        let delivery = told.json();
        let status = if is_dead { "failed" } else { "success" };
        assert_eq!((&delivery["event"], &delivery["status"]), (&json!("test.ping"), &json!(status)));
        let data = delivery["payload"]["data"].clone();
        self.of_mut(who).owed.push(Owed { endpoint: id, event: "test.ping", data });
    }

    async fn endpoints(&self, who: Who) {
        let told = self.get(who, "/webhooks").await;
        let endpoints = self.of(who).endpoints.iter().filter(|endpoint| !endpoint.is_removed);
        // By their ids, which are those of time; two of one millisecond come in either order.
        let texts: BTreeMap<_, _> = endpoints.map(|endpoint| (&endpoint.id, &*endpoint.text)).collect();
        let expected = format!("[{}]", texts.into_values().collect::<Vec<_>>().join(","));
        assert_eq!((told.status, told.text), (StatusCode::OK, expected));
    }

    /// Looks at a page of the deliveries, and returns it.
    async fn deliveries(&self, who: Who, endpoint: Option<usize>, page: usize, limit: usize) -> Vec<Value> {
        let endpoint = endpoint.map(|place| &self.of(who).endpoints[place]);
        let endpoint = endpoint.map(|endpoint| (endpoint.id.clone(), endpoint.is_removed));
        let filter = endpoint.as_ref().map(|(id, _)| format!("&webhookId={id}")).unwrap_or_default();
        let told = self.get(who, &format!("/webhooks/deliveries?page={page}&limit={limit}{filter}")).await;
        if endpoint.as_ref().is_some_and(|(_, is_removed)| *is_removed) {
            told.is_refused(404, "webhook endpoint");
            return Vec::new();
        }
        let owed = self.of(who).owed.iter();
        let listed: Vec<_> = owed.filter(|owed| endpoint.as_ref().is_none_or(|(id, _)| *id == owed.endpoint)).collect();
        let mut answer = told.json();
        assert_eq!(answer["total"], listed.len(), "{}", told.text);
        let expected = page_of(listed.iter(), page, limit);
        let expected: Vec<_> =
            expected.iter().map(|owed| (json!(owed.endpoint), json!(owed.event), &owed.data)).collect();
        let Value::Array(items) = answer["items"].take() else { panic!("{}", told.text) };
        let found =
            items.iter().map(|item| (item["webhookId"].clone(), item["event"].clone(), &item["payload"]["data"]));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        items
    }

    /// Waits for the end of every open session that ends by this time.
    async fn let_sessions_end(&mut self, by: Instant) {
        loop {
            let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
            let ending =
                payments.filter(|payment| payment.is_open() && payment.ends.0 <= by.max(Instant::now() + MARGIN));
            let Some(over) = ending.map(|payment| payment.ends.1).max() else { return };
            sleep_until(over.into()).await;
            for who in [Who::Test, Who::Live] {
                for place in 0..self.of(who).payments.len() {
                    let payment = &self.of(who).payments[place];
                    if payment.is_open() && payment.ends.1 <= over {
                        self.expire(who, place).await;
                    }
                }
            }
        }
    }

    /// A session whose life is over cannot be paid from that moment on, and soon the payment says so.
    async fn expire(&mut self, who: Who, place: usize) {
        let id = self.of(who).payments[place].id.clone();
        let told = self.ask(who, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
        told.is_refused(409, "a payment that is expired cannot become");
        assert_eq!(self.get(who, &format!("/checkout/{id}")).await.json()["isExpired"], true);
        let path = format!("/payments/{id}");
        let is_swept = async || (self.get(who, &path).await.json()["rawStatus"] == "expired").then_some(());
        eventually("a session to be ended", is_swept).await;
        self.moved(who, place, "expired").await;
    }

    /// Everything that can be read says what the model says.
    async fn agrees(mut self) {
        if self.life < Duration::from_secs(3600) {
            self.let_sessions_end(Instant::now() + self.life).await;
        }
        for who in [Who::Test, Who::Live] {
            for place in 0..self.of(who).payments.len() {
                self.read(who, place).await;
            }
            for status in [None].into_iter().chain(STATUSES.map(Some)) {
                let count = self.of(who).payments.len();
                for limit in [3, 100] {
                    for page in 1..=count / limit + 2 {
                        self.list(who, status, page, limit).await;
                    }
                }
            }
            self.account(who).await;
            self.endpoints(who).await;
            self.every_delivery(who).await;
            for place in 0..self.of(who).kept.len() {
                self.step(&(who, Operation::Replay { place })).await;
            }
        }
        self.money_moved_once();
        // Without the server, so that it reads the store itself. When the server is dropped the store is checked.
        assert!(self.live.server.terminate().success());
        let exported = self.live.administer(&["export", "payments"]);
        let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
        let expected: BTreeMap<_, _> = payments.map(|payment| (&*payment.id, &*payment.text)).collect();
        assert_eq!(exported.lines().collect::<Vec<_>>(), expected.into_values().collect::<Vec<_>>());
    }

    /// The gateways took money for what is paid and for nothing else, and gave back what they are to give back.
    fn money_moved_once(&self) {
        let books = [self.live.bkash.program().books(), self.live.stripe.program().books()].concat();
        for payment in &self.of(Who::Live).payments {
            let entry = books.iter().find(|entry| entry.reference.starts_with(&payment.id));
            let moved = entry.map_or((0, 0), |entry| (entry.taken, entry.refunded));
            let by_processor = payment.raw == "refunded" && payment.currency == "USD";
            let was_paid = matches!(payment.raw, "paid" | "refunded");
            assert_eq!(moved, (was_paid.into(), by_processor.into()), "{}", payment.text);
        }
    }

    /// Every page of the deliveries.
    async fn all_deliveries(&self, who: Who, endpoint: Option<usize>) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let items = self.deliveries(who, endpoint, page, 7).await;
            if items.is_empty() {
                break;
            }
            all.extend(items);
        }
        all
    }

    /// Every delivery comes to its end, is listed, and has arrived where somebody listens.
    async fn every_delivery(&self, who: Who) {
        eventually("every delivery to be made", async || {
            let all = self.all_deliveries(who, None).await;
            all.iter().all(|delivery| delivery["status"] != "pending").then_some(())
        })
        .await;
        let received = self.receiver.received();
        for (place, endpoint) in self.of(who).endpoints.iter().enumerate() {
            for delivery in self.all_deliveries(who, Some(place)).await {
                assert_eq!(delivery["status"], if endpoint.is_dead { "failed" } else { "success" }, "{delivery}");
                let id = delivery["id"].as_str().unwrap();
                let arrived = received.iter().find(|received| received.headers["x-service-delivery"] == *id);
                assert_eq!(arrived.is_none(), endpoint.is_dead, "{delivery}");
                if let Some(arrived) = arrived {
                    assert!(arrived.verified_with_any_age(&endpoint.secret));
                    assert_eq!(serde_json::from_slice::<Value>(&arrived.body).unwrap(), delivery["payload"]);
                }
            }
        }
    }
}

/// Follows random sequences on servers whose sessions live so long.
fn follow(cases: u32, life: Duration, steps: impl Strategy<Value = Steps>) {
    let runtime = Runtime::new().unwrap();
    let config = Config { cases, max_shrink_time: 180_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let mut world = World::new(life).await;
            for step in &steps.0 {
                world.step(step).await;
            }
            world.agrees().await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn cases() -> u32 {
    env::var("MODEL_CASES").map_or(24, |text| text.parse().expect("MODEL_CASES is a number"))
}

#[test]
fn every_answer_and_the_whole_store_are_as_a_model_says_whatever_is_done() {
    follow(cases(), Duration::from_secs(3600), steps(false));
}

#[test]
fn every_answer_and_the_whole_store_are_as_a_model_says_where_sessions_end_unpaid() {
    // Fewer, since time must pass in each.
    follow(cases().div_ceil(8), Duration::from_secs(4), steps(true));
}
