//! End to end: a merchant creates a payment, a customer pays it on the checkout page, and the merchant's endpoint verifies
//! signed webhooks. All of it survives a crash after any step.

use payments_client::{
    CreatePayment, CreateWebhook, Customer, EventKind, IdempotencyKey, Metadata, Money, RawStatus, Status, Subscription,
};
use reqwest::{Method, StatusCode};

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually},
};

/// The number of steps. A crash can come after each.
const STEPS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn a_first_payment_works_end_to_end() {
    play(Engine::Directory, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_payment_works_end_to_end_on_postgresql() {
    play(Engine::Postgres, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_payment_survives_a_crash_after_each_step() {
    for step in 1..=STEPS {
        play(Engine::Directory, Some(step)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_payment_survives_a_crash_after_each_step_on_postgresql() {
    for step in 1..=STEPS {
        play(Engine::Postgres, Some(step)).await;
    }
}

async fn play(engine: Engine, crash_after: Option<usize>) {
    let mut server = Server::start_on(engine, &[]);
    let client = server.client();
    let receiver = Receiver::start(Reply::Status(StatusCode::OK, "thanks".into())).await;
    let mut step = 0;
    let mut next = |server: &mut Server| {
        step += 1;
        if crash_after == Some(step) {
            server.crash_and_restart();
        }
    };

    // 1. The merchant subscribes an endpoint.
    let subscription = CreateWebhook::new(receiver.url(), Subscription::All);
    let endpoint = client.webhooks().create(subscription).await.unwrap();
    let secret = endpoint.secret.reveal();
    next(&mut server);

    // 2. The merchant creates a payment.
    let metadata = r#"{"order":"A-17", "big":123456789012345678901234567890,"rate":1.10}"#;
    let params = CreatePayment::of(Money::paisa(125_050))
        .success_url("https://shop.example/paid?a=1")
        .cancel_url("https://shop.example/cart")
        .description("Two <b>cups</b>")
        .customer(Customer { name: Some("আশা".into()), ..Customer::default() })
        .metadata(Metadata::new(metadata).unwrap());
    let key = IdempotencyKey::try_from("order-A-17").unwrap();
    let created = client.payments().create(params.clone()).idempotency_key(key.clone()).await.unwrap();
    assert_eq!((created.status.clone(), created.raw_status.clone()), (Status::Pending, RawStatus::Created));
    assert_eq!(created.metadata.as_str(), metadata);
    assert_eq!(created.platform_fee_amount.to_string(), "62.53");
    assert_eq!(created.net_amount.to_string(), "1187.97");
    next(&mut server);

    // 3. The merchant repeats the request with the same key: still one payment.
    let again = client.payments().create(params).idempotency_key(key).await.unwrap();
    assert_eq!(again, created);
    assert_eq!(client.payments().list().await.unwrap().total, Some(1));
    next(&mut server);

    // 4. The customer opens the checkout page.
    let path = created.checkout_url.strip_prefix(&server.url).unwrap().to_owned();
    let page = server.keyless(Method::GET, &path).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("৳1,250.50") && page.contains("Two &#60;b&#62;cups&#60;/b&#62;"), "{page}");
    next(&mut server);

    // 5. The customer pays and gets a link back to the shop.
    let form = [("action", "success")];
    let answer = server.keyless(Method::POST, &path).header("content-type", "application/x-www-form-urlencoded");
    let answer = answer.body(format!("{}={}", form[0].0, form[0].1)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let on = answer.headers()["location"].to_str().unwrap().to_owned();
    let page = server.keyless(Method::GET, &on).send().await.unwrap().text().await.unwrap();
    let back = format!("https://shop.example/paid?a=1&#38;payment_id={}&#38;status=completed", created.id);
    assert!(page.contains(&format!("href=\"{back}\"")), "{page}");
    next(&mut server);

    // 6. The merchant's endpoint received both events, with the same bytes as the API returns.
    let both = eventually("both events", || async {
        let events: Vec<_> = receiver.received().iter().map(|received| received.verified_with(secret)).collect();
        let of = |kind| events.iter().find(|event| event.kind() == &kind).cloned();
        Some((of(EventKind::PaymentCreated)?, of(EventKind::PaymentCompleted)?))
    });
    let (payment_created, payment_completed) = both.await;
    assert_eq!(payment_created.payment().unwrap(), created);
    let paid = server.request(Method::GET, &format!("/payments/{}", created.id)).send().await.unwrap();
    assert_eq!(payment_completed.data().as_str(), paid.text().await.unwrap());
    next(&mut server);

    // All of it is still there.
    let paid = client.payments().retrieve(&created.id).await.unwrap();
    assert_eq!((&paid.status, &paid.raw_status), (&Status::Completed, &RawStatus::Paid));
    assert!(paid.paid_at.is_some());
    assert_eq!(paid.metadata.as_str(), metadata);
    let completed = client.payments().list().status(Status::Completed).await.unwrap();
    assert_eq!((completed.total, &completed.items[..]), (Some(1), &[paid][..]));
    assert_eq!(client.payments().list().status(Status::Pending).await.unwrap().total, Some(0));
    assert_eq!(client.webhooks().list().await.unwrap(), [endpoint]);
    for delivery in server.ended_deliveries(2).await {
        assert_eq!(delivery["responseStatus"], 200);
        assert_eq!(delivery["statusCode"], 200);
        assert_eq!(delivery["responseBody"], "thanks");
        assert_eq!(delivery["status"], "success");
    }
    assert!(server.terminate().success());
}
