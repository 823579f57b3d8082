//! Live payments through each gateway while a third of all gateway calls fail, customers come back twice, and the server is
//! killed several times. At the end the ledger equals the books of the gateways. No gateway is named here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use gateway_fakes::{Back, Does, Entry, Fake, Fault, Running};
use payments_core::Amount;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    market::{Market, order, return_by},
};

/// Payments per gateway: only a few, because simulated runs play thousands. Set PAYMENTS_CHAOS=1000 for a long run.
fn payments() -> usize {
    std::env::var("PAYMENTS_CHAOS").ok().and_then(|text| text.parse().ok()).unwrap_or(72)
}

const KILLS: u32 = 2;
const FAULTS: [Fault; 8] = [
    Fault::HangAfter,
    Fault::HangBefore,
    Fault::DropAfter,
    Fault::DropBefore,
    Fault::ErrorAfter,
    Fault::ErrorBefore,
    Fault::Empty,
    Fault::Truncated,
];

/// What the customer of a payment does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Customer {
    /// Pays and returns; the browser requests the return URL twice.
    Pays,
    /// Pays and closes the tab.
    ClosesTheTab,
    /// Cancels at the gateway.
    Cancels,
    /// Opens the gateway's page, then does nothing.
    Leaves,
    /// Has no money.
    CannotPay,
    /// Has no money, and tries again with other money.
    TriesAgain,
}

const CUSTOMERS: [Customer; 12] = {
    use Customer::{Cancels, CannotPay, ClosesTheTab, Leaves, Pays, TriesAgain};
    [Pays, TriesAgain, ClosesTheTab, Pays, Cancels, Pays, ClosesTheTab, TriesAgain, Leaves, Pays, CannotPay, Pays]
};

/// A merchant's shop and its customers, who retry while the server is down.
struct Shop<'s> {
    payments: usize,
    http: Client,
    url: String,
    key: String,
    fakes: &'s [Running<dyn Fake>],
    /// How many customers began a second attempt.
    tried_again: AtomicUsize,
}

