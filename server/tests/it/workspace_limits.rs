//! The limits of a workspace, over HTTP and on the command line.

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    server::{Server, payment_of, text_of},
};

struct Merchant {
    server: Server,
    key: String,
}

impl Merchant {
    fn start(engine: Engine) -> Self {
        let server = Server::start_on(engine, &["--rate-limit", "0"]);
        let key = server.new_key("Rahim", "test");
        Self { server, key }
    }

    /// Sets limits, and returns what the command prints.
    fn limit(&self, arguments: &[&str]) -> String {
        self.server.run(&[&["workspaces", "limits", "Rahim"], arguments].concat())
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Option<String>, Value) {
        let request = self.server.keyless(Method::POST, &format!("/api/v1{path}")).bearer_auth(&self.key);
        let answer = request.json(body).send().await.unwrap();
        let wait = answer.headers().get("retry-after").map(|wait| wait.to_str().unwrap().to_owned());
        (answer.status(), wait, answer.json().await.unwrap())
    }

    async fn create(&self, amount: u32) -> String {
        let (_, _, body) = self.post("/payments", &payment_of(&json!(amount))).await;
        body["code"].as_str().unwrap_or("created").to_owned()
    }

    async fn account(&self) -> Value {
        let request = self.server.keyless(Method::GET, "/api/v1/account").bearer_auth(&self.key);
        request.send().await.unwrap().json().await.unwrap()
    }
}

async fn each_limit_refuses_with_its_code(engine: Engine) {
    let merchant = Merchant::start(engine);
    assert_eq!(merchant.limit(&[]), "");
    assert!(merchant.account().await.get("limits").is_none());
    let set = ["--payment-at-most", "BDT=500", "--payment-at-most", "USD=20", "--day-at-most", "BDT=1000"];
    let shown = "payment-at-most BDT=500\npayment-at-most USD=20\nday-at-most BDT=1000";
    assert_eq!(merchant.limit(&set), shown);
    assert_eq!(
        merchant.account().await["limits"],
        json!({"paymentAtMost": {"bdt": 500, "usd": 20},
        "dayAtMost": {"bdt": 1000, "usd": null}, "paymentsAMinute": null, "keys": null, "endpoints": null})
    );
    let (status, _, body) = merchant.post("/payments", &payment_of(&json!(500.01))).await;
    let message =
        "this workspace takes at most 500 BDT a payment; ask for less, or have the server's operator raise the limit";
    assert_eq!(
        (status.as_u16(), &body["code"], &body["message"]),
        (409, &json!("payment_limit_exceeded"), &json!(message))
    );
    let made = join_all((0..20).map(|_| merchant.create(300))).await;
    let count = |code: &str| made.iter().filter(|it| *it == code).count();
    assert_eq!((count("created"), count("day_limit_exceeded")), (3, 17));
    assert_eq!(merchant.create(100).await, "created");
    let (_, _, body) = merchant.post("/payments", &payment_of(&json!(1))).await;
    assert!(body["message"].as_str().unwrap().starts_with("0 BDT is left of the 1000 BDT"), "{body}");

    merchant.limit(&["--day-at-most", "BDT=none", "--payments-a-minute", "5"]);
    assert_eq!(merchant.create(1).await, "created");
    let (status, wait, body) = merchant.post("/payments", &payment_of(&json!(1))).await;
    assert_eq!((status.as_u16(), &body["code"]), (429, &json!("payment_rate_exceeded")));
    assert!((1..=60).contains(&wait.unwrap().parse::<u64>().unwrap()));

    merchant.limit(&["--payments-a-minute", "none", "--endpoints", "1", "--keys", "2"]);
    let hook = json!({"url": "http://127.0.0.1:9/hook", "events": "*"});
    assert_eq!(merchant.post("/webhooks", &hook).await.0, 201);
    assert_eq!(merchant.post("/webhooks", &hook).await.2["code"], "webhook_endpoint_limit_reached");
    let create = ["keys", "create", "--workspace", "Rahim", "--environment", "live"];
    let second = merchant.server.run(&create);
    let refused = merchant.server.try_run(&create);
    assert!(text_of(&refused).contains("API key limit reached (2 that work per workspace)"), "{}", text_of(&refused));
    merchant.server.run(&["keys", "revoke", &second]);
    merchant.server.run(&create);

    for wrong in [["--keys", "0"], ["--day-at-most", "BDT=0"], ["--day-at-most", "500"]] {
        let arguments = [&["workspaces", "limits", "Rahim"][..], &wrong].concat();
        assert!(!merchant.server.try_run(&arguments).status.success(), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_of_a_workspace_refuses_with_its_code() {
    each_limit_refuses_with_its_code(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_of_a_workspace_refuses_with_its_code_on_a_database() {
    each_limit_refuses_with_its_code(Engine::Postgres).await;
}
