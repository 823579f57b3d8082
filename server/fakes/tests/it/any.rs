//! Any fake works through the common interface.

use std::sync::Arc;

use gateway_fakes::{Does, Fake, Running, sslcommerz::SslCommerz};
use http::Method;

use super::*;

#[tokio::test]
async fn a_test_drives_a_fake_without_its_name() {
    for fake in [
        Arc::new(Bkash::new()) as Arc<dyn Fake>,
        Arc::new(Bkash::v2()),
        Arc::new(Stripe::new()),
        Arc::new(SslCommerz::new()),
    ] {
        let running = Running::share(Arc::clone(&fake), "127.0.0.1:0").await.unwrap();
        assert!(running.settings().starts_with(&format!("[{}]\n", fake.name())));
        assert_eq!(fake.visit(&format!("{}/customer/unknown", running.url()), Does::Pays), None);
        assert!(fake.books().is_empty());
    }
}

#[tokio::test]
async fn a_wallet_without_money_goes_back_as_one_that_pays_and_a_cancelled_page_is_closed() {
    let fake = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::new(&fake, &V1).await;
    let program: Arc<dyn Fake> = fake.program().clone();
    for (number, (does, status)) in
        [(Does::Pays, "success"), (Does::HasNoMoney, "success"), (Does::Cancels, "cancel")].into_iter().enumerate()
    {
        let made = caller.call("/create", &order(&format!("i-{number}"))).await.unwrap();
        let page = made["bkashURL"].as_str().unwrap();
        let back = program.visit(page, does).unwrap();
        assert_eq!((&back.method, back.form.len()), (&Method::GET, 0));
        assert!(back.url.contains(&format!("&status={status}")), "{}", back.url);
        assert_eq!(program.visit(page, Does::Pays).is_none(), does == Does::Cancels);
        program.falsify_amount(made["paymentID"].as_str().unwrap(), 1_205);
        let shown = caller.call("/payment/status", &json!({"paymentID": made["paymentID"]})).await.unwrap();
        assert_eq!(shown["amount"], "12.05");
    }
}
