//! Calls each method against the real server.

use payments_client::{
    CreateDemoSession, CreatePayment, CreateWebhook, DeliveryStatus, Environment, ErrorBody, ErrorCode, IdempotencyKey,
    KeyHeader, LineItem, Method, Money, Pay, PayResult, Payment, PaymentId, RawStatus, Retries, RotateSecret,
    SimulateOutcome, Status, Subscription, UpdateWebhook, VerifySignature,
};

use crate::server::Server;

fn cup() -> CreatePayment {
    CreatePayment::of(Money::taka(750)).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart")
}

#[tokio::test]
async fn the_client_creates_retrieves_and_lists_a_payment_and_cannot_refund_it() {
    let server = Server::start();
    let client = server.client();
    assert_eq!(client.environment(), Environment::Test);
    let key = IdempotencyKey::try_from("order-1").unwrap();
    let first = client.payments().create(cup()).idempotency_key(key.clone()).send_for_response().await.unwrap();
    assert_eq!((first.status, first.tries, first.is_replayed()), (201, 1, false));
    assert!(first.request_id().is_some());
    assert_eq!(first.idempotency_key, Some(key.clone()));
    let again = client.payments().create(cup()).idempotency_key(key).send_for_response().await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.value, first.value);

    let id = &first.value.id;
    assert_eq!(client.payments().retrieve(id).await.unwrap(), first.value);
    let page = client.payments().list().status(Status::Pending).page(1).limit(5).await.unwrap();
    assert_eq!((page.total, page.limit, &page.items[0].id), (Some(1), 5, id));

    let refused = client.payments().refund(id, Some("broken")).await.unwrap_err();
    assert!(refused.is_conflict() && !refused.is_retryable(), "{refused:?}");
    assert_eq!((refused.code(), refused.fields()), (Some(&ErrorCode::PaymentNotRefundable), &[][..]));
    assert_eq!((refused.tries(), refused.messages().len()), (1, 1));
    assert!(refused.idempotency_key().is_some() && refused.request_id().is_some());

    let unknown: PaymentId = "pay_none".parse().unwrap();
    assert!(client.payments().retrieve(&unknown).await.unwrap_err().is_not_found());
    let free = CreatePayment::of(Money::paisa(1)).success_url("no address").cancel_url("nor this");
    let invalid = client.payments().create(free).await.unwrap_err();
    assert!(invalid.is_validation());
    assert_eq!(invalid.messages().len(), 2, "{invalid:?}");
    assert_eq!(invalid.code(), Some(&ErrorCode::UrlInvalid));
    let fields: Vec<_> = invalid.fields().iter().map(|field| (&*field.field, &field.code)).collect();
    assert_eq!(fields, [("success_url", &ErrorCode::UrlInvalid), ("cancel_url", &ErrorCode::UrlInvalid)]);
}

#[tokio::test]
async fn an_orders_lines_are_returned_as_sent() {
    let server = Server::start();
    let client = server.client();
    let lines =
        [LineItem::new("Lemon tea").quantity(2).amount(Money::taka(700).amount), LineItem::new("A cup to keep")];
    let payment = client.payments().create(cup().line_items(lines.clone())).await.unwrap();
    assert_eq!(payment.line_items.as_deref(), Some(&lines[..]));
    assert_eq!(client.payments().retrieve(&payment.id).await.unwrap(), payment);
    let nameless = client.payments().create(cup().line_items([LineItem::new("")])).await.unwrap_err();
    assert_eq!(nameless.fields()[0].field, "lineItems[0].name", "{nameless:?}");
}

