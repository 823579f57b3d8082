//! A small shop in memory, in many worlds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Instant,
};

use futures_util::TryStreamExt;
use payments_client::{
    Client, CreatePayment, Event, EventId, EventKind, Method,
    inbox::BoxError,
    testing::{Input, TestServer, World, WorldFailure, Worlds},
    webhook::{Secret, Verifier},
};

/// What is wrong with the shop.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    ChargesAgain,
    ForgetsToVerify,
    ReadsOnlyWebhooks,
    IgnoresDuplicates,
    ChecksBeforeItWrites,
    BelievesTheLastWebhook,
}

struct Shop {
    planted: Planted,
    client: Client,
    verifier: Verifier,
    seen: Mutex<BTreeSet<EventId>>,
    parcels: Mutex<BTreeMap<String, u32>>,
}

impl Shop {
    fn new(world: &World, planted: Planted) -> Self {
        let verifier = Verifier::new(Secret::new(world.secret()).unwrap());
        Self { planted, client: world.client(), verifier, seen: Mutex::default(), parcels: Mutex::default() }
    }

    async fn handle(&self, input: Input) -> Result<(), BoxError> {
        match input {
            Input::Order(order) => {
                let params = CreatePayment::of(order.money)
                    .success_url("https://shop.example/paid")
                    .cancel_url("https://shop.example/cart");
                if self.planted == Planted::ChargesAgain {
                    self.client.payments().create(params.merchant_transaction_id(order.number)).await?;
                } else {
                    let params = params.unique_merchant_transaction_id(&order.number);
                    self.client.payments().create(params).idempotency_key(order.number).await?;
                }
            }
            Input::Webhook(webhook) if self.planted == Planted::ForgetsToVerify => {
                self.apply(&Event::from_unverified_for_tests(&webhook.body)?).await?;
            }
            Input::Webhook(webhook) => {
                let verified = self.verifier.verify(&webhook.signature, &webhook.body)?;
                self.apply(&Event::from_verified(verified)?).await?;
            }
            Input::Tick if self.planted != Planted::ReadsOnlyWebhooks => {
                let mut events = self.client.events().stream_since(None);
                while let Some(event) = events.try_next().await? {
                    self.apply(&event).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn apply(&self, event: &Event) -> Result<(), BoxError> {
        let is_paid = *event.kind() == EventKind::PaymentCompleted;
        let is_last_word =
            self.planted == Planted::BelievesTheLastWebhook && *event.kind() == EventKind::PaymentCreated;
        if !is_paid && !is_last_word {
            return Ok(());
        }
        let number = event.payment()?.merchant_transaction_id;
        if self.planted == Planted::ChecksBeforeItWrites {
            let is_seen = self.seen.lock().unwrap().contains(event.id());
            tokio::task::yield_now().await;
            if is_seen {
                return Ok(());
            }
        }
        let is_new = self.seen.lock().unwrap().insert(event.id().clone());
        if is_new || matches!(self.planted, Planted::IgnoresDuplicates | Planted::ChecksBeforeItWrites) {
            let mut parcels = self.parcels.lock().unwrap();
            let parcels = parcels.entry(number).or_default();
            *parcels = if is_paid { *parcels + 1 } else { 0 };
        }
        Ok(())
    }
}

async fn run(worlds: Worlds, planted: Planted) -> Result<(), WorldFailure> {
    let shop = async |world: World| {
        let shop = Shop::new(&world, planted);
        world.play(|input| shop.handle(input)).await?;
        for order in world.truth().orders {
            let (parcels, paid) =
                (shop.parcels.lock().unwrap().get(&order.number).copied().unwrap_or(0), order.payments.len());
            if parcels != u32::from(order.was_paid()) || paid > 1 {
                return Err(format!("{} has payments: {paid}, parcels: {parcels}", order.number).into());
            }
        }
        Ok(())
    };
    worlds.run(shop).await
}

#[tokio::test]
async fn a_small_shop_ships_each_paid_order_once_in_a_thousand_worlds() {
    let begun = Instant::now();
    run(Worlds::new().count(1_000), Planted::Nothing).await.unwrap();
    println!("1,000 worlds took {:?}", begun.elapsed());
}

#[tokio::test]
async fn each_fault_of_a_small_shop_is_found_and_replayed_in_few_steps() {
    for (planted, name, at_most) in [
        (Planted::ChargesAgain, "charges again", 2),
        (Planted::ForgetsToVerify, "forgets to verify", 2),
        (Planted::ReadsOnlyWebhooks, "reads only webhooks", 2),
        (Planted::IgnoresDuplicates, "ignores duplicates", 3),
        (Planted::ChecksBeforeItWrites, "checks before it writes", 4),
        (Planted::BelievesTheLastWebhook, "believes the last webhook", 4),
    ] {
        let failure = run(Worlds::new(), planted).await.unwrap_err();
        println!("{name}: {failure}\n");
        assert!(failure.history.len() <= at_most, "{name}: {failure}");
        assert_eq!(run(Worlds::seed(failure.seed), planted).await.unwrap_err(), failure);
    }
}

#[tokio::test]
async fn a_shop_that_never_asks_passes_if_its_webhooks_arrive() {
    run(Worlds::new().webhooks_arrive(), Planted::ReadsOnlyWebhooks).await.unwrap();
}

#[tokio::test]
async fn a_failed_assertion_and_an_unknown_route_are_told() {
    let panics = async |world: World| {
        world.play(async |_| Ok::<_, BoxError>(())).await?;
        assert!(world.truth().orders.is_empty(), "there are orders");
        Ok(())
    };
    let failure = Worlds::new().run(panics).await.unwrap_err();
    assert_eq!((failure.error.as_str(), failure.history.len()), ("there are orders", 1), "{failure}");
    let asks = async |world: World| {
        let client = world.client();
        world.play(async |_| client.account().balance().await.map(drop)).await?;
        Ok(())
    };
    let failure = Worlds::new().run(asks).await.unwrap_err();
    assert!(failure.error.starts_with("the shop asked for GET /account/balance"), "{failure}");
    assert!(failure.history.is_empty(), "{failure}");
}

/// What an API answers to the requests that worlds know: status, code, whether it is replayed, and the fields.
async fn answers(client: &Client) -> Vec<String> {
    const PAYMENT: &str = r#"{"amount":5,"success_url":"https://a.example","cancel_url":"https://a.example",
        "merchantTransactionId":"order-1","merchantTransactionIdMustBeUnique":true}"#;
    let (mut answers, mut id, mut event) = (Vec::new(), String::new(), String::new());
    for (key, path, body) in [
        ("", "/account", ""),
        ("", "/payments", ""),
        ("", "/events?after=latest", ""),
        ("1", "/payments", r#"{"amount":0,"success_url":"https://a.example"}"#),
        ("1", "/payments", PAYMENT),
        ("1", "/payments", PAYMENT),
        ("1", "/payments", r#"{"amount":6,"success_url":"https://a.example","cancel_url":"https://a.example"}"#),
        ("2", "/payments", PAYMENT),
        ("", "/payments/{id}", ""),
        ("", "/payments/pay_1", ""),
        ("", "/payments?limit=1&status=pending", ""),
        ("", "/payments?merchantTransactionId=order-1", ""),
        ("", "/payments?merchantTransactionId=order-2", ""),
        ("", "/payments?after={id}", ""),
        ("", "/payments?after=pay_1", ""),
        ("", "/payments?limit=0", ""),
        ("", "/events", ""),
        ("", "/events/{event}", ""),
        ("", "/events/evt_1", ""),
        ("", "/events?after={event}", ""),
        ("", "/events?after=latest", ""),
        ("", "/events?after=evt_1", ""),
        ("", "/events?paymentId=pay_1", ""),
        ("3", "/payments/{id}/refund", "{}"),
        ("4", "/payments/pay_1/refund", "{}"),
    ] {
        let filled = path.replace("{id}", &id).replace("{event}", &event);
        let (route, query) = filled.split_once('?').unwrap_or((&filled, ""));
        let method = if key.is_empty() { Method::GET } else { Method::POST };
        let mut request = client.request(method, &format!("/api/v1{route}"));
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            request = request.query(name.to_owned(), value);
        }
        if !key.is_empty() {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            request = request.json(&body).idempotency_key(key);
        }
        let answer = match request.await {
            Ok(answer) => answer,
            Err(error) => error.response().unwrap().clone(),
        };
        let body: serde_json::Value = answer.json().unwrap();
        let fields = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(name, value)| format!("{name} {}", value.is_null())).collect()
        };
        if let Some(created) = body["id"].as_str().filter(|id| id.starts_with("pay_")) {
            id = created.into();
        }
        if let Some(first) = body["items"][0]["id"].as_str().filter(|id| id.starts_with("evt_")) {
            event = first.into();
        }
        let (status, is_replayed, code) = (answer.status, answer.is_replayed(), &body["code"]);
        answers.push(format!(
            "{path}: {status} {code} {} {is_replayed} {:?} {:?} {:?}",
            body["fields"],
            fields(&body),
            fields(&body["items"][0]),
            [&body["total"], &body["hasMore"], &body["status"], &body["items"][0]["event"]]
        ));
    }
    answers
}

#[tokio::test]
async fn a_world_answers_as_the_server_does() {
    let server = TestServer::start_program(test_support::server_binary()).await.unwrap();
    let expected = answers(server.client()).await;
    let compared = async |world: World| {
        for (found, expected) in answers(&world.client()).await.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
        Ok(())
    };
    Worlds::seed(1).run(compared).await.unwrap();
}
