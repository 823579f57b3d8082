//! Requests of clients, and the JSON in them and in their answers.

use std::{mem, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request};
use parking_lot::Mutex;
use serde_json::Value;

use super::node::Response;

/// A merchant's API key, which the operator may replace at any time.
#[derive(Debug, Clone, Default)]
pub(super) struct Key(Arc<Mutex<String>>);

impl Key {
    pub(super) fn new(text: String) -> Self {
        Self(Arc::new(Mutex::new(text)))
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().clone()
    }

    /// Returns the earlier text.
    pub(super) fn replace(&self, text: String) -> String {
        mem::replace(&mut self.0.lock(), text)
    }
}

/// A request of a client.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) key: Option<Key>,
    pub(super) idempotency_key: Option<String>,
    pub(super) signature: Option<String>,
    body: Option<Body>,
}

#[derive(Debug, Clone)]
enum Body {
    Json(Value),
    Form(String),
}

impl Ask {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), key: None, idempotency_key: None, signature: None, body: None }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, body: Some(Body::Json(body)), ..Self::get(path) }
    }

    /// A form of a page.
    pub(super) fn form(path: impl Into<String>, form: impl Into<String>) -> Self {
        Self { method: Method::POST, body: Some(Body::Form(form.into())), ..Self::get(path) }
    }

    pub(super) fn by(self, key: &Key) -> Self {
        Self { key: Some(key.clone()), ..self }
    }

    pub(super) fn once(self, idempotency_key: &str) -> Self {
        Self { idempotency_key: Some(idempotency_key.to_owned()), ..self }
    }

    /// The same request with a slash at the end of its path.
    pub(super) fn slashed(&self) -> Self {
        Self { path: format!("{}/", self.path), ..self.clone() }
    }

    pub(super) fn signed(self, signature: String) -> Self {
        Self { signature: Some(signature), ..self }
    }

    pub(super) fn request(&self) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path).header("host", "pay.example");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {}", key.text()));
        }
        if let Some(signature) = &self.signature {
            request = request.header("stripe-signature", signature);
        }
        if let Some(key) = &self.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let (kind, body) = match &self.body {
            None => return request.body(Full::default()).ok(),
            Some(Body::Json(body)) => ("application/json", body.to_string()),
            Some(Body::Form(form)) => ("application/x-www-form-urlencoded", form.clone()),
        };
        request = request.header("content-type", kind).header("content-length", body.len());
        request.body(Full::new(body.into())).ok()
    }
}

impl Response {
    /// The body as JSON; null if it is no JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An amount in major units, as JSON.
pub(super) fn amount(minor: u64) -> Value {
    serde_json::from_str(&format!("{}.{:02}", minor / 100, minor % 100)).unwrap_or_default()
}

/// A text field; empty if it is no text.
pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
