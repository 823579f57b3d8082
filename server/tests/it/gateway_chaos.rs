//! Live payments through each gateway while a third of all gateway calls fail, callbacks come twice, and the
//! server is killed several times. At the end the ledger equals the books of the gateways.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use gateway_fakes::{
    Entry, Fault, Running,
    bkash::{self, Bkash},
    stripe::{self, Stripe},
};
use payments_core::Amount;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::{engine::Engine, live::Live};

/// Payments per gateway: only a few, because simulated runs play thousands. Set PAYMENTS_CHAOS=1000 for a long run.
fn payments() -> usize {
    std::env::var("PAYMENTS_CHAOS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
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
    /// Approves and returns; the browser requests the return URL twice.
    Pays,
    /// Approves and closes the tab.
    ClosesTheTab,
    /// Cancels at the gateway.
    Cancels,
    /// Opens the gateway's page, then does nothing.
    Leaves,
    /// Has no money.
    CannotPay,
    /// Has no money, and tries again with another wallet or card.
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
    bkash: &'s Running<Bkash>,
    stripe: &'s Running<Stripe>,
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

    async fn play_customer(&self, number: usize, currency: &str) -> String {
        let customer = CUSTOMERS[number % CUSTOMERS.len()];
        let amount: f64 = format!("{}.{:02}", 5 + number % 90, number % 100).parse().unwrap();
        let body = json!({"amount": amount, "currency": currency, "success_url": "https://shop.example/paid",
            "cancel_url": "https://shop.example/cart"});
        let create = self.keyed(Method::POST, "/payments").header("idempotency-key", format!("{currency}-{number}"));
        let (status, payment) = self.retry(create.json(&body)).await;
        assert_eq!(status, 201, "{payment}");
        let id = payment["id"].as_str().unwrap().to_owned();
        let Some(attempt) = self.pay(&id).await else { return id };
        let attempt = &attempt;
        let back = match (currency, customer) {
            (_, Customer::Leaves) => None,
            ("BDT", Customer::TriesAgain) => self.bkash.program().approve(attempt, bkash::POOR_WALLET),
            (_, Customer::TriesAgain) => self.stripe.program().pay(attempt, stripe::SLOW_CARD),
            ("BDT", Customer::Cancels) => self.bkash.program().cancel(attempt),
            ("BDT", Customer::CannotPay) => self.bkash.program().approve(attempt, bkash::POOR_WALLET),
            ("BDT", _) => self.bkash.program().approve(attempt, bkash::WALLET),
            (_, Customer::Cancels) => Some(format!("{}/gateways/stripe/return/{id}?outcome=cancel", self.url)),
            (_, Customer::CannotPay) => self.stripe.program().pay(attempt, stripe::DECLINED_CARD),
            _ => self.stripe.program().pay(attempt, stripe::CARD),
        };
        if customer == Customer::TriesAgain {
            self.stripe.program().finish(attempt, false);
        }
        if let Some(back) = back.filter(|_| customer != Customer::ClosesTheTab) {
            self.come_back(&back).await;
        }
        if customer == Customer::TriesAgain {
            self.try_again(&id, attempt, currency).await;
        }
        id
    }

    /// Starts paying. Returns the gateway's id of the attempt, or `None` if the session ended before a gateway answered.
    async fn pay(&self, id: &str) -> Option<String> {
        let (status, paying) = self.retry(self.http.post(format!("{}/api/v1/checkout/{id}/pay", self.url))).await;
        if status == StatusCode::CONFLICT {
            return None;
        }
        assert_eq!(status, 200, "{paying}");
        paying["redirectUrl"].as_str().unwrap().rsplit('/').next().map(str::to_owned)
    }

    async fn come_back(&self, back: &str) {
        let (first, second) = tokio::join!(self.http.get(back).send(), self.http.get(back).send());
        for answer in [first, second].into_iter().flatten() {
            assert!(answer.status() == 303 || answer.status() == 503, "{}", answer.status());
        }
    }

    /// Pays with another wallet or card, once the server knows that the first attempt failed.
    async fn try_again(&self, id: &str, first: &str, currency: &str) {
        loop {
            match self.pay(id).await {
                Some(attempt) if attempt != first => {
                    self.tried_again.fetch_add(1, Ordering::Relaxed);
                    let back = match currency {
                        "BDT" => self.bkash.program().approve(&attempt, bkash::WALLET),
                        _ => self.stripe.program().pay(&attempt, stripe::CARD),
                    };
                    return self.come_back(&back.unwrap()).await;
                }
                Some(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                None => return,
            }
        }
    }

    async fn play_all(&self) {
        let both = stream::iter((0..self.payments).flat_map(|number| [(number, "BDT"), (number, "USD")]));
        both.for_each_concurrent(48, async |(number, currency)| {
            self.play_customer(number, currency).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_matches_the_gateways_after_random_faults_and_crashes() {
    play(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_matches_the_gateways_after_random_faults_and_crashes_on_postgresql() {
    play(Engine::Postgres).await;
}

async fn play(engine: Engine) {
    let settings = "gateway-timeout = 1\nsession-ttl = 60\nrate-limit = 0\nkeyless-rate-limit = 0";
    let mut live = Live::start_on(engine, settings, &[]).await;
    // bKash grants two tokens per hour, so token calls never fail here.
    live.bkash.faults().at_random(20, 1.0 / 3.0, &FAULTS, &["token"]);
    live.stripe.faults().at_random(21, 1.0 / 3.0, &FAULTS, &[]);
    let http = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let http = http.timeout(Duration::from_secs(30)).build().unwrap();
    let Live { server, bkash, stripe, key, .. } = &mut live;
    let shop = Shop {
        payments: payments(),
        http,
        url: server.url.clone(),
        key: key.clone(),
        bkash,
        stripe,
        tried_again: AtomicUsize::new(0),
    };
    let kills = async {
        for _ in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(1_700)).await;
            server.crash_and_restart();
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
    for (currency, books) in [("bdt", shop.bkash.program().books()), ("usd", shop.stripe.program().books())] {
        compare(&shop, currency, &books, &account).await;
    }
    // Customers with other wallets, and customers with other cards.
    let tried_again = shop.tried_again.load(Ordering::Relaxed);
    assert!(tried_again > shop.payments / 6, "only {tried_again} customers came to a second attempt");
    let (calls, faulty) = shop.bkash.faults().calls();
    assert!(faulty * 4 > calls, "{faulty} of {calls} calls failed");
    assert_eq!(live.server.run(&["reviews", "list"]), "");
    let log = live.server.log();
    let stays_due: Vec<&str> = log.lines().filter(|line| line.contains("a payment stays due")).collect();
    assert!(stays_due.is_empty(), "{stays_due:#?}");
}

/// The log lines about the payments of a page.
fn log_of(page: &Value, log: &str) -> String {
    let ids: Vec<&str> = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    log.lines().filter(|line| ids.iter().any(|id| line.contains(id))).collect::<Vec<_>>().join("\n")
}

/// Compares the gateway's books with the ledger: the same payments, the same totals.
async fn compare(shop: &Shop<'_>, currency: &str, books: &[Entry], account: &Value) {
    let taken: Vec<&Entry> = books.iter().filter(|entry| entry.taken > 0).collect();
    assert!(taken.iter().all(|entry| entry.taken == 1), "money was taken twice");
    assert!(taken.len() * 2 > shop.payments, "only {} of {} were paid in {currency}", taken.len(), shop.payments);
    // The reference is the payment's id. At bKash it has a suffix for the gateway attempt.
    let mut theirs: Vec<(&str, u64)> =
        taken.iter().map(|entry| (entry.reference.split('-').next().unwrap(), entry.amount_minor)).collect();
    let mut ours = Vec::new();
    let mut net = 0;
    for page in 1.. {
        let path = format!("/payments?status=completed&limit=100&page={page}");
        let (_, list) = shop.retry(shop.keyed(Method::GET, &path)).await;
        let items = list["items"].as_array().unwrap().clone();
        if items.is_empty() {
            break;
        }
        ours.extend(items);
    }
    let minor = |value: &Value| value.to_string().parse::<Amount>().unwrap().as_minor();
    let ours: Vec<Value> = ours
        .into_iter()
        .filter(|payment| payment["currency"].as_str().unwrap().eq_ignore_ascii_case(currency))
        .collect();
    let mut paid: Vec<(&str, u64)> = ours
        .iter()
        .map(|payment| {
            net += minor(&payment["netAmount"]);
            (payment["id"].as_str().unwrap(), minor(&payment["amount"]))
        })
        .collect();
    theirs.sort_unstable();
    paid.sort_unstable();
    assert_eq!(paid, theirs, "paid payments differ from the gateway's books, {currency}");
    let gross: u64 = theirs.iter().map(|(_, minor)| minor).sum();
    assert_eq!(minor(&account["volume"][currency]), gross, "volume, {currency}");
    assert_eq!(minor(&account["balance"][currency]), net, "balance, {currency}");
}
