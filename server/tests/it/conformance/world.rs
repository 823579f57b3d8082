//! The server, a merchant and a webhook receiver.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    live::Live,
    receiver::{Receiver, Reply},
    server::{SANDBOX_KEY, Server, eventually},
};

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) live: Live,
    pub(super) receiver: Receiver,
    pub(super) secret: String,
}

impl World {
    pub(super) async fn new(engine: Engine) -> Self {
        let unlimited = ["--rate-limit", "0", "--keyless-rate-limit", "0"];
        let live = Live::start_on(engine, "gateway-timeout = 1", &unlimited).await;
        let receiver = Receiver::start(Reply::Status(StatusCode::OK, "x".repeat(3000))).await;
        let body = json!({"url": receiver.url(), "events": "*"});
        let mut secret = String::new();
        for key in [SANDBOX_KEY, &live.key] {
            let request = live.server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(key).json(&body);
            let endpoint: Value = request.send().await.unwrap().json().await.unwrap();
            // The live endpoint is the last one. The tests check signatures with its secret.
            secret = endpoint["secret"].as_str().unwrap().to_owned();
        }
        Self { engine, live, receiver, secret }
    }

    pub(super) fn server(&self) -> &Server {
        &self.live.server
    }

    pub(super) async fn ask(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = self.server().keyless(method, &format!("/api/v1{path}")).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// The received events of a kind about a payment.
    pub(super) async fn events(&self, kind: &str, about: &str) -> Vec<Value> {
        let all = self.receiver.received().into_iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap());
        all.filter(|event| event["event"] == kind && event.to_string().contains(about)).collect()
    }

    pub(super) async fn event(&self, kind: &str, about: &str) -> Value {
        eventually(kind, async || self.events(kind, about).await.pop()).await
    }
}

pub(super) fn has(value: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| value.get(field).is_some())
}
