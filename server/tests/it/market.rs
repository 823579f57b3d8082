//! A server with a fake of each gateway, none of which is named, and a merchant with a live key.

use std::sync::Arc;

use gateway_fakes::{Back, Fake, Running};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    engine::Engine,
    server::{Server, eventually, write_settings},
};

pub(crate) struct Market {
    pub(crate) server: Server,
    pub(crate) fakes: Vec<Running<dyn Fake>>,
    pub(crate) key: String,
    _config: TempDir,
}

impl Market {
    pub(crate) async fn open(engine: Engine, gateways: Vec<Arc<dyn Fake>>, settings: &str) -> Self {
        let mut fakes = Vec::new();
        for fake in gateways {
            fakes.push(Running::share(fake, "127.0.0.1:0").await.unwrap());
        }
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("payments.toml");
        let sections: Vec<_> = fakes.iter().map(Running::settings).collect();
        write_settings(&file, &format!("{settings}\n{}", sections.join("\n")));
        let server = Server::start_on(engine, &["--config", file.to_str().unwrap()]);
        fakes.iter().for_each(|fake| fake.program().tell(&server.url));
        let key = server.new_key("Rahim & Sons", "live");
        Self { server, fakes, key, _config: directory }
    }

    /// Creates a payment with these fields, beside those that every payment needs.
    pub(crate) async fn create(&self, more: &Value) -> Value {
        let create = self.server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&self.key);
        let answer = create.json(&order(more)).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    pub(crate) async fn becomes(&self, id: &str, status: &str) -> Value {
        eventually(&format!("{id} to be {status}"), async || {
            let path = format!("/api/v1/payments/{id}");
            let read = self.server.keyless(Method::GET, &path).bearer_auth(&self.key).send().await.unwrap();
            let payment: Value = read.json().await.unwrap();
            (payment["rawStatus"] == status).then_some(payment)
        })
        .await
    }
}

/// The body of a new payment.
pub(crate) fn order(more: &Value) -> Value {
    let mut body = json!({"amount": 25, "currency": "BDT", "success_url": "https://shop.example/paid",
        "cancel_url": "https://shop.example/cart", "description": "Two cups",
        "customer": {"name": "Karim", "email": "karim@example.com", "phone": "01712345678"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The request with which the browser goes back.
pub(crate) fn return_by(http: &reqwest::Client, back: &Back) -> reqwest::RequestBuilder {
    match back.method.as_str() {
        "GET" => http.get(&back.url),
        _ => http.post(&back.url).header("content-type", "application/x-www-form-urlencoded").body(back.body()),
    }
}
