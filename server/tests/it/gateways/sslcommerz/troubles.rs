//! Forged notices, wrong amounts, second payments, and answers that say nothing.

use std::time::Duration;

use gateway_fakes::{Does, Fault, Form, Instead, sslcommerz::STORE_PASSWORD, sslcommerz::signed};
use reqwest::Method;
use tokio::time::sleep;

use super::{Shop, encoded};
use crate::server::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_notice_is_refused_and_a_signed_one_is_only_a_reason_to_ask() {
    let shop = Shop::open().await;
    shop.program().keep_notices();
    let (id, url, _) = shop.begun().await;
    let back = shop.visit(&url, Does::HasNoMoney).await;
    let asked = || shop.fake.faults().calls_of("query");
    let begun = asked();
    let lie = |more: &[(&str, &str)]| {
        let mut fields: std::collections::BTreeMap<String, String> = (*back.form).clone();
        fields.retain(|name, _| !name.starts_with("verify"));
        fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        fields.into_iter().collect::<Form>()
    };
    let paid = [("status", "VALID"), ("val_id", "V1"), ("bank_tran_id", "B1")];
    let send = async |form: Form| {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form.iter()).finish();
        shop.notify(body).await
    };
    for form in [lie(&paid), signed(lie(&paid), "another"), signed(lie(&[("store_id", "other")]), STORE_PASSWORD)] {
        let (status, text) = send(form).await;
        assert!(status == 400 && text.contains("invalid signature"), "{status}: {text}");
    }
    let doubled = format!("{}&tran_id=T2", encoded(&back));
    assert_eq!(shop.notify(doubled).await.0, 400);
    assert_eq!(shop.notify("x=".repeat(40_000)).await.0, 413);
    assert_eq!(asked(), begun, "a refused notice asks nothing");
    // Even with the password a notice proves nothing.
    assert_eq!(send(signed(lie(&paid), STORE_PASSWORD)).await, (200, "OK".to_owned()));
    shop.live.becomes(&id, "pending").await;
    let unknown = signed(lie(&[("tran_id", "T2")]), STORE_PASSWORD);
    assert_eq!(send(unknown).await, (200, "OK".to_owned()));
    shop.assert_no_secret_is_logged();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_amount_or_a_risk_waits_for_a_person_and_never_expires() {
    let shop = Shop::open_with("session-ttl = 8").await;
    let (wrong, url, session) = shop.begun().await;
    shop.program().falsify_amount(&session, 9_950);
    shop.visit(&url, Does::Pays).await;
    let (risky, url, risky_session) = shop.begun().await;
    shop.program().set_risk(&risky_session, true);
    let back = shop.visit(&url, Does::Pays).await;
    let listed = shop.live.reviews(&wrong).await;
    assert!(listed.contains("99.50 BDT (99.5 BDT)") && listed.contains("expected 100 BDT"), "{listed}");
    let listed = shop.live.reviews(&risky).await;
    assert!(listed.contains("\"Not Safe\""), "{listed}");
    assert_eq!(shop.come_back(&back).await, format!("/checkout/{risky}"));
    sleep(Duration::from_secs(9)).await;
    for id in [&wrong, &risky] {
        assert_eq!(shop.live.payment(id).await["rawStatus"], "processing");
    }
    shop.live.server.run(&["reviews", "resolve", &risky, "--note", "the bank is sure", "--as", "paid"]);
    assert_eq!(shop.live.payment(&risky).await["rawStatus"], "paid");
    assert!(shop.program().repeat_notice(&risky_session));
    shop.program().notices_sent().await;
    assert!(!shop.live.server.run(&["reviews", "list"]).contains(&risky), "a person has decided that");
    let refund = shop.live.request(Method::POST, &format!("/payments/{risky}/refund"));
    assert_eq!(refund.send().await.unwrap().status(), 200);
    assert_eq!(shop.program().refunds().len(), 1);
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_payment_of_an_attempt_is_sent_back_by_a_person() {
    let shop = Shop::open().await;
    let list = || shop.live.server.run(&["reviews", "list"]);
    // Both before the server asks.
    shop.program().keep_notices();
    let (id, url, session) = shop.begun().await;
    let back = shop.visit(&url, Does::Pays).await;
    let second = shop.program().pay_again(&session).unwrap();
    shop.come_back(&back).await;
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "paid");
    let listed = shop.live.reviews(&id).await;
    assert!(listed.contains(&format!("more than once, also 100 BDT in transaction {second}")), "{listed}");
    shop.live.server.run(&["reviews", "resolve", &id, "--note", "sent back"]);
    // A replay of the notice says nothing new, and a third payment does.
    shop.notify(encoded(&back)).await;
    assert_eq!(list(), "");
    let third = shop.program().pay_again(&session).unwrap();
    shop.notify(encoded(&back)).await;
    assert!(list().contains(&format!("{second}, 100 BDT in transaction {third}")), "{}", list());
    shop.live.server.run(&["reviews", "resolve", &id, "--note", "sent back"]);
    // The payment's own transaction is refunded.
    let refund = shop.live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    assert_eq!(refund.status(), 200);
    assert_eq!((shop.taken(&session), shop.sum("gateway_cost")), (3, -250));
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_payment_after_the_first_is_recorded_is_told_by_its_notice() {
    let shop = Shop::open().await;
    let (id, session) = shop.paid().await;
    let second = shop.program().pay_again(&session).unwrap();
    shop.program().notices_sent().await;
    let listed = shop.live.reviews(&id).await;
    assert!(listed.contains(&second), "{listed}");
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "paid");
    assert_eq!(shop.sum("merchant"), 9_500, "the payment counts once");
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validation_that_answers_nothing_does_not_keep_the_money_from_the_merchant() {
    let shop = Shop::open().await;
    let (id, url, session) = shop.begun().await;
    shop.program().silence_validation(&session, true);
    let back = shop.visit(&url, Does::Pays).await;
    assert!(shop.come_back(&back).await.starts_with("https://shop.example/paid"));
    shop.live.becomes(&id, "paid").await;
    assert!(shop.fake.faults().calls_of("validate") >= 1);
    // The row must fit nevertheless.
    let (id, url, session) = shop.begun().await;
    shop.program().silence_validation(&session, true);
    shop.program().falsify_amount(&session, 9_999);
    shop.visit(&url, Does::Pays).await;
    shop.live.reviews(&id).await;
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "processing");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_say_nothing_end_nothing() {
    let shop = Shop::open().await;
    shop.program().keep_notices();
    for fault in
        [Fault::DropAfter, Fault::Empty, Fault::Truncated, Fault::Before(Instead::Unauthorized), Fault::HangAfter]
    {
        let (id, url, _) = shop.begun().await;
        let back = shop.visit(&url, Does::Pays).await;
        for _ in 0..2 {
            shop.fake.faults().next("query", fault);
        }
        assert_eq!(shop.come_back(&back).await, format!("/checkout/{id}"), "{fault:?}");
        shop.live.becomes(&id, "paid").await;
    }
    let (id, url, _) = shop.begun().await;
    shop.program().set_maintenance(true);
    let back = shop.visit(&url, Does::Pays).await;
    assert_eq!(shop.come_back(&back).await, format!("/checkout/{id}"));
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "processing");
    shop.program().set_maintenance(false);
    shop.live.becomes(&id, "paid").await;
    // A lost session was shown to nobody: the customer's next click begins another.
    let id = shop.live.create(100.0, "BDT").await;
    shop.fake.faults().next("session", Fault::DropAfter);
    let customer = serde_json::json!({"paymentMethod": "card", "customerName": "Karim",
        "customerEmail": "karim@example.com", "phoneNumber": "01712345678"});
    assert_eq!(shop.ask(&id, &customer).await.status(), 503);
    let (url, session) = eventually("the gateway to be asked again", async || {
        let answer = shop.ask(&id, &customer).await;
        (answer.status() == 200).then_some(())?;
        Some(shop.pay(&id).await)
    })
    .await;
    shop.visit(&url, Does::Pays).await;
    shop.live.becomes(&id, "paid").await;
    assert_eq!(shop.taken(&session), 1);
}