#[tokio::test]
async fn the_client_retrieves_the_account() {
    let server = Server::start();
    let client = server.client();
    let payment = client.payments().create(cup()).await.unwrap();
    client.checkout().simulate(&payment.id, SimulateOutcome::Completed).await.unwrap();
    let account = client.account().retrieve().await.unwrap();
    assert_eq!((account.volume.total_payments, account.volume.bdt.as_minor()), (1, 75_000));
    assert_eq!(account.balance.bdt_balance.as_minor(), 71_250);
    assert_eq!(client.account().balance().await.unwrap().bdt_balance.as_minor(), 71_250);
    client.account().apps().await.unwrap();
    client.account().notices().await.unwrap();
    let activity = client.account().activity().days(7).await.unwrap();
    let today = activity.days.last().unwrap();
    assert_eq!((activity.days.len(), today.date), (7, activity.until));
    assert_eq!((today.bdt.created, today.bdt.paid, today.bdt.volume.as_minor()), (1, 1, 75_000));
}

#[tokio::test]
async fn the_client_creates_tests_lists_and_deletes_a_webhook() {
    let server = Server::start();
    let client = server.client();
    // Nothing listens at this address, so the server logs a failed delivery.
    let params = CreateWebhook::new("http://127.0.0.1:9/hook", Subscription::All);
    let endpoint = client.webhooks().create(params).await.unwrap();
    assert!(endpoint.secret.reveal().starts_with("whsec_"));
    assert_eq!(endpoint.retries, Some(Retries::None));
    let params = UpdateWebhook::default().url("http://127.0.0.1:9/moved").description("a note");
    let params = params.retries(Retries::Standard);
    let updated = client.webhooks().update(&endpoint.id, params).await.unwrap();
    assert_eq!((&*updated.url, updated.description.as_deref()), ("http://127.0.0.1:9/moved", Some("a note")));
    assert_eq!((&updated.secret, updated.is_active), (&endpoint.secret, true));
    assert_eq!((&updated.retries, &updated.disabled_reason), (&Some(Retries::Standard), &None));
    let rotated = client.webhooks().rotate_secret(&endpoint.id, RotateSecret::default()).await.unwrap();
    assert_ne!(rotated.secret, updated.secret);
    assert!(rotated.previous_secret_expires_at.is_some());
    let delivery = client.webhooks().test(&endpoint.id).await.unwrap().expect("the delivery is recorded");
    assert_eq!(delivery.webhook_id, endpoint.id);
    let page = client.webhooks().deliveries().webhook(&endpoint.id).limit(10).await.unwrap();
    assert_eq!(page.items[0].id, delivery.id);
    assert_eq!(page.items[0].status, DeliveryStatus::Failed);
    assert_eq!((delivery.attempt_log.unwrap().len(), delivery.next_attempt_at), (1, None), "a test is one attempt");
    let again = client.webhooks().resend(&delivery.id).await.unwrap();
    assert_eq!((again.payload, again.status), (delivery.payload, DeliveryStatus::Pending));
    assert_eq!(client.webhooks().list().await.unwrap().len(), 1);
    assert!(client.webhooks().delete(&endpoint.id).await.unwrap().success);
    assert!(client.webhooks().delete(&endpoint.id).await.unwrap_err().is_not_found());
    assert!(client.webhooks().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_client_verifies_a_signature_without_a_key() {
    let server = Server::start();
    let verify = |params| async { server.client().webhooks().verify(params).await.unwrap() };
    let verdict = verify(VerifySignature::new("{}", "t=1,v1=00", "whsec_1").tolerance(0)).await;
    assert_eq!((verdict.valid, verdict.reason.as_deref()), (false, Some("signature_mismatch")));
    let verdict = verify(VerifySignature::new("{}", "t=1,v1=00", "whsec_1")).await;
    assert_eq!(verdict.reason.as_deref(), Some("timestamp_outside_tolerance"));
}

#[tokio::test]
async fn the_client_retrieves_and_simulates_a_checkout_session() {
    let server = Server::start();
    let client = server.client();
    let payment = client.payments().create(cup()).await.unwrap();
    let session = client.checkout().retrieve(&payment.id).await.unwrap();
    assert_eq!((session.amount, session.status), (payment.amount, RawStatus::Created));
    let PayResult::Simulated(ended) = client.checkout().pay(&payment.id, Pay::default()).await.unwrap() else {
        panic!("a test session goes to the simulator");
    };
    assert!(ended.success);
    assert!(client.checkout().simulate(&payment.id, SimulateOutcome::Failed).await.unwrap_err().is_conflict());

    let demo = CreateDemoSession::of(Money::paisa(1250)).customer_name("Asha").description("A cup");
    let demo = client.checkout().demo_session(demo).await.unwrap();
    assert!(demo.id.as_str().starts_with("test_pay_"));
    let ended = client.checkout().simulate(&demo.id, SimulateOutcome::Cancelled).await.unwrap();
    assert_eq!((ended.status, ended.success), (RawStatus::Cancelled, false));
}

#[tokio::test]
async fn any_route_can_be_called_and_its_response_is_unchanged() {
    let server = Server::start();
    let client = server.client();
    let create = || client.request(Method::POST, "/api/v1/payments").json(&cup()).idempotency_key("order-1");
    let (first, again) = (create().await.unwrap(), create().await.unwrap());
    assert_eq!((first.status, first.is_replayed(), again.is_replayed()), (201, false, true));
    assert_eq!(first.body, again.body);
    let payment: Payment = first.json().unwrap();
    let raw = client.payments().retrieve(&payment.id).send_raw().await.unwrap();
    assert_eq!((raw.status, &raw.body), (200, &first.body));
    assert!(raw.request_id().is_some() && raw.headers.contains_key("date"));
    assert_eq!(client.payments().retrieve(&payment.id).send_for_response().await.unwrap().raw.body, raw.body);

    let table = client.request(Method::GET, "/api/v1/account/transactions.csv").query("currency", "BDT").await.unwrap();
    assert!(table.headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    assert!(table.json::<Payment>().unwrap_err().is_decode());
    let error = client.request(Method::GET, "/api/v1/nothing").await.unwrap_err();
    assert!(error.is_not_found() && error.request_id().is_some());
    let body: ErrorBody = error.response().unwrap().json().unwrap();
    assert_eq!((body.status_code, body.code.as_ref()), (404, error.code()));
    let elsewhere = client.request(Method::GET, "/api/v1/payments/../webhooks").await.unwrap_err();
    assert!(elsewhere.tries() == 0 && !elsewhere.is_retryable(), "{elsewhere:?}");
}

#[tokio::test]
async fn both_key_headers_work_and_a_wrong_key_is_rejected() {
    let server = Server::start();
    for header in [KeyHeader::Authorization, KeyHeader::XApiKey] {
        let client =
            |key| payments_client::Client::builder(key).base_url(&server.url).key_header(header).build().unwrap();
        client("sk_test_demo").payments().list().await.unwrap();
        let error = client("sk_test_wrong").payments().list().await.unwrap_err();
        assert!(error.is_authentication());
        assert!(!format!("{error:?} {error}").contains("sk_test_wrong"));
    }
}

#[cfg(feature = "blocking")]
#[test]
fn wait_blocks_until_the_response() {
    let server = Server::start();
    let client = server.client();
    let payment = client.payments().create(cup()).wait().unwrap();
    assert_eq!(client.payments().retrieve(&payment.id).wait().unwrap(), payment);
}

#[cfg(feature = "blocking")]
#[tokio::test]
async fn wait_inside_a_runtime_does_not_panic() {
    let server = Server::start();
    let payment = server.client().payments().create(cup()).wait().unwrap();
    assert_eq!(server.client().payments().retrieve(&payment.id).await.unwrap(), payment);
}

#[tokio::test]
async fn the_future_of_a_create_is_small() {
    let client = payments_client::Client::new("sk_test_demo").unwrap();
    let size = size_of_val(&client.payments().create(cup()).send());
    println!("the future of create is {size} bytes");
    assert!(size <= 4096, "{size}");
}
