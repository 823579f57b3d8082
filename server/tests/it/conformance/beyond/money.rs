//! Refunds of a part, the account's transactions, and a second try to pay.

use gateway_fakes::bkash;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::world::{World, has},
    report::Report,
    shop::{each, names},
};
use crate::server::eventually;

pub(super) async fn partial_refunds(world: &World, report: &mut Report) {
    let addition = "Partial refunds";
    let live = &world.live;
    let refund = async |id: &str, body: Value, key: Option<&str>| {
        let mut request = live.request(Method::POST, &format!("/payments/{id}/refund")).json(&body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let balance = async || world.ask(&live.key, Method::GET, "/account/balance", None).await.1;

    let whole = live.paid(10.0, "USD").await;
    let paid = live.payment(&whole).await;
    let is_plain = ["refund", "refunds", "amountRefunded"].iter().all(|field| paid.get(field).is_none());
    report.unnoticed(addition, "a payment without a refund has no field of one", is_plain, &paid);
    let (status, refunded) = refund(&whole, json!({"reason": "damaged"}), None).await;
    let is_whole = status == 200 && refunded["status"] == "refunded" && refunded["refund"]["amount"] == 10;
    report.unnoticed(addition, "a refund without an amount or a key gives back the whole", is_whole, &refunded);

    let before = balance().await;
    let id = live.paid(12.5, "USD").await;
    let (status, keyless) = refund(&id, json!({"amount": 2.5}), None).await;
    let is_refused = status == 400 && keyless["code"] == "idempotency_key_required";
    report.documented(addition, "a part needs an Idempotency-Key", is_refused, &keyless);
    let (_, part) = refund(&id, json!({"amount": 2.5, "reason": "one cup"}), Some("part")).await;
    let is_paid = part["status"] == "completed" && part["rawStatus"] == "paid";
    report.unnoticed(addition, "the status stays completed until the whole is given back", is_paid, &part);
    let sum = (&part["refund"]["amount"], &part["amountRefunded"]);
    report.documented(addition, "a part", sum == (&json!(2.5), &json!(2.5)), &part);
    let (status, over) = refund(&id, json!({"amount": 10.01}), Some("over")).await;
    let says = over["message"].as_str().is_some_and(|message| message.starts_with("10 of this payment is left"));
    report.documented(addition, "more than the rest", status == 409 && says, &over);
    let (_, rest) = refund(&id, json!({}), None).await;
    let is_all = rest["status"] == "refunded" && rest["amountRefunded"] == 12.5 && rest["refunds"][0] == part["refund"];
    report.documented(addition, "the rest", is_all, &rest);
    let after = balance().await;
    report.documented(addition, "the parts of the fee add up to the fee", after == before, &(&before, &after));

    world.event("payment.refunded", &id).await;
    let whole = world.events("payment.refunded", &id).await;
    let is_one = whole.len() == 1 && whole[0]["data"]["status"] == "refunded";
    report.unnoticed(addition, "payment.refunded is sent once, when the whole is given back", is_one, &whole);
    let parts = world.events("payment.partially_refunded", &id).await;
    let is_one = parts.len() == 1 && parts[0]["data"]["refund_reason"] == "one cup";
    report.documented(addition, "payment.partially_refunded", is_one, &parts);
}

pub(super) async fn transactions(world: &World, report: &mut Report) {
    let addition = "Transactions";
    let live = &world.live;
    let id = live.paid(750.0, "BDT").await;
    let (_, account) = world.ask(&live.key, Method::GET, "/account", None).await;
    let (_, balance) = world.ask(&live.key, Method::GET, "/account/balance", None).await;
    let is_plain = names(&balance)[..2] == ["bdt_balance", "usd_balance"] && names(&account).len() == 3;
    let is_plain = is_plain && has(&account, &["workspace", "balance", "volume"]);
    report.unnoticed(addition, "the account and its balance", is_plain, &(&account, &balance));

    let path = "/account/transactions?currency=BDT&limit=2";
    let list = eventually("the payment's transactions", async || {
        let (_, list) = world.ask(&live.key, Method::GET, path, None).await;
        (list["items"][1]["paymentId"] == id.as_str()).then_some(list)
    })
    .await;
    let is_posted = each(&list, "kind") == ["fee", "payment"] && each(&list, "amount") == [&json!(-37.5), &json!(750)];
    report.documented(addition, "a payment and its fee", is_posted, &list);
    report.documented(addition, "the running balance", list["items"][0]["balance"] == balance["bdt_balance"], &list);
    let table = live.request(Method::GET, "/account/transactions.csv?currency=BDT&limit=2").send().await.unwrap();
    let table = table.text().await.unwrap();
    let first = list["items"][0]["id"].as_str().unwrap();
    let is_same = table.lines().count() == 3 && table.lines().nth(1).is_some_and(|row| row.starts_with(first));
    report.documented(addition, "as a table", is_same, &table);
}

pub(super) async fn activity(world: &World, report: &mut Report) {
    let addition = "Activity";
    let live = &world.live;
    let today = async || {
        let (_, activity) = world.ask(&live.key, Method::GET, "/account/activity?days=2", None).await;
        (activity["days"][1]["bdt"].clone(), activity)
    };
    let (before, activity) = today().await;
    let is_whole = names(&activity) == ["since", "until", "days"] && activity["days"][1]["date"] == activity["until"];
    report.documented(addition, "every day up to today", is_whole && each_day(&activity) == 2, &activity);
    live.paid(0.5, "BDT").await;
    let payment = live.payment(&live.create(7.0, "BDT").await).await;
    let is_plain = ["date", "days", "volume"].iter().all(|name| payment.get(name).is_none());
    report.unnoticed(addition, "a payment has no field of it", is_plain, &payment);
    let (after, _) = today().await;
    let grown = |name: &str| after[name].as_f64().unwrap() - before[name].as_f64().unwrap();
    let is_counted = ["created", "paid", "volume"].map(grown) == [2.0, 1.0, 0.5];
    report.documented(addition, "a payment that is paid and one that is not", is_counted, &(&before, &after));
    let chart = live.request(Method::GET, "/account/activity.svg?days=7").send().await.unwrap().text().await.unwrap();
    report.documented(addition, "as a chart", chart.starts_with("<svg "), &chart);
}

fn each_day(activity: &Value) -> usize {
    activity["days"].as_array().map_or(0, Vec::len)
}

pub(super) async fn second_try(world: &World, report: &mut Report) {
    let addition = "Second try";
    let live = &world.live;
    let id = live.create(7.0, "BDT").await;
    let come_back = async |attempt: &str, wallet: &str| {
        live.come_back(&live.bkash.program().approve(attempt, wallet).unwrap()).await
    };
    let (_, first) = live.pay(&id).await;
    come_back(&first, bkash::POOR_WALLET).await;
    let payment = live.payment(&id).await;
    report.unnoticed(addition, "a payment whose attempt failed is pending", payment["status"] == "pending", &payment);
    let (_, session) = world.ask("", Method::GET, &format!("/checkout/{id}"), None).await;
    let is_open = session["status"] == "pending" && session["isExpired"] == false;
    report.documented(addition, "the session is open, with the status pending", is_open, &session);
    let (_, second) = live.pay(&id).await;
    report.documented(addition, "a second attempt", second != first, &second);
    let shop = come_back(&second, bkash::WALLET).await;
    report.unnoticed(addition, "the customer returns to the shop", shop.contains("status=completed"), &shop);
    let payment = live.payment(&id).await;
    report.unnoticed(addition, "the payment is completed", payment["status"] == "completed", &payment);
    world.event("payment.completed", &id).await;
    let events = world.events("payment.completed", &id).await;
    report.unnoticed(addition, "payment.completed is sent once", events.len() == 1, &events);
}
