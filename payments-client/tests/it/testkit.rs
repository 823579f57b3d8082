//! A merchant's test with a real server.

use payments_client::{
    Amount, CreatePayment, EventKind, Money, Status,
    testing::{LiveServer, ReceiveError, StartError, TestServer},
};
use test_support::server_binary;

#[tokio::test]
async fn a_merchants_test_creates_pays_and_receives_on_a_real_server() {
    let server = TestServer::start_program(server_binary()).await.unwrap();
    let mut webhooks = server.receive_webhooks().await.unwrap();
    let params = CreatePayment::of(Money::taka(750))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart");
    let payment = server.client().payments().create(params).await.unwrap();
    assert_eq!(*webhooks.next().await.unwrap().kind(), EventKind::PaymentCreated);
    server.pay(&payment.id).await.unwrap();
    let event = webhooks.next().await.unwrap();
    assert_eq!((event.kind(), event.payment().unwrap().id), (&EventKind::PaymentCompleted, payment.id.clone()));
    assert_eq!(server.client().payments().retrieve(&payment.id).await.unwrap().status, Status::Completed);

    // The server did not sign this request.
    let forged = reqwest::Client::new().post(&webhooks.endpoint().url).body("{}").send().await.unwrap();
    assert_eq!(forged.status(), 400);
    assert!(matches!(webhooks.next().await, Err(ReceiveError::Invalid(_))));
}

#[tokio::test]
async fn servers_of_two_tests_are_independent_and_end_with_their_tests() {
    let (one, other) =
        tokio::join!(TestServer::start_program(server_binary()), TestServer::start_program(server_binary()));
    let (one, other) = (one.unwrap(), other.unwrap());
    let params = CreatePayment::of(Money::taka(1))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart");
    one.client().payments().create(params).await.unwrap();
    assert_eq!(other.client().payments().list().await.unwrap().total, Some(0));
    assert_eq!(one.log().unwrap(), "", "nothing went wrong");
    let url = one.url().to_owned();
    drop(one);
    assert!(reqwest::get(url).await.unwrap_err().is_connect());
}

#[tokio::test]
async fn an_error_names_a_program_that_is_not_a_server() {
    let error = TestServer::start_program("/nonexistent/payments-server").await.unwrap_err();
    assert!(matches!(error, StartError::Program { .. }));
    assert!(error.to_string().starts_with("cannot run /nonexistent/payments-server: "), "{error}");
    let error = TestServer::start_program("false").await.unwrap_err();
    assert!(matches!(error, StartError::Ended(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_test_is_paid_disputed_and_refunded_live_in_both_currencies() {
    let server = LiveServer::start_program(server_binary()).await.unwrap();
    let mut webhooks = server.receive_webhooks().await.unwrap();
    for money in [Money::taka(750), Money::cents(1250)] {
        let params =
            CreatePayment::of(money).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart");
        let id = server.client().payments().create(params).await.unwrap().id;
        assert!(server.dispute(&id, Amount::from_major(1)).await.is_err(), "it is not paid");
        assert_eq!(server.pay_live(&id).await.unwrap().status, Status::Completed);
        assert!(server.pay_live(&id).await.is_err(), "it is paid");
        let disputed = server.dispute(&id, Amount::from_major(1)).await.unwrap();
        assert_eq!(disputed.disputes.iter().map(|dispute| dispute.amount).sum::<Amount>(), Amount::from_major(1));
        for kind in [EventKind::PaymentCreated, EventKind::PaymentCompleted, EventKind::PaymentDisputed] {
            assert_eq!(*webhooks.next().await.unwrap().kind(), kind, "{money}");
        }
        let other =
            CreatePayment::of(money).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart");
        let other = server.client().payments().create(other).await.unwrap().id;
        server.pay_live(&other).await.unwrap();
        assert_eq!(server.refund(&other).await.unwrap().status, Status::Refunded);
        for kind in [EventKind::PaymentCreated, EventKind::PaymentCompleted, EventKind::PaymentRefunded] {
            assert_eq!(*webhooks.next().await.unwrap().kind(), kind, "{money}");
        }
    }
}
