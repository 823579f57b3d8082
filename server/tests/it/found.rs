//! Payments found by data that a shop has: the order's number, the customer, the time.

use std::time::Duration;

use futures_util::{TryStreamExt, future::join_all};
use payments_client::{
    CreatePayment, Currency, Customer, ErrorCode, Money, Payment, PaymentId, PaymentPage, Request, SimulateOutcome,
    Status,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{engine::Engine, server::Server};

fn cup() -> CreatePayment {
    CreatePayment::of(Money::taka(750)).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart")
}

fn of_customer(email: &str, phone: &str) -> CreatePayment {
    cup().customer(Customer { email: Some(email.into()), phone: Some(phone.into()), ..Customer::default() })
}

fn in_dollars(mut params: CreatePayment) -> CreatePayment {
    params.currency = Currency::Usd;
    params
}

async fn create(server: &Server, params: CreatePayment) -> Payment {
    // Create each in another millisecond, so that the order of the list is known.
    sleep(Duration::from_millis(3)).await;
    server.client().payments().create(params).await.unwrap()
}

fn ids<'p>(payments: impl IntoIterator<Item = &'p Payment>) -> Vec<PaymentId> {
    payments.into_iter().map(|payment| payment.id.clone()).collect()
}

async fn found(request: Request<PaymentPage<Payment>>) -> Vec<PaymentId> {
    ids(&request.stream().try_collect::<Vec<_>>().await.unwrap())
}

