//! What is held on a customer: its export and its erasure, over HTTP and on the command line.

use std::process::{Command, Stdio};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::Receiver,
    server::{Server, eventually, server_binary, text_of},
};

const PHONE: &str = "01712345678";
const VALUES: [&str; 3] = ["Rina Akter", "rina@example.org", "345678"];

struct Merchant {
    server: Server,
    key: String,
}

impl Merchant {
    fn start(engine: Engine) -> Self {
        let server = Server::start_on(engine, &["--rate-limit", "0", "--keyless-rate-limit", "0"]);
        let key = server.new_key("Rahim", "test");
        Self { server, key }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.server.keyless(method, &format!("/api/v1{path}")).bearer_auth(&self.key)
    }

    async fn get(&self, path: &str) -> Value {
        self.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
    }

    /// Creates a payment of the customer. Returns the response and whether it was replayed.
    async fn create(&self, order: &str) -> (Value, bool) {
        let body = json!({"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
            "customer": {"name": "Rina Akter", "email": "Rina@Example.org", "phone": "+880 1712-345678"},
            "description": "for Rina Akter", "metadata": {"order": order}});
        let answer = self.request(Method::POST, "/payments").header("idempotency-key", order).json(&body).send().await;
        let answer = answer.unwrap();
        let is_replayed = answer.headers().contains_key("idempotent-replayed");
        (answer.json().await.unwrap(), is_replayed)
    }

    async fn simulate(&self, id: &str, outcome: &str) {
        let request = self.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate"));
        assert_eq!(request.json(&json!({"action": outcome})).send().await.unwrap().status(), 200);
    }

