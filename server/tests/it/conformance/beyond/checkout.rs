//! The order's lines.

use serde_json::{Value, json};

use super::{
    super::world::World,
    report::Report,
    shop::{Shop, names},
};
use crate::server::payment_of;

pub(super) async fn line_items(world: &World, report: &mut Report) {
    let addition = "Line items";
    let shop = Shop::open(world).await;
    let plain = shop.create().await;
    let session = shop.get(&format!("/checkout/{}", plain["id"].as_str().unwrap())).await;
    for answer in [&plain, &session, &shop.ended(1).await[0]["payload"]] {
        let is_unnoticed = !answer.to_string().contains("lineItems");
        report.unnoticed(addition, "no field without lines", is_unnoticed, answer);
    }

    let lines = json!([{"name": "চা", "quantity": 2, "amount": 700.5}, {"name": "Wrapping"}]);
    let mut body = payment_of(&json!(750));
    body["lineItems"] = lines.clone();
    let (status, created) = shop.post("/payments", body.clone()).await;
    report.documented(addition, "created", status == 201 && created["lineItems"] == lines, &created);
    let is_same = names(&created).into_iter().filter(|name| *name != "lineItems").eq(names(&plain));
    report.unnoticed(addition, "the other fields stay", is_same, &created);
    let id = created["id"].as_str().unwrap();
    for path in [format!("/payments/{id}"), format!("/checkout/{id}")] {
        let found = shop.get(&path).await;
        report.documented(addition, &path, found["lineItems"] == lines, &found);
    }
    shop.ended(2).await;
    let event: Value = serde_json::from_slice(&shop.last_received().body).unwrap();
    report.documented(addition, "the event", event["data"]["lineItems"] == lines, &event);
    let list = shop.get("/payments?limit=1").await;
    report.documented(addition, "the list", list["items"][0]["lineItems"] == lines, &list);

    body["lineItems"] = json!([]);
    let (status, created) = shop.post("/payments", body.clone()).await;
    let is_none = status == 201 && created.get("lineItems").is_none();
    report.documented(addition, "an empty list is none", is_none, &created);
    body["lineItems"] = json!([{"name": "Tea"}, {"quantity": 0}]);
    let (status, refused) = shop.post("/payments", body.clone()).await;
    let named = |nth: usize| refused["fields"][nth]["field"].as_str();
    let is_refused =
        status == 400 && (named(0), named(1)) == (Some("lineItems[1].name"), Some("lineItems[1].quantity"));
    report.documented(addition, "a wrong line is named", is_refused, &refused);
    body["lineItems"] = vec![json!({"name": "Tea"}); 51].into();
    let (status, refused) = shop.post("/payments", body).await;
    let is_refused = status == 400 && refused["code"] == "field_too_long";
    report.documented(addition, "at most 50 lines", is_refused, &refused);
}