async fn payments_are_found_by_what_a_shop_knows_of_them(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let first =
        create(&server, of_customer("Asha@Shop.example", "+880 1712-345678").merchant_transaction_id("A-17")).await;
    let second = create(&server, in_dollars(of_customer("asha@shop.example", "01999999999"))).await;
    let third =
        create(&server, of_customer("rafi@shop.example", "8801712345678").merchant_transaction_id("A-17")).await;
    let fourth = create(&server, cup().merchant_transaction_id(second.id.as_str())).await;
    let client = server.client();
    client.checkout().simulate(&third.id, SimulateOutcome::Completed).await.unwrap();
    server.crash_and_restart();

    let client = server.client();
    let list = || client.payments().list();
    assert_eq!(found(list().merchant_transaction_id("A-17")).await, ids([&third, &first]));
    assert_eq!(found(list().customer_email("ASHA@shop.example")).await, ids([&second, &first]));
    for form in ["01712345678", "+8801712345678", "8801712345678", "01712-345678", "০১৭১২৩৪৫৬৭৮"]
    {
        assert_eq!(found(list().customer_phone(form)).await, ids([&third, &first]), "{form}");
    }
    assert_eq!(found(list().currency(Currency::Usd)).await, ids([&second]));
    assert_eq!(found(list().customer_phone("01712345678").status(Status::Completed)).await, ids([&third]));
    let both = list().customer_phone("01712345678").customer_email("rafi@shop.example").currency(Currency::Bdt);
    assert_eq!(found(both).await, ids([&third]));
    assert_eq!(found(list().customer_email("rafi@shop.example").currency(Currency::Usd)).await, []);
    // The reference of a payment without a reference is its id.
    let by_id = list().merchant_transaction_id(second.id.as_str());
    assert_eq!(found(by_id).await, ids([&fourth, &second]));
    let in_parts = list().merchant_transaction_id(second.id.as_str()).limit(1);
    assert_eq!(found(in_parts).await, ids([&fourth, &second]));
    assert_eq!(found(list().merchant_transaction_id(first.id.as_str())).await, []);
    let between = list().created_after(second.created_at).created_before(fourth.created_at);
    assert_eq!(found(between).await, ids([&third, &second]));
    let since = list().created_after(third.created_at).customer_phone("01712345678");
    assert_eq!(found(since).await, ids([&third]));
    assert_eq!(found(list().created_before(first.created_at)).await, []);

    let part = list().after(&third.id).limit(1).await.unwrap();
    assert_eq!((ids(&part.items), part.total, part.goes_on()), (ids([&second]), None, true));
    let rest = list().after(&part.next.unwrap()).await.unwrap();
    assert_eq!((ids(&rest.items), rest.goes_on(), &rest.next), (ids([&first]), false, &Some(first.id.clone())));
    let text = server.get(&format!("/payments?after={}", first.id)).await;
    let expected = json!({"items": [], "total": null, "page": 1, "limit": 20, "hasMore": false, "next": first.id});
    assert_eq!(text, expected);
    // A page with only a status filter is unchanged.
    let page = server.get("/payments?status=completed").await;
    let names: Vec<_> = page.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, &page["total"]), (vec!["items", "total", "page", "limit"], &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_are_found_by_the_shops_data_on_a_directory() {
    payments_are_found_by_what_a_shop_knows_of_them(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_are_found_by_the_shops_data_on_postgresql() {
    payments_are_found_by_what_a_shop_knows_of_them(Engine::Postgres).await;
}

/// A request whose filter matches nothing ends after 1,000 payments, and says where the next one begins.
async fn a_request_looks_at_a_thousand_payments_and_a_stream_at_all(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let dollars = create(&server, in_dollars(cup())).await;
    let client = server.client();
    for _ in 0..11 {
        let all = join_all((0..100).map(|_| client.payments().create(cup()).send())).await;
        assert!(all.iter().all(Result::is_ok));
    }
    let part = client.payments().list().currency(Currency::Usd).await.unwrap();
    assert_eq!((part.items.len(), part.total, part.goes_on()), (0, None, true));
    let rest = client.payments().list().currency(Currency::Usd).after(&part.next.unwrap()).await.unwrap();
    assert_eq!((ids(&rest.items), rest.goes_on()), (ids([&dollars]), false));
    assert_eq!(found(client.payments().list().currency(Currency::Usd)).await, ids([&dollars]));

    // Payments arrive during the reading of the list.
    let arriving = tokio::spawn({
        let client = client.clone();
        async move { join_all((0..200).map(|_| client.payments().create(cup()).send())).await }
    });
    let mut listed = found(client.payments().list().limit(7)).await;
    arriving.await.unwrap();
    let all = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(all, listed.len(), "a payment is listed twice");
    let before = found(client.payments().list().created_before(dollars.created_at.plus_seconds(3600))).await;
    assert_eq!(before.len(), 1301);
    assert!(all >= 1101);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_examines_a_thousand_payments_and_a_stream_all_on_a_directory() {
    a_request_looks_at_a_thousand_payments_and_a_stream_at_all(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_examines_a_thousand_payments_and_a_stream_all_on_postgresql() {
    a_request_looks_at_a_thousand_payments_and_a_stream_at_all(Engine::Postgres).await;
}

async fn of_payments_with_one_unique_reference_one_is_created(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let client = server.client();
    let order = || client.payments().create(cup().unique_merchant_transaction_id("order-1017")).send();
    let outcomes = join_all((0..20).map(|_| order())).await;
    let (made, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (1, 19));
    for error in refused {
        let error = error.unwrap_err();
        assert_eq!((error.status(), error.code()), (Some(409), Some(&ErrorCode::MerchantTransactionIdUsed)));
    }
    let first = made.into_iter().next().unwrap().unwrap();
    // The id of a payment without a reference also counts as a reference.
    let plain = create(&server, cup()).await;
    let of_id = cup().unique_merchant_transaction_id(plain.id.as_str());
    let error = server.client().payments().create(of_id).await.unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::MerchantTransactionIdUsed));
    server.crash_and_restart();
    let client = server.client();
    let error = client.payments().create(cup().unique_merchant_transaction_id("order-1017")).await.unwrap_err();
    assert_eq!(error.status(), Some(409));
    // A payment that need not be unique may repeat a reference, and the other environment has its own references.
    create(&server, cup().merchant_transaction_id("order-1017")).await;
    assert_eq!(found(client.payments().list().merchant_transaction_id("order-1017")).await.len(), 2);
    let body = json!({"amount": 1, "success_url": "https://shop.example/", "cancel_url": "https://shop.example/",
        "merchantTransactionId": "order-1017", "merchantTransactionIdMustBeUnique": true});
    let other = server.new_key("Other shop", "test");
    for (key, expected) in [("k-1", StatusCode::CREATED), ("k-1", StatusCode::CREATED), ("k-2", StatusCode::CONFLICT)] {
        let request = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&other).json(&body);
        let answer = request.header("idempotency-key", key).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{key}");
    }
    assert_eq!(first.merchant_transaction_id, "order-1017");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_payment_with_a_unique_reference_is_created_on_a_directory() {
    of_payments_with_one_unique_reference_one_is_created(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_payment_with_a_unique_reference_is_created_on_postgresql() {
    of_payments_with_one_unique_reference_one_is_created(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_wrong_filters_and_payments_of_others_are_not_found() {
    let server = Server::start();
    let payment = create(&server, of_customer("asha@shop.example", "01712345678")).await;
    let other = server.new_key("Other shop", "test");
    for (query, code, word) in [
        (format!("after={}", payment.id), "field_invalid", "after"),
        ("currency=EUR".to_owned(), "currency_invalid", "currency"),
        ("createdBefore=today".to_owned(), "field_invalid", "createdBefore"),
        ("customerPhone=".to_owned(), "field_invalid", "customerPhone"),
        ("currency=BDT&page=2".to_owned(), "field_invalid", "page"),
    ] {
        let request = server.keyless(Method::GET, &format!("/api/v1/payments?{query}")).bearer_auth(&other);
        let answer = request.send().await.unwrap();
        let (found, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!((found, &body["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{query}");
        assert!(body["message"].to_string().contains(word), "{body}");
    }
    let reference = format!("merchantTransactionId={}", payment.id);
    for query in ["customerEmail=asha@shop.example", "customerPhone=01712345678", "customerPhone=-", &reference] {
        let request = server.keyless(Method::GET, &format!("/api/v1/payments?{query}")).bearer_auth(&other);
        let body: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!((&body["items"], &body["hasMore"]), (&json!([]), &json!(false)), "{query}");
    }
}