    fn export(&self, by: [&str; 2]) -> Vec<Value> {
        let text = self.server.run(&[&["customers", "export", "--workspace", "Rahim"][..], &by].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether the erasure left nothing, and what it printed.
    fn erase(&self, more: &[&str]) -> (bool, String) {
        let erase = ["customers", "erase", "--workspace", "Rahim", "--phone", PHONE, "--yes"];
        let output = self.server.try_run(&[&erase, more].concat());
        (output.status.success(), text_of(&output))
    }
}

fn assert_has_none(what: &Value) {
    let text = what.to_string();
    assert!(VALUES.iter().all(|value| !text.to_lowercase().contains(&value.to_lowercase())), "{text}");
}

async fn a_customer_is_erased(engine: Engine) {
    let merchant = Merchant::start(engine);
    let receiver = Receiver::ok().await;
    let hook = json!({"url": receiver.url(), "events": "*"});
    assert_eq!(merchant.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().status(), 201);
    let (paid, _) = merchant.create("order-1").await;
    let (open, _) = merchant.create("order-2").await;
    let id = |payment: &Value| payment["id"].as_str().unwrap().to_owned();
    merchant.simulate(&id(&paid), "success").await;
    let deliveries = eventually("three deliveries", || async {
        let list = merchant.get("/webhooks/deliveries").await;
        let is_ended = |it: &Value| it["status"] == "success";
        (list["total"] == 3 && list["items"].as_array().unwrap().iter().all(is_ended)).then_some(list)
    })
    .await;
    let of_paid = |it: &&Value| it["payload"]["data"]["id"] == paid["id"];
    let sent = deliveries["items"].as_array().unwrap().iter().find(of_paid).unwrap();
    let resend = format!("/webhooks/deliveries/{}/resend", sent["id"].as_str().unwrap());
    let resend = || merchant.request(Method::POST, &resend).header("idempotency-key", "again");
    assert_eq!(resend().send().await.unwrap().status(), 201);

    let held = merchant.export(["--email", "rina@example.org"]);
    assert_eq!(held.len(), 2);
    let of_paid = held.iter().find(|it| it["payment"]["id"] == paid["id"]).unwrap();
    assert_eq!(of_paid["found_by"], json!(["email", "phone"]));
    let count = |name: &str| of_paid[name].as_array().unwrap().len();
    assert_eq!((count("events"), count("deliveries"), count("stored_responses")), (2, 3, 1));
    assert!(VALUES.iter().all(|value| of_paid.to_string().contains(value) || value.starts_with("rina")));

    let (is_all, said) = merchant.erase(&["--lines"]);
    assert!(
        !is_all && said.contains("erased in 1 payments, 2 search entries, 2 events, 3 deliveries and 1 stored"),
        "{said}"
    );
    assert!(said.contains(&format!("{} keeps its data: it is open", id(&open))), "{said}");
    let remains = if engine == Engine::Directory { "journal" } else { "VACUUM" };
    assert!(said.contains(remains), "{said}");
    let payment = merchant.get(&format!("/payments/{}", id(&paid))).await;
    assert_has_none(&payment);
    assert_eq!(
        (&payment["amount"], &payment["metadata"], &payment["customer"]["name"]),
        (&json!(750), &json!({"order": "order-1"}), &Value::Null)
    );
    let found = merchant.get(&format!("/payments?customerPhone={PHONE}")).await;
    assert_eq!(found["items"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), [id(&open)]);
    for event in merchant.get("/events").await["items"].as_array().unwrap() {
        if event["data"]["id"] == paid["id"] {
            assert_has_none(event);
        }
    }
    assert_has_none(&merchant.get(&format!("/payments/{}/timeline", id(&paid))).await);
    let (replayed, is_replayed) = merchant.create("order-1").await;
    assert!(is_replayed && replayed["id"] == paid["id"]);
    assert_has_none(&replayed);
    let resent = resend().send().await.unwrap();
    assert_eq!(resent.headers()["idempotent-replayed"], "true");
    assert_has_none(&resent.json().await.unwrap());

    merchant.simulate(&id(&open), "fail").await;
    let (is_all, said) = merchant.erase(&["--metadata", "--lines"]);
    assert!(is_all && said.contains("erased in 1 payments"), "{said}");
    for path in ["/payments", "/events", "/webhooks/deliveries"] {
        assert_has_none(&merchant.get(path).await);
    }
    assert_eq!(merchant.export(["--phone", PHONE]), Vec::<Value>::new());
    let without_yes = ["customers", "erase", "--workspace", "Rahim", "--phone", PHONE];
    assert!(!merchant.server.try_run(&without_yes).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_exported_and_erased() {
    a_customer_is_erased(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_exported_and_erased_on_a_database() {
    a_customer_is_erased(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_goes_on_after_a_kill_in_its_middle() {
    let mut merchant = Merchant::start(Engine::Directory);
    let orders: Vec<String> = (0..150).map(|nth| format!("order-{nth}")).collect();
    join_all(orders.iter().map(|order| async {
        let (payment, _) = merchant.create(order).await;
        merchant.simulate(payment["id"].as_str().unwrap(), "fail").await;
    }))
    .await;
    let mut command = Command::new(server_binary());
    command.args(["customers", "erase", "--workspace", "Rahim", "--phone", PHONE, "--yes", "--data-dir"]);
    let mut erasing = command.arg(merchant.server.data()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the first erased payment", || async {
        let page = merchant.get(&format!("/payments?customerPhone={PHONE}&limit=100")).await;
        (page["items"].as_array().unwrap().len() < 100 || page["hasMore"] == false).then_some(())
    })
    .await;
    merchant.server.kill();
    erasing.wait().unwrap();
    merchant.server.restart();
    let left = merchant.export(["--phone", PHONE]).len();
    let (is_all, said) = merchant.erase(&[]);
    assert!(is_all && said.contains(&format!("erased in {left} payments")), "{left} were left: {said}");
    for page in ["/payments?limit=100", "/payments?limit=100&page=2"] {
        for payment in merchant.get(page).await["items"].as_array().unwrap() {
            assert_eq!(payment["customerPhone"], Value::Null);
        }
    }
}
