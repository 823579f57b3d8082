//! Tests of the fake without sockets.

mod payments;
mod refunds;
mod requests;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::{PAGE, SESSION, STORE_ID, STORE_PASSWORD, SslCommerz, TRANSACTION, VALIDATE};
use crate::{Answer, Call, Form, Program as _};

/// A merchant with the fake, which keeps its notices.
struct Merchant {
    fake: SslCommerz,
}

/// The fields of a session, all mandatory ones.
const ORDER: [(&str, &str); 21] = [
    ("store_id", STORE_ID),
    ("store_passwd", STORE_PASSWORD),
    ("total_amount", "150"),
    ("currency", "BDT"),
    ("tran_id", "order-1"),
    ("product_category", "Cups"),
    ("success_url", "https://shop.example/paid"),
    ("fail_url", "https://shop.example/failed"),
    ("cancel_url", "https://shop.example/cancelled"),
    ("ipn_url", "https://shop.example/ipn"),
    ("cus_name", "Rahim"),
    ("cus_email", "rahim@shop.example"),
    ("cus_add1", "Road 1"),
    ("cus_city", "Dhaka"),
    ("cus_country", "Bangladesh"),
    ("cus_phone", "01711111111"),
    ("shipping_method", "NO"),
    ("num_of_item", "1"),
    ("product_name", "Cup"),
    ("product_profile", "general"),
    ("value_a", "pay_1"),
];

fn form<'f>(fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> Form {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn encoded(form: &Form) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form.iter()).finish()
}

impl Merchant {
    fn new() -> Self {
        let fake = SslCommerz::new();
        fake.keep_notices();
        Self { fake }
    }

    fn call(&self, method: Method, path: &str, query: Form, kind: &str, body: String) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", kind.parse().unwrap());
        let call = Call { method, path: path.into(), query, headers, body: body.into() };
        self.fake.answer(&call, "https://gateway.example")
    }

    /// Begins a session with the mandatory fields and these instead of or beside them.
    fn begin(&self, changes: &[(&str, &str)]) -> Value {
        let order = form(ORDER.into_iter().chain(changes.iter().copied()));
        let kind = "application/x-www-form-urlencoded";
        let Answer { body, .. } = self.call(Method::POST, SESSION, Form::default(), kind, encoded(&order));
        serde_json::from_str(&body).unwrap()
    }

    fn session(&self, changes: &[(&str, &str)]) -> String {
        let begun = self.begin(changes);
        assert_eq!(begun["status"], "SUCCESS", "{begun}");
        begun["sessionkey"].as_str().unwrap().to_owned()
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let credentials = [("store_id", STORE_ID), ("store_passwd", STORE_PASSWORD), ("format", "json"), ("v", "1")];
        let query = form(credentials.into_iter().chain(query.iter().copied()));
        let Answer { body, .. } = self.call(Method::GET, path, query, "", String::new());
        serde_json::from_str(&body).unwrap_or(Value::String(body))
    }

    fn validate(&self, val_id: &str) -> Value {
        self.get(VALIDATE, &[("val_id", val_id)])
    }

    fn query(&self, tran_id: &str) -> Value {
        self.get(TRANSACTION, &[("tran_id", tran_id)])
    }

    fn control(&self, name: &str, order: &Value) -> Value {
        let path = format!("/_control/{name}");
        let Answer { body, .. } = self.call(Method::POST, &path, Form::default(), "", order.to_string());
        serde_json::from_str(&body).unwrap()
    }

    /// Pays a session. Returns its `val_id` and `bank_tran_id`.
    fn paid(&self, changes: &[(&str, &str)]) -> (String, String) {
        let form = self.fake.pay(&self.session(changes)).unwrap().form;
        (form["val_id"].clone(), form["bank_tran_id"].clone())
    }
}

/// These fields of an answer.
fn parts(answer: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| answer[name].clone()).collect()
}
