//! A merchant's test with a real server.

use payments_client::{
    CreatePayment, EventKind, Money, Status,
    testing::{ReceiveError, StartError, TestServer},
};

use crate::server::binary;

#[tokio::test]
async fn a_merchants_test_creates_pays_and_receives_on_a_real_server() {
    let server = TestServer::start_program(binary()).await.unwrap();
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
    let (one, other) = tokio::join!(TestServer::start_program(binary()), TestServer::start_program(binary()));
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