impl Shop<'_> {
    fn keyed(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(&self.key)
    }

    /// Sends a request until it gets a response other than a server error.
    async fn retry(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let begun = Instant::now();
        loop {
            if let Ok(answer) = request.try_clone().unwrap().send().await {
                let status = answer.status();
                if let Ok(text) = answer.text().await
                    && !status.is_server_error()
                {
                    return (status, serde_json::from_str(&text).unwrap_or_default());
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "no response for two minutes");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates a payment at a gateway. Returns its id.
    async fn create(&self, number: usize, gateway: &dyn Fake) -> String {
        let name = gateway.name();
        let amount: f64 = format!("{}.{:02}", 10 + number % 90, number % 100).parse().unwrap();
        let body = order(&json!({"amount": amount, "currency": gateway.currency(), "ways": [name],
            "metadata": {"gateway": name}}));
        let create = self.keyed(Method::POST, "/payments").header("idempotency-key", format!("{name}-{number}"));
        let (status, payment) = self.retry(create.json(&body)).await;
        assert_eq!(status, 201, "{payment}");
        payment["id"].as_str().unwrap().to_owned()
    }

    async fn play_customer(&self, number: usize, fake: &Running<dyn Fake>) {
        let (customer, gateway) = (CUSTOMERS[number % CUSTOMERS.len()], fake.program());
        let id = &*self.create(number, &**gateway).await;
        let Some(page) = self.pay(id).await else { return };
        let does = match customer {
            Customer::Leaves => return,
            Customer::Pays | Customer::ClosesTheTab => Does::Pays,
            Customer::Cancels => Does::Cancels,
            Customer::CannotPay | Customer::TriesAgain => Does::HasNoMoney,
        };
        let back = gateway.visit(&page, does);
        match (customer, back) {
            (Customer::ClosesTheTab, _) => {}
            (Customer::TriesAgain, Some(back)) => {
                self.come_back(&back).await;
                self.try_again(id, &page, gateway).await;
            }
            // The gateway lets its customers try again on the same page.
            (Customer::TriesAgain, None) => {
                if let Some(back) = gateway.visit(&page, Does::Pays) {
                    self.come_back(&back).await;
                }
            }
            (_, Some(back)) => self.come_back(&back).await,
            (_, None) => {}
        }
        if customer == Customer::Pays && number.is_multiple_of(3) {
            self.refund(id).await;
        }
    }

    /// Starts paying. Returns the gateway's page, or `None` if the session ended before a gateway answered.
    async fn pay(&self, id: &str) -> Option<String> {
        let (status, paying) = self.retry(self.http.post(format!("{}/api/v1/checkout/{id}/pay", self.url))).await;
        if status == StatusCode::CONFLICT {
            return None;
        }
        assert_eq!(status, 200, "{paying}");
        paying["redirectUrl"].as_str().map(str::to_owned)
    }

    async fn come_back(&self, back: &Back) {
        let (first, second) = tokio::join!(return_by(&self.http, back).send(), return_by(&self.http, back).send());
        for answer in [first, second].into_iter().flatten() {
            assert!(answer.status() == 303 || answer.status() == 503, "{}", answer.status());
        }
    }

    /// Pays with other money, once the server knows that the first attempt failed.
    async fn try_again(&self, id: &str, first: &str, gateway: &Arc<dyn Fake>) {
        loop {
            match self.pay(id).await {
                Some(page) if page != first => {
                    self.tried_again.fetch_add(1, Ordering::Relaxed);
                    if let Some(back) = gateway.visit(&page, Does::Pays) {
                        self.come_back(&back).await;
                    }
                    return;
                }
                Some(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                None => return,
            }
        }
    }

    /// Refunds half of a payment, if it is paid, until the server says how that ended.
    async fn refund(&self, id: &str) {
        for _ in 0..120 {
            let (_, payment) = self.retry(self.keyed(Method::GET, &format!("/payments/{id}"))).await;
            if payment["status"] != "pending" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let refund = self.keyed(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", id);
        let refund = refund.json(&json!({"amount": 4.5}));
        for _ in 0..360 {
            let (status, answer) = self.retry(refund.try_clone().unwrap()).await;
            match (status, answer["code"].as_str()) {
                (StatusCode::CONFLICT, Some("refund_in_progress" | "idempotency_key_in_progress")) => {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                // Nobody paid it.
                (StatusCode::OK | StatusCode::CONFLICT, _) => return,
                _ => panic!("{status}: {answer}"),
            }
        }
        panic!("the refund of {id} goes on for three minutes");
    }

    async fn play_all(&self) {
        let all = (0..self.payments).flat_map(|number| self.fakes.iter().map(move |fake| (number, fake)));
        stream::iter(all).for_each_concurrent(48, async |(number, fake)| self.play_customer(number, fake).await).await;
    }

    /// All items of a list of payments.
    async fn listed(&self, query: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for page in 1.. {
            let (_, list) =
                self.retry(self.keyed(Method::GET, &format!("/payments?{query}&limit=100&page={page}"))).await;
            let items = list["items"].as_array().unwrap().clone();
            if items.is_empty() {
                break;
            }
            found.extend(items);
        }
        found
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_matches_the_gateways_after_random_faults_and_crashes() {
    play(Engine::Directory, gateway_fakes::all()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_matches_the_gateways_in_their_newest_versions_on_postgresql() {
    play(Engine::Postgres, gateway_fakes::newest()).await;
}

async fn play(engine: Engine, gateways: Vec<Arc<dyn Fake>>) {
    let settings = "session-ttl = 60\nrate-limit = 0\nkeyless-rate-limit = 0";
    let mut market = Market::open(engine, gateways, settings).await;
    let http = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let http = http.timeout(Duration::from_secs(30)).build().unwrap();
    let Market { server, fakes, key, .. } = &mut market;
    let (url, key, tried_again) = (server.url.clone(), key.clone(), AtomicUsize::new(0));
    let shop = Shop { payments: payments(), http, url, key, fakes, tried_again };
    // A gateway may grant its token so rarely that a lost one would keep everybody from paying.
    for fake in fakes.iter() {
        shop.pay(&shop.create(shop.payments, &**fake.program()).await).await.unwrap();
    }
    for (seed, fake) in (20..).zip(fakes.iter()) {
        fake.faults().at_random(seed, 1.0 / 3.0, &FAULTS, fake.program().spared());
    }
    let impatient = [("PAYMENTS_GATEWAY_TIMEOUT", "1")];
    server.restart_in(&impatient);
    let kills = async {
        for _ in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(1_700)).await;
            server.restart_in(&impatient);
        }
    };
    let begun = Instant::now();
    tokio::join!(shop.play_all(), kills);
    eprintln!("shop {:?}", begun.elapsed());

    // The reconciler finishes the remaining payments, while faults go on.
    let begun = Instant::now();
    loop {
        let (_, open) = shop.retry(shop.keyed(Method::GET, "/payments?status=pending&limit=10")).await;
        if open["total"] == 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "pending: {open:#}\n{}", log_of(&open, &server.log()));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    eprintln!("reconciled {:?} after the last customer", begun.elapsed());

    let (_, account) = shop.retry(shop.keyed(Method::GET, "/account")).await;
    let payments = shop.listed("").await;
    let mut volume = std::collections::BTreeMap::new();
    for fake in fakes.iter() {
        *volume.entry(fake.program().currency()).or_insert(0) += compare(&shop, &**fake.program(), &payments);
        let (calls, faulty) = fake.faults().calls();
        assert!(faulty * 5 > calls, "{faulty} of {calls} calls of {} failed", fake.program().name());
    }
    for (currency, minor) in volume {
        assert_eq!(minor_of(&account["volume"][currency.to_ascii_lowercase()]), minor, "volume, {currency}");
    }
    compare_events(&shop, &payments).await;
    let tried_again = shop.tried_again.load(Ordering::Relaxed);
    assert!(tried_again > shop.payments / 6, "only {tried_again} customers came to a second attempt");
    assert_eq!(market.server.run(&["reviews", "list"]), "");
    let log = market.server.log();
    let stays_due: Vec<&str> = log.lines().filter(|line| line.contains("a payment stays due")).collect();
    assert!(stays_due.is_empty(), "{stays_due:#?}");
}

/// The log lines about the payments of a page.
fn log_of(page: &Value, log: &str) -> String {
    let ids: Vec<&str> = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    log.lines().filter(|line| ids.iter().any(|id| line.contains(id))).collect::<Vec<_>>().join("\n")
}

fn minor_of(value: &Value) -> u64 {
    value.to_string().parse::<Amount>().unwrap().as_minor()
}

fn was_paid(payment: &&Value) -> bool {
    !payment["paid_at"].is_null()
}

/// Compares a gateway's books with our payments: the same amounts were taken, each once, and as much was sent back as we
/// refunded there. Returns the sum of what was taken.
fn compare(shop: &Shop<'_>, fake: &dyn Fake, payments: &[Value]) -> u64 {
    let (name, books) = (fake.name(), fake.books());
    let taken: Vec<&Entry> = books.iter().filter(|entry| entry.taken > 0).collect();
    assert!(taken.iter().all(|entry| entry.taken == 1 && entry.refunded <= 1), "money moved twice at {name}");
    assert!(taken.len() * 2 > shop.payments, "only {} of {} were paid at {name}", taken.len(), shop.payments);
    let ours: Vec<&Value> = payments.iter().filter(|it| it["metadata"]["gateway"] == name).filter(was_paid).collect();
    let mut theirs: Vec<u64> = taken.iter().map(|entry| entry.amount_minor).collect();
    let mut paid: Vec<u64> = ours.iter().map(|payment| minor_of(&payment["amount"])).collect();
    theirs.sort_unstable();
    paid.sort_unstable();
    assert_eq!(paid, theirs, "paid payments differ from the books of {name}");
    let refunds = || ours.iter().flat_map(|payment| payment["refunds"].as_array().into_iter().flatten());
    let sum = |by_hand: bool| -> u64 {
        let counts = |it: &&Value| by_hand || it["requiresManualSettlement"] == false;
        refunds().filter(|it| it["status"] != "failed").filter(counts).map(|it| minor_of(&it["amount"])).sum()
    };
    let sent_back: u64 = books.iter().map(|entry| entry.refunded_minor).sum();
    // A refund whose answer was lost may wait for a person, who finds at the gateway whether it was made.
    assert!((sum(false)..=sum(true)).contains(&sent_back), "{name} sent back {sent_back}, not {}", sum(false));
    assert!(refunds().count() > shop.payments / 24, "only {} refunds at {name}", refunds().count());
    theirs.iter().sum()
}

/// Each payment that was paid has one event that says so, and each refund another.
async fn compare_events(shop: &Shop<'_>, payments: &[Value]) {
    let (mut completed, mut refunded, mut after) = (Vec::new(), 0, String::new());
    loop {
        let (_, page) = shop.retry(shop.keyed(Method::GET, &format!("/events?limit=100{after}"))).await;
        let items = page["items"].as_array().unwrap();
        let Some(last) = items.last() else { break };
        after = format!("&after={}", last["id"].as_str().unwrap());
        let of = |kind: &str| {
            items.iter().filter(|it| it["event"] == kind).map(|it| it["data"]["id"].clone()).collect::<Vec<_>>()
        };
        completed.extend(of("payment.completed"));
        refunded += of("payment.refunded").len() + of("payment.partially_refunded").len();
    }
    let paid: Vec<_> = payments.iter().filter(was_paid).collect();
    let count = completed.len();
    completed.sort_unstable_by_key(ToString::to_string);
    completed.dedup();
    assert_eq!((completed.len(), count), (paid.len(), paid.len()), "events of paid payments");
    let refunds = paid.iter().filter_map(|payment| payment["refunds"].as_array()).flatten().count();
    assert!(refunded >= refunds, "{refunded} events of {refunds} refunds");
}
