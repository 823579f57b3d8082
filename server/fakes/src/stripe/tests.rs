//! Tests of the fake without sockets.

mod balance;
mod disputes;
mod lists;
mod payments;
mod payouts;
mod refunds;

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::{CARD, SECRET_KEY, SLOW_CARD, Stripe};
use crate::{Answer, Call, Form, Program as _};

/// A merchant with the fake, which keeps its events.
struct Merchant {
    stripe: Arc<Stripe>,
}

/// The ids of a payment.
struct Payment {
    session: String,
    intent: String,
    charge: String,
}

fn form(text: &str) -> Form {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The code, or else the message, of an error, and its parameter.
fn error(answer: &Value) -> (&str, &str) {
    let text = |name: &str| answer["error"][name].as_str();
    (text("code").or(text("message")).unwrap(), text("param").unwrap_or_default())
}

impl Merchant {
    fn new() -> Self {
        let stripe = Stripe::new();
        stripe.keep_events();
        Self { stripe: Arc::new(stripe) }
    }

    fn call(&self, method: Method, path: &str, query: Form, body: String) -> Value {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {SECRET_KEY}").parse().unwrap());
        headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
        let call = Call { method, path: path.into(), query, headers, body: body.into() };
        let Answer { body, .. } = self.stripe.answer(&call, "https://stripe.example");
        serde_json::from_str(&body).unwrap()
    }

    /// Gets `/v1/` and this path with its query.
    fn get(&self, path: &str) -> Value {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        self.call(Method::GET, &format!("/v1/{path}"), form(query), String::new())
    }

    fn post(&self, path: &str, body: &str) -> Value {
        self.call(Method::POST, &format!("/v1/{path}"), Form::default(), body.into())
    }

    fn control(&self, name: &str, order: &Value) -> Value {
        self.call(Method::POST, &format!("/_control/{name}"), Form::default(), order.to_string())
    }

    /// Creates a session for a reference, with more fields.
    fn session(&self, reference: &str, minor: u64, more: &str) -> String {
        let item = "line_items[0][quantity]=1&line_items[0][price_data][currency]=usd";
        let session = self.post(
            "checkout/sessions",
            &format!(
                "mode=payment&success_url=https://shop.example&client_reference_id={reference}&{item}&\
                 line_items[0][price_data][product_data][name]=Cup&line_items[0][price_data][unit_amount]={minor}{more}"
            ),
        );
        session["id"].as_str().unwrap_or_else(|| panic!("{session}")).to_owned()
    }

    fn paid(&self, reference: &str, minor: u64) -> Payment {
        let session = self.session(reference, minor, "&payment_intent_data[metadata][payment_id]=pay_1");
        self.stripe.pay(&session, CARD).unwrap();
        self.payment(session)
    }

    fn payment(&self, session: String) -> Payment {
        let shown = self.get(&format!("checkout/sessions/{session}?expand[]=payment_intent"));
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
        let intent = &shown["payment_intent"];
        Payment { intent: text(&intent["id"]), charge: text(&intent["latest_charge"]), session }
    }

    /// The types and objects of the events since the last call.
    fn events(&self) -> Vec<(String, Value)> {
        let events = self.stripe.take_events().into_iter().map(|event| {
            let event: Value = serde_json::from_str(&event.body).unwrap();
            (event["type"].as_str().unwrap().to_owned(), event["data"]["object"].clone())
        });
        events.collect()
    }

    /// The types of the events since the last call.
    fn event_types(&self) -> Vec<String> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    /// The balance transaction of an object: its type, category, amount, fee and net.
    fn row(&self, id: &Value) -> Value {
        let row = self.get(&format!("balance_transactions/{}", id.as_str().unwrap_or_else(|| panic!("{id}"))));
        assert!(row["id"].as_str().unwrap().starts_with("txn_"), "{row}");
        assert_eq!(row["object"], "balance_transaction");
        json!([row["type"], row["reporting_category"], row["amount"], row["fee"], row["net"]])
    }
}
