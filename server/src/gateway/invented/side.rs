//! Coinpost's side, in memory, and the transport to it.

use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use parking_lot::Mutex;
use reqwest::{Body, Request, StatusCode};
use serde_json::Value;

use crate::gateway::call::{NoResponse, Response, Transport};

pub(super) const API_KEY: &str = "stamp-and-seal";
pub(super) const NOTICE_KEY: &str = "written-with-lemon-juice";

#[derive(Default)]
pub(super) struct Side(Mutex<Books>);

#[derive(Default)]
struct Books {
    orders: Vec<Value>,
    refunds: Vec<Value>,
    calls: Vec<String>,
}

/// The way to it.
pub(super) struct Post(pub(super) Arc<Side>);

#[async_trait]
impl Transport for Post {
    async fn send(&self, request: Request) -> Result<Response, NoResponse> {
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
        let (status, answer) = match request.headers().get("authorization") {
            Some(key) if key == API_KEY => {
                let call = format!("{} {}", request.method(), request.url().path());
                (StatusCode::OK, self.0.answer(&call, &serde_json::from_slice(body).unwrap_or_default()))
            }
            _ => (StatusCode::UNAUTHORIZED, Value::Null),
        };
        Ok(Response { status, body: answer.to_string().into() })
    }
}

impl Side {
    fn answer(&self, call: &str, body: &Value) -> Value {
        let books = &mut *self.0.lock();
        books.calls.push(call.to_owned());
        let parts: Vec<_> = call.split([' ', '/']).filter(|part| !part.is_empty()).collect();
        match *parts {
            ["POST", "orders"] => {
                let mut order = body.clone();
                order["state"] = "open".into();
                order["page"] = format!("https://coinpost.invalid/{}", body["reference"].as_str().unwrap()).into();
                books.orders.push(order.clone());
                order
            }
            ["GET", "orders", order] => books.order(order).clone(),
            ["POST", "orders", order, "close"] => {
                let order = books.order(order);
                if order["state"] == "open" {
                    order["state"] = "closed".into();
                }
                order.clone()
            }
            ["POST", "refunds"] => {
                if let Some(known) = books.refunds.iter().find(|it| it["reference"] == body["reference"]) {
                    return known.clone();
                }
                let is_sent = |it: &&Value| it["order"] == body["order"] && it["state"] != "lost";
                let sent: u64 = books.refunds.iter().filter(is_sent).filter_map(|it| it["minor"].as_u64()).sum();
                let order = books.order(body["order"].as_str().unwrap());
                let fits = sent + body["minor"].as_u64().unwrap() <= order["minor"].as_u64().unwrap();
                let mut refund = body.clone();
                refund["id"] = format!("back-{}", books.refunds.len() + 1).into();
                refund["state"] = if fits { "accepted" } else { "refused" }.into();
                books.refunds.push(refund.clone());
                refund
            }
            ["GET", "orders", order, "refunds"] => {
                books.refunds.iter().filter(|it| it["order"] == order).cloned().collect()
            }
            _ => Value::Null,
        }
    }

    /// The calls since the last question.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().calls)
    }

    pub(super) fn order(&self, reference: &str) -> Value {
        self.0.lock().order(reference).clone()
    }

    /// The envelope of coins arrives.
    pub(super) fn take(&self, reference: &str) {
        let mut books = self.0.lock();
        let order = books.order(reference);
        (order["state"], order["transaction"]) = ("taken".into(), "envelope-1".into());
    }

    /// The envelope is empty.
    pub(super) fn decline(&self, reference: &str) {
        let mut books = self.0.lock();
        let order = books.order(reference);
        (order["state"], order["why"]) = ("declined".into(), "empty".into());
    }

    /// A refund ends.
    pub(super) fn end_refund(&self, nth: usize, state: &str) {
        let mut books = self.0.lock();
        let refund = &mut books.refunds[nth];
        (refund["state"], refund["why"]) = (state.into(), "the envelope was empty".into());
    }
}

impl Books {
    fn order(&mut self, reference: &str) -> &mut Value {
        self.orders.iter_mut().find(|it| it["reference"] == reference).unwrap()
    }
}

/// A notice about an order or its refunds.
pub(super) fn notice(about: &str, order: &str, key: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let sign = hex::encode(hmac::sign(&key, format!("{about}.{order}").as_bytes()));
    format!("about={about}&order={order}&sign={sign}").into_bytes()
}
