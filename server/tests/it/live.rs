//! A server with fakes of bKash and Stripe, and a merchant with a live key.

use std::path::PathBuf;

use gateway_fakes::{
    Running,
    bkash::{self, Bkash},
    stripe::{self, Stripe},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    engine::Engine,
    server::{Server, eventually, write_settings},
};

pub(crate) struct Live {
    pub(crate) server: Server,
    pub(crate) bkash: Running<Bkash>,
    pub(crate) stripe: Running<Stripe>,
    pub(crate) key: String,
    _config: TempDir,
}

impl Live {
    pub(crate) async fn start(settings: &str) -> Self {
        Self::start_with(settings, &[]).await
    }

    pub(crate) async fn start_with(settings: &str, arguments: &[&str]) -> Self {
        Self::start_on(Engine::Directory, settings, arguments).await
    }

    pub(crate) async fn start_on(engine: Engine, settings: &str, arguments: &[&str]) -> Self {
        Self::start_by(Bkash::new(), engine, settings, "", arguments).await
    }

    /// With this fake of bKash, and more settings of it.
    pub(crate) async fn start_by(bkash: Bkash, engine: Engine, settings: &str, more: &str, arguments: &[&str]) -> Self {
        let bkash = Running::start(bkash, "127.0.0.1:0").await.unwrap();
        let stripe = Running::start(Stripe::new(), "127.0.0.1:0").await.unwrap();
        let directory = TempDir::new().unwrap();
        let file: PathBuf = directory.path().join("payments.toml");
        let config = format!("{settings}\n{}\n{more}\n{}", bkash.settings(), stripe.settings());
        write_settings(&file, &config);
        let server = Server::start_on(engine, &[&["--config", file.to_str().unwrap()], arguments].concat());
        stripe.program().send_events_to(&format!("{}/gateways/stripe/webhook", server.url), 2);
        let key = server.new_key("Rahim & Sons", "live");
        Self { server, bkash, stripe, key, _config: directory }
    }

    /// A request to a path under `/api/v1` with the live key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.server.keyless(method, &format!("/api/v1{path}")).bearer_auth(&self.key)
    }

    pub(crate) async fn create(&self, amount: f64, currency: &str) -> String {
        let body = json!({"amount": amount, "currency": currency, "success_url": "https://shop.example/paid",
            "cancel_url": "https://shop.example/cart", "description": "Two cups",
            "lineItems": [{"name": "Cup", "quantity": 2}], "ways": ["mfs", "card"]});
        let answer = self.request(Method::POST, "/payments").json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn payment(&self, id: &str) -> Value {
        self.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap().json().await.unwrap()
    }

    /// Starts a gateway attempt and returns the URL of the gateway's page and the gateway's id of the attempt.
    pub(crate) async fn pay(&self, id: &str) -> (String, String) {
        let answer = self.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let result: Value = answer.json().await.unwrap();
        let url = result["redirectUrl"].as_str().unwrap().to_owned();
        assert_eq!(result.as_object().unwrap().len(), 1, "the result of a live session has only redirectUrl");
        let attempt = url.rsplit('/').next().unwrap().to_owned();
        (url, attempt)
    }

    /// Requests the return URL as the browser does and returns the redirect target.
    pub(crate) async fn come_back(&self, url: &str) -> String {
        let path = url.strip_prefix(&self.server.url).unwrap();
        let answer = self.server.keyless(Method::GET, path).send().await.unwrap();
        assert_eq!(answer.status(), 303);
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    /// Waits until a payment has this `rawStatus`.
    pub(crate) async fn becomes(&self, id: &str, status: &str) -> Value {
        eventually(&format!("{id} to be {status}"), async || {
            let payment = self.payment(id).await;
            (payment["rawStatus"] == status).then_some(payment)
        })
        .await
    }

    /// Waits until a payment needs manual review. Returns the list of all these payments.
    pub(crate) async fn reviews(&self, id: &str) -> String {
        // Reading the log is cheaper than the command.
        eventually(&format!("a manual review of {id}"), async || {
            let log = self.server.log();
            log.lines().any(|line| line.contains("needs manual review") && line.contains(id)).then_some(())
        })
        .await;
        eventually("the review in the list", async || {
            Some(self.server.run(&["reviews", "list"])).filter(|list| list.contains(id))
        })
        .await
    }

    /// Creates a payment, approves it at the gateway and returns to the shop.
    pub(crate) async fn paid(&self, amount: f64, currency: &str) -> String {
        let id = self.create(amount, currency).await;
        let (_, attempt) = self.pay(&id).await;
        let back = match currency {
            "BDT" => self.bkash.program().approve(&attempt, bkash::WALLET),
            _ => self.stripe.program().pay(&attempt, stripe::CARD),
        };
        let shop = self.come_back(&back.unwrap()).await;
        assert_eq!(shop, format!("https://shop.example/paid?payment_id={id}&status=completed"));
        id
    }
}
