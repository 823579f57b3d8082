//! What customers do.

use gateway_fakes::Does;
use reqwest::Method;
use serde_json::{Value, json};

use super::Shop;
use crate::server::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_pays_before_the_browser_comes_back_and_books_what_sslcommerz_keeps() {
    let mut shop = Shop::open().await;
    shop.live.server.restart_in(&[("PAYMENTS_LOG", "trace")]);
    let (id, url, session) = shop.begun().await;
    let back = shop.visit(&url, Does::Pays).await;
    let payment = shop.live.becomes(&id, "paid").await;
    assert_eq!((&payment["status"], &payment["paymentMethod"]), (&json!("completed"), &json!("card")));
    let shown = shop.come_back(&back).await;
    assert_eq!(shown, format!("https://shop.example/paid?payment_id={id}&status=completed"));
    let books = shop.program().books();
    let entry = books.iter().find(|entry| entry.id == session).unwrap();
    assert_eq!((books.len(), entry.taken, entry.amount_minor, entry.reference.len()), (1, 1, 10_000, 30));
    assert_eq!(entry.reference, back.form["tran_id"]);
    assert_eq!(back.form["value_a"], id);
    assert!(shop.fake.faults().calls_of("validate") >= 1, "it validates always");
    assert_eq!((shop.sum("gateway_cost"), shop.sum("gateway_clearing")), (-250, -10_000 + 250));
    // The same notice again, and the browser's.
    assert!(shop.program().repeat_notice(&session));
    shop.program().notices_sent().await;
    shop.come_back(&back).await;
    assert_eq!(shop.sum("gateway_cost"), -250);
    assert_eq!(shop.live.server.run(&["reviews", "list"]), "");
    shop.live.server.run(&["check"]);
    shop.assert_no_secret_is_logged();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_pays_if_the_notice_is_lost_and_the_server_by_itself_if_both_are() {
    let shop = Shop::open().await;
    shop.program().keep_notices();
    let (id, url, _) = shop.begun().await;
    let back = shop.visit(&url, Does::Pays).await;
    assert!(shop.come_back(&back).await.starts_with("https://shop.example/paid"));
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "paid");
    let (id, url, _) = shop.begun().await;
    shop.visit(&url, Does::Pays).await;
    shop.live.becomes(&id, "paid").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_who_failed_or_cancelled_pays_at_the_next_try() {
    let shop = Shop::open().await;
    for does in [Does::HasNoMoney, Does::Cancels] {
        let (id, url, first) = shop.begun().await;
        let back = shop.visit(&url, does).await;
        assert_eq!(shop.come_back(&back).await, format!("/checkout/{id}"));
        shop.live.becomes(&id, "pending").await;
        let (url, second) = shop.pay(&id).await;
        assert_ne!(first, second);
        shop.visit(&url, Does::Pays).await;
        shop.live.becomes(&id, "paid").await;
        assert_eq!((shop.taken(&first), shop.taken(&second)), (0, 1));
    }
    let (id, url, _) = shop.begun().await;
    shop.visit(&url, Does::HasNoMoney).await;
    shop.live.becomes(&id, "pending").await;
    let timeline = shop.live.request(Method::GET, &format!("/payments/{id}/timeline")).send().await.unwrap();
    let timeline = timeline.text().await.unwrap();
    assert!(
        timeline.contains("SSLCommerz says that this attempt failed: Declined by the bank. The card"),
        "{timeline}"
    );
    for (language, words) in [
        ("en", "You can try again. The card, the bank or the wallet did not make the payment."),
        ("bn", "কার্ড, ব্যাংক বা ওয়ালেট পেমেন্টটি করেনি।"),
    ] {
        let page = shop.live.server.keyless(Method::GET, &format!("/checkout/{id}?lang={language}"));
        let page = page.send().await.unwrap().text().await.unwrap();
        assert!(page.contains(words), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_left_open_expires_and_its_late_money_still_pays() {
    let shop = Shop::open_with("session-ttl = 6").await;
    shop.program().keep_notices();
    let (closed, url, closed_session) = shop.begun().await;
    // A page that was opened is pending there.
    reqwest::get(&url).await.unwrap();
    let (unopened, _, session) = shop.begun().await;
    for id in [&closed, &unopened] {
        shop.live.becomes(id, "expired").await;
    }
    // SSLCommerz cannot close a page, and no notice tells.
    for (id, session) in [(&closed, &closed_session), (&unopened, &session)] {
        shop.program().pay(session).unwrap();
        shop.live.becomes(id, "paid").await;
    }
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_return_that_cancels_loses_no_money() {
    let shop = Shop::open().await;
    shop.program().keep_notices();
    let (id, url, session) = shop.begun().await;
    let forged = format!("{}/gateways/sslcommerz/return/{id}?status=CANCELLED", shop.live.server.url);
    shop.live.come_back(&forged).await;
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "cancelled");
    shop.visit(&url, Does::Pays).await;
    shop.live.becomes(&id, "paid").await;
    assert_eq!(shop.taken(&session), 1);
    let (id, _, _) = shop.begun().await;
    let forged = format!("{}/gateways/sslcommerz/return/{id}?status=VALID", shop.live.server.url);
    assert_eq!(shop.live.come_back(&forged).await, format!("/checkout/{id}"));
    assert_eq!(shop.live.payment(&id).await["rawStatus"], "processing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_the_payment_and_the_return_loses_nothing() {
    let mut shop = Shop::open().await;
    // The server is down when the notice is sent.
    shop.program().keep_notices();
    let (returned, url, _) = shop.begun().await;
    let (alone, other, _) = shop.begun().await;
    shop.live.server.kill();
    let back = shop.visit(&url, Does::Pays).await;
    shop.visit(&other, Does::Pays).await;
    shop.live.server.restart();
    assert!(shop.come_back(&back).await.starts_with("https://shop.example/paid"));
    for id in [&returned, &alone] {
        shop.live.becomes(id, "paid").await;
    }
    assert_eq!(shop.sum("gateway_cost"), -500);
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_needs_its_customers_name_and_addresses_and_a_store_that_is_known() {
    let shop = Shop::open().await;
    let id = shop.live.create(100.0, "BDT").await;
    let customer = json!({"paymentMethod": "sslcommerz", "customerName": "Karim", "customerEmail": "karim@example.com",
        "phoneNumber": "01712345678"});
    for lacks in ["customerName", "customerEmail", "phoneNumber"] {
        let mut customer = customer.clone();
        customer.as_object_mut().unwrap().remove(lacks);
        let answer = shop.ask(&id, &customer).await;
        assert_eq!(answer.status(), 400, "{lacks}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["fields"][0]["field"], &answer["code"]), (&json!(lacks), &json!("field_missing")));
    }
    shop.program().deactivate_store(true);
    let refused = shop.ask(&id, &customer).await;
    assert!(refused.status().is_client_error());
    let refused: Value = refused.json().await.unwrap();
    assert!(refused["message"].to_string().contains("De-active"), "{refused}");
    shop.program().deactivate_store(false);
    assert_eq!(shop.fake.faults().calls_of("session"), 1);
    let (url, _) = shop.pay(&id).await;
    shop.visit(&url, Does::Pays).await;
    eventually("the payment", async || (shop.live.payment(&id).await["rawStatus"] == "paid").then_some(())).await;
}
