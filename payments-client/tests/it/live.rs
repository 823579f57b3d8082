//! A live payment and its refund, on the real server with a fake card processor.

use gateway_fakes::{
    Running,
    stripe::{CARD, SECRET_KEY, Stripe, WEBHOOK_SECRET},
};
use payments_client::{
    Amount, Client, CreatePayment, Environment, Money, Pay, PayResult, RawStatus, RefundStatus, Standing,
};

use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_live_payment_is_paid_refunded_once_and_reconciled() {
    let stripe = Running::start(Stripe::new(), "127.0.0.1:0").await.unwrap();
    let server = Server::start_with(&[
        ("PAYMENTS_STRIPE_BASE_URL", &stripe.url()),
        ("PAYMENTS_STRIPE_SECRET_KEY", SECRET_KEY),
        ("PAYMENTS_STRIPE_WEBHOOK_SECRET", WEBHOOK_SECRET),
    ]);
    let workspace = server.administer(&["workspaces", "create", "--name", "Rahim"]);
    let key = server.administer(&["keys", "create", "--workspace", &workspace, "--environment", "live"]);
    let client = Client::builder(&key).base_url(&server.url).build().unwrap();
    assert_eq!(client.environment(), Environment::Live);

    let params = CreatePayment::of(Money::cents(1250))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart");
    let payment = client.payments().create(params).await.unwrap();
    let PayResult::Redirect(to) = client.checkout().pay(&payment.id, Pay::default()).await.unwrap() else {
        panic!("a live session redirects to the gateway")
    };
    let back = stripe.program().pay(to.redirect_url.rsplit('/').next().unwrap(), CARD).unwrap();
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    assert_eq!(browser.get(back).send().await.unwrap().status(), 303);

    let (part, key) = (Amount::from_major(5), "return-cup");
    let one = client.payments().refund_part(&payment.id, part, Some("chipped"), key).await.unwrap();
    assert_eq!((&one.raw_status, one.amount_refunded()), (&RawStatus::Paid, part));
    assert_eq!(client.payments().refund_part(&payment.id, part, Some("chipped"), key).await.unwrap(), one);
    let more = client.payments().refund_part(&payment.id, payment.amount, None, "more");
    assert_eq!(more.await.unwrap_err().status(), Some(409));
    let refunded = client.payments().refund(&payment.id, Some("damaged")).send_for_response().await.unwrap();
    assert_eq!((refunded.value.refunds.len(), refunded.value.amount_refunded()), (2, payment.amount));
    let refund = refunded.value.refund().unwrap();
    assert_eq!((&refunded.value.raw_status, &refund.status), (&RawStatus::Refunded, &RefundStatus::Succeeded));
    assert_eq!((refund.reason.as_deref(), refund.requires_manual_settlement), (Some("damaged"), false));
    let again = client.payments().refund(&payment.id, Some("damaged"));
    let again = again.idempotency_key(refunded.idempotency_key.clone().unwrap()).send_for_response().await.unwrap();
    assert!(again.is_replayed() && again.value == refunded.value);
    assert_eq!(stripe.program().refunds().len(), 2);
    assert_eq!(Standing::of(&client.payments().retrieve(&payment.id).await.unwrap()), Standing::Completed);
}
