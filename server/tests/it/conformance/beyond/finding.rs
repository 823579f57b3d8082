//! Filters of the list of payments, and a payment's timeline.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    super::world::World,
    report::Report,
    shop::{Shop, each, names},
};
use crate::server::{eventually, payment_of};

pub(super) async fn filters(world: &World, report: &mut Report) {
    let addition = "Filters";
    let shop = Shop::open(world).await;
    let plain = shop.create().await;
    // Wait for another millisecond, so that the times differ.
    sleep(Duration::from_millis(3)).await;
    let mut body = payment_of(&json!(5));
    body["currency"] = json!("USD");
    body["merchantTransactionId"] = json!("A-17");
    body["customer"] = json!({"email": "Asha@Shop.example", "phone": "+880 1712-345678"});
    let (_, order) = shop.post("/payments", body.clone()).await;
    let reference = (&plain["merchantTransactionId"], &order["merchantTransactionId"]);
    report.unnoticed(
        addition,
        "the reference is the id unless it is given",
        reference == (&plain["id"], &json!("A-17")),
        &reference,
    );
    let page = shop.get("/payments?page=1&limit=20&status=pending").await;
    let is_plain = names(&page) == ["items", "total", "page", "limit"] && page["total"] == 2;
    report.unnoticed(addition, "a page by status", is_plain, &page);

    let time = order["created_at"].as_str().unwrap();
    for (filter, found) in [
        ("merchantTransactionId=A-17".to_owned(), &order),
        ("customerEmail=asha@shop.example".to_owned(), &order),
        ("customerPhone=01712345678".to_owned(), &order),
        ("search=A-17".to_owned(), &order),
        (format!("search={}", plain["id"].as_str().unwrap()), &plain),
        ("currency=USD&status=pending".to_owned(), &order),
        (format!("createdAfter={time}"), &order),
        (format!("createdBefore={time}"), &plain),
        (format!("limit=1&after={}", order["id"].as_str().unwrap()), &plain),
    ] {
        let list = shop.get(&format!("/payments?{filter}")).await;
        let is_found = list["items"] == json!([found]) && list["hasMore"] == false && list["total"].is_null();
        report.documented(addition, &filter, is_found, &list);
    }
    body["merchantTransactionIdMustBeUnique"] = json!(true);
    let (status, refused) = shop.post("/payments", body).await;
    let is_refused = status == 409 && refused["code"] == "merchant_transaction_id_used";
    report.documented(addition, "a reference that must be unique", is_refused, &refused);
}

pub(super) async fn timeline(world: &World, report: &mut Report) {
    let addition = "Timeline";
    let live = &world.live;
    let id = live.paid(20.0, "USD").await;
    let before = live.payment(&id).await;
    let path = format!("/payments/{id}/timeline");
    let timeline = eventually("both events to be delivered", async || {
        let (_, timeline) = world.ask(&live.key, Method::GET, &path, None).await;
        (timeline.to_string().matches("\"status\":\"success\"").count() == 2).then_some(timeline)
    })
    .await;
    let after = live.payment(&id).await;
    report.unnoticed(addition, "it leaves the payment as it is", before == after, &(before, after));
    let kinds = each(&timeline, "kind");
    let is_all = kinds == ["created", "event", "sent_to_gateway", "completed", "event"];
    report.documented(addition, "each move and each event", is_all, &timeline);
    let said = |kind: &str| -> Value { timeline["items"][kinds.iter().position(|one| *one == kind).unwrap()].clone() };
    let completed = said("completed");
    let words = completed["description"].as_str().unwrap_or_default();
    report.documented(addition, "the gateway's words", words.starts_with("Stripe confirmed the money"), &completed);
    let created = &said("event")["event"];
    let is_delivered = created["event"] == "payment.created" && created["deliveries"][0]["responseStatus"] == 200;
    report.documented(addition, "an event with its deliveries", is_delivered, created);
}
