//! Aids for the development of a shop: `listen`, `trigger`, `reset`, and the test clock.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::world::World,
    report::Report,
    shop::{Shop, names},
};
use crate::{
    developer::{Listening, SECRET, run, run_for_line},
    receiver::Receiver,
    server::{SANDBOX_KEY, eventually, text_of},
};

async fn sandbox(world: &World, path: &str) -> Value {
    world.ask(SANDBOX_KEY, Method::GET, path, None).await.1
}

pub(super) async fn listen(world: &World, report: &mut Report) {
    let addition = "Listen";
    let before = sandbox(world, "/webhooks").await;
    let receiver = Receiver::ok().await;
    let listening = Listening::start(world.server(), &["--forward-to", &receiver.url()]);
    let payment = run_for_line(world.server(), &["trigger", "payment.created"]);
    let line = listening.line();
    let is_printed = line.contains(" payment.created evt_") && line.contains(" -> 200 in ");
    report.documented(addition, "an event is printed with the answer", is_printed, &line);
    let forwarded = receiver.received().remove(0);
    let is_signed = forwarded.verified_with_any_age(SECRET);
    report.documented(addition, "it is forwarded signed", is_signed, &forwarded.headers);
    let event: Value = serde_json::from_slice(&forwarded.body).unwrap();
    let sent = world.event("payment.created", &payment).await;
    report.unnoticed(addition, "endpoints get the event too", sent == event, &(sent, event));
    let after = sandbox(world, "/webhooks").await;
    report.unnoticed(addition, "it is no endpoint", after == before, &after);
}

pub(super) async fn trigger_and_reset(world: &World, report: &mut Report) {
    let addition = "Trigger and reset";
    let shop = Shop::open(world).await;
    let (server, paid) = (world.server(), shop.paid().await);
    let order = ["--metadata", r#"{"order":"A-7"}"#];
    let trigger = [&["trigger", "payment.completed", "--amount", "12.50"], &order[..]].concat();
    let id = run_for_line(server, &trigger);
    let triggered = sandbox(world, &format!("/payments/{id}")).await;
    report.unnoticed(addition, "a payment like any other", names(&triggered) == names(&paid), &triggered);
    let is_asked = triggered["status"] == "completed" && triggered["amount"] == 12.5;
    report.documented(addition, "the event happens", is_asked && triggered["metadata"]["order"] == "A-7", &triggered);

    let before = sandbox(world, "/payments").await["total"].take();
    let output = run(server, Some(&shop.key), &["reset", "--yes"]);
    let left = eventually("the sandbox to be empty", async || {
        let list = shop.get("/payments").await;
        (list["total"] == 0).then_some(list)
    })
    .await;
    report.documented(addition, "the sandbox is empty", output.status.success(), &(text_of(&output), left));
    let after = sandbox(world, "/payments").await["total"].take();
    report.unnoticed(addition, "nobody else's sandbox is emptied", before == after, &(before, after));
}

pub(super) async fn test_clock(world: &World, report: &mut Report) {
    let addition = "Test clock";
    let shop = Shop::open(world).await;
    let live = world.live.create(5.0, "BDT").await;
    let theirs = run_for_line(world.server(), &["trigger", "payment.created"]);
    let ends = async || {
        [sandbox(world, &format!("/checkout/{live}")).await, sandbox(world, &format!("/checkout/{theirs}")).await]
    };
    let before = ends().await;
    let id = shop.create().await["id"].as_str().unwrap().to_owned();
    let (_, moved) = shop.post("/sandbox/advance", json!({"seconds": 1800})).await;
    report.documented(
        addition,
        "a session comes closer to its end",
        moved["sessions"] == 1 && moved["expired"] == 0,
        &moved,
    );
    let (_, moved) = shop.post("/sandbox/advance", json!({"seconds": 1800})).await;
    let payment = shop.get(&format!("/payments/{id}")).await;
    let is_expired = moved["expired"] == 1 && payment["status"] == "expired";
    report.documented(addition, "and expires", is_expired, &(&moved, &payment));
    let after = ends().await;
    report.unnoticed(addition, "nobody else's time moves", before == after, &(before, after));
    let body = json!({"seconds": 60});
    let (status, refused) = world.ask(&world.live.key, Method::POST, "/sandbox/advance", Some(&body)).await;
    let is_refused = status == 403 && refused["code"] == "own_sandbox_required";
    report.documented(addition, "a live key has no sandbox", is_refused, &refused);
}
