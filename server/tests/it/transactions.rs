//! The account's transactions, which a bookkeeper reconciles.

use std::time::Duration;

use futures_util::{TryStreamExt, future::join_all};
use payments_client::{Client, Currency, SimulateOutcome, Transaction, TransactionKind};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    engine::Engine,
    live::Live,
    server::{Server, payment_of},
};

async fn all(client: &Client) -> Vec<Transaction> {
    client.account().stream_transactions(None).try_collect().await.unwrap()
}

/// Waits, because a database shows a transaction only when its own earlier transactions have ended.
async fn all_once_there_are(client: &Client, expected: usize) -> Vec<Transaction> {
    let listed = async {
        loop {
            let found = all(client).await;
            if found.len() >= expected {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), listed).await.unwrap()
}

/// Each transaction's kind, amount, currency and balance.
fn read(transactions: &[Transaction]) -> Vec<(String, String, Currency, String)> {
    let one = |it: &Transaction| (it.kind.to_string(), it.amount.to_string(), it.currency, it.balance.to_string());
    transactions.iter().map(one).collect()
}

async fn each_posting_is_listed_with_the_balance_after_it(engine: Engine) {
    let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
    let client = Client::builder(live.key.as_str()).base_url(&live.server.url).build().unwrap();
    assert_eq!(all(&client).await, []);
    let cup = live.paid(12.5, "USD").await;
    live.create(99.0, "USD").await;
    let tea = live.paid(750.0, "BDT").await;
    let refund = |amount: f64, key: &'static str| {
        let request = live.request(Method::POST, &format!("/payments/{cup}/refund")).header("idempotency-key", key);
        request.json(&json!({"amount": amount, "reason": "=1+1"})).send()
    };
    assert_eq!(refund(2.5, "part").await.unwrap().status(), StatusCode::OK);
    assert_eq!(refund(10.0, "rest").await.unwrap().status(), StatusCode::OK);

    let found = all_once_there_are(&client, 8).await;
    let (usd, bdt) = (Currency::Usd, Currency::Bdt);
    // The fee is 5 percent: 0.63 of 12.50, of which 0.13 belongs to a refund of 2.50.
    let expected = [
        ("fee_returned", "0.5", usd, "0"),
        ("refund", "-10", usd, "-0.5"),
        ("fee_returned", "0.13", usd, "9.5"),
        ("refund", "-2.5", usd, "9.37"),
        ("fee", "-37.5", bdt, "712.5"),
        ("payment", "750", bdt, "750"),
        ("fee", "-0.63", usd, "11.87"),
        ("payment", "12.5", usd, "12.5"),
    ];
    let expected =
        expected.map(|(kind, amount, currency, balance)| (kind.into(), amount.into(), currency, balance.into()));
    assert_eq!(read(&found), expected);
    let payments: Vec<_> = found.iter().map(|it| it.payment_id.as_ref().unwrap().as_str()).collect();
    let [cup, tea] = [cup.as_str(), tea.as_str()];
    assert_eq!(payments, [cup, cup, cup, cup, tea, tea, cup, cup]);
    assert!(found.is_sorted_by(|later, earlier| later.created_at >= earlier.created_at));
    let balances = client.account().balance().await.unwrap();
    assert_eq!((balances.usd_balance, balances.bdt_balance), (found[0].balance, found[4].balance));

    live.server.crash_and_restart();
    assert_eq!(all(&client).await, found);
    let list = || client.account().transactions();
    assert_eq!(list().currency(bdt).await.unwrap().items, found[4..6]);
    let since = found[3].created_at;
    assert_eq!(list().created_after(since).await.unwrap().items, found[..4]);
    assert_eq!(list().created_before(since).await.unwrap().items, found[4..]);
    let part = list().limit(3).await.unwrap();
    assert_eq!((&part.items[..], part.has_more, part.next.as_ref()), (&found[..3], true, Some(&found[2].id)));
    assert_eq!(list().after(&found[2].id).await.unwrap().items, found[3..]);
    let end = list().after(&found[7].id).await.unwrap();
    assert_eq!((end.items, end.has_more, end.next), (vec![], false, Some(found[7].id.clone())));

    let table = live.request(Method::GET, "/account/transactions.csv?currency=BDT").send().await.unwrap();
    assert_eq!(table.headers()["content-type"], "text/csv; charset=utf-8");
    assert_eq!(table.headers().get("x-next-after"), None);
    let row =
        |it: &Transaction| format!("{},{},{tea},{},{},BDT,{},\n", it.id, it.created_at, it.kind, it.amount, it.balance);
    let rows =
        "id,createdAt,paymentId,kind,amount,currency,balance,payoutId\n".to_owned() + &row(&found[4]) + &row(&found[5]);
    assert_eq!(table.text().await.unwrap(), rows);
    let table = live.request(Method::GET, "/account/transactions.csv?limit=2").send().await.unwrap();
    assert_eq!(table.headers()["x-next-after"], found[1].id.as_str());
    assert_eq!(table.text().await.unwrap().lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_posting_is_listed_with_the_balance_after_it_on_a_directory() {
    each_posting_is_listed_with_the_balance_after_it(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_posting_is_listed_with_the_balance_after_it_on_postgresql() {
    each_posting_is_listed_with_the_balance_after_it(Engine::Postgres).await;
}

/// Payments complete while readers read the list.
async fn balances_stay_exact_while_postings_arrive(engine: Engine) {
    const PAYMENTS: usize = 60;
    let server = Server::start_on(engine, &[]);
    let client = server.client();
    let paying = tokio::spawn(async move {
        let pay = async |nth: usize| {
            let body = payment_of(&json!(1 + nth));
            let created = server.create(&body).await;
            let id = created["id"].as_str().unwrap().parse().unwrap();
            server.client().checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap();
        };
        join_all((0..PAYMENTS).map(pay)).await;
        server
    });
    while !paying.is_finished() {
        expect_exact(&all(&client).await);
    }
    let server = paying.await.unwrap();
    let found = all_once_there_are(&client, 2 * PAYMENTS).await;
    expect_exact(&found);
    assert_eq!(found.len(), 2 * PAYMENTS);
    assert_eq!(found.iter().filter(|it| it.kind == TransactionKind::Payment).count(), PAYMENTS);
    assert_eq!(found[0].balance, client.account().balance().await.unwrap().bdt_balance);
    drop(server);
}

/// Asserts that each balance is the previous balance plus the amount, and that the list ends with the first transaction.
fn expect_exact(newest_first: &[Transaction]) {
    let mut balance = 0;
    for it in newest_first.iter().rev() {
        balance += it.amount.as_minor();
        assert_eq!(it.balance.as_minor(), balance, "{it:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_stay_exact_while_postings_arrive_on_a_directory() {
    balances_stay_exact_while_postings_arrive(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_stay_exact_while_postings_arrive_on_postgresql() {
    balances_stay_exact_while_postings_arrive(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_others_are_not_found_and_errors_name_wrong_parameters() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(750))).await;
    let id = payment["id"].as_str().unwrap().parse().unwrap();
    server.client().checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap();
    let transaction = all(&server.client()).await.remove(0);
    let other = server.new_key("Other shop", "test");
    let get = |path: &str| server.keyless(Method::GET, &format!("/api/v1/account/{path}")).bearer_auth(&other).send();
    for (path, code, field) in [
        (format!("transactions?after={}", transaction.id), "field_invalid", "after"),
        ("transactions?after=pay_1".to_owned(), "field_invalid", "after"),
        ("transactions?currency=EUR".to_owned(), "currency_invalid", "currency"),
        ("transactions?createdBefore=today".to_owned(), "field_invalid", "createdBefore"),
        ("transactions?limit=101".to_owned(), "field_invalid", "limit"),
        ("transactions.csv?limit=10001".to_owned(), "field_invalid", "limit"),
    ] {
        let answer = get(&path).await.unwrap();
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{path}");
        assert_eq!(body["fields"][0]["field"], field, "{path}");
    }
    let none = get("transactions").await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(none, json!({"items": [], "hasMore": false, "next": null}));
}
