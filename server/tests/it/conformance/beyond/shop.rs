//! A merchant with its own workspace.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::super::world::World;
use crate::{
    receiver::{Received, Receiver, Reply},
    server::{eventually, payment_of},
};

/// A merchant with a test key and an endpoint for every event.
pub(super) struct Shop<'w> {
    world: &'w World,
    pub(super) key: String,
    pub(super) receiver: Receiver,
    /// The endpoint as the API returned it.
    pub(super) endpoint: Value,
}

impl<'w> Shop<'w> {
    pub(super) async fn open(world: &'w World) -> Self {
        Self::replying(world, &[StatusCode::OK]).await
    }

    /// A shop whose endpoint replies to each request with the next status, and repeats the last one.
    pub(super) async fn replying(world: &'w World, statuses: &[StatusCode]) -> Self {
        let key = world.server().new_key("Shop", "test");
        let receiver = Receiver::start(Reply::InTurn(statuses.to_vec())).await;
        let mut shop = Self { world, key, receiver, endpoint: Value::Null };
        shop.endpoint = shop.post("/webhooks", json!({"url": shop.receiver.url(), "events": "*"})).await.1;
        shop
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.world.ask(&self.key, Method::GET, path, None).await.1
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.world.ask(&self.key, Method::POST, path, Some(&body)).await
    }

    /// Sends a request about its endpoint.
    pub(super) async fn ask_endpoint(&self, what: &str, body: Value) -> (u16, Value) {
        self.post(&format!("/webhooks/{}/{what}", self.endpoint["id"].as_str().unwrap()), body).await
    }

    pub(super) async fn edit_endpoint(&self, body: Value) -> Value {
        let path = format!("/webhooks/{}", self.endpoint["id"].as_str().unwrap());
        self.world.ask(&self.key, Method::PATCH, &path, Some(&body)).await.1
    }

    pub(super) fn secret(&self) -> &str {
        self.endpoint["secret"].as_str().unwrap()
    }

    pub(super) async fn create(&self) -> Value {
        self.post("/payments", payment_of(&json!(750))).await.1
    }

    /// Creates a payment that completes.
    pub(super) async fn paid(&self) -> Value {
        let id = self.create().await["id"].as_str().unwrap().to_owned();
        self.post(&format!("/checkout/{id}/simulate"), json!({"status": "completed"})).await;
        self.get(&format!("/payments/{id}")).await
    }

    /// Waits until there are `count` deliveries and none is pending. Returns them, newest first.
    pub(super) async fn ended(&self, count: usize) -> Vec<Value> {
        eventually("the deliveries to end", async || {
            let list = self.get("/webhooks/deliveries?limit=100").await;
            let items = list["items"].as_array().unwrap();
            let is_ended = list["total"] == count && items.iter().all(|one| one["status"] != "pending");
            is_ended.then(|| items.clone())
        })
        .await
    }

    /// The request that the endpoint received last.
    pub(super) fn last_received(&self) -> Received {
        self.receiver.received().pop().unwrap()
    }
}

/// The names of an object's fields.
pub(super) fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A field of each item of a list.
pub(super) fn each<'l>(list: &'l Value, field: &str) -> Vec<&'l Value> {
    list["items"].as_array().unwrap().iter().map(|item| &item[field]).collect()
}
