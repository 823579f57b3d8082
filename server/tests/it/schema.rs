//! The OpenAPI document allows exactly the input that the server accepts.

use reqwest::{Method, header::HeaderName};
use serde_json::{Map, Value, json};

use crate::{
    document::{self, operations, resolved},
    live::Live,
    routes::routes,
    server::{SANDBOX_KEY, Server, payment_of},
};

/// Texts that people and programs send if they have nothing to send, or send the wrong thing.
const TEXTS: [&str; 3] = ["", " ", "no such"];

/// Whether a schema of the document allows a value.
fn allows(document: &Value, schema: &Value, value: &Value) -> bool {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    jsonschema::options().should_validate_formats(true).build(&root).unwrap().is_valid(value)
}

/// The value of a query parameter as the schema's type reads it, or else the text.
fn of_type(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str() {
        Some("array") => text.split(',').collect(),
        _ => text.into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_a_parameter_refuses_is_not_allowed_by_its_schema() {
    let server = Server::start();
    let document = document::open();
    for (path, _, operation) in operations(&document).filter(|(_, method, _)| *method == "get") {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            if parameter["in"] != "query" {
                continue;
            }
            for text in TEXTS {
                let given = format!("{path}?{name}={}", text.replace(' ', "%20"));
                let request = server.keyless(Method::GET, &given).bearer_auth(SANDBOX_KEY);
                let is_refused = request.send().await.unwrap().status() == 400;
                let is_allowed = allows(&document, schema, &of_type(schema, text));
                assert_eq!(is_allowed, !is_refused, "{path} {name}={text:?}, refused: {is_refused}");
            }
        }
    }
}

fn is_text(schema: &Value) -> bool {
    let named =
        |kind: &Value| kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")));
    named(&schema["type"]) || schema["anyOf"].as_array().into_iter().flatten().any(|one| named(&one["type"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_a_body_refuses_is_not_allowed_by_its_schema() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let document = document::open();
    let id = server.create(&payment_of(&json!(5))).await["id"].as_str().unwrap().to_owned();
    for route in routes(&document) {
        let schema = &route.described["requestBody"]["content"]["application/json"]["schema"];
        let Some(pointer) = schema["$ref"].as_str() else { continue };
        let properties = document.pointer(&format!("{}/properties", &pointer[1..])).unwrap().as_object().unwrap();
        let mut bodies = Vec::new();
        for text in TEXTS {
            for name in properties.iter().filter(|(_, schema)| is_text(schema)).map(|(name, _)| name) {
                let mut body = route.valid_body();
                body[name] = text.into();
                bodies.push(body);
            }
            if properties.contains_key("customer") {
                let mut body = route.valid_body();
                body["customer"] = Map::from_iter([("phone".to_owned(), json!(text))]).into();
                bodies.push(body);
            }
        }
        for body in bodies {
            let request = route.request(server, &id).bearer_auth(SANDBOX_KEY).json(&body);
            let is_refused = request.send().await.unwrap().status() == 400;
            let is_allowed = allows(&document, schema, &body);
            assert_eq!(is_allowed, !is_refused, "{} {body}, refused: {is_refused}", route.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_may_be_absent_is_not_required() {
    let without = Server::start();
    let with = Server::start_with(&["--rate-limit", "1000", "--keyless-rate-limit", "1000"]);
    let document = document::open();
    for (server, has_limit) in [(&without, false), (&with, true)] {
        for (path, status) in [("/payments", "200"), ("/payments/pay_0", "404"), ("/payments?page=0", "400")] {
            let answer = server.request(Method::GET, path).send().await.unwrap();
            assert_eq!(answer.status().as_str(), status);
            assert_eq!(answer.headers().contains_key("x-ratelimit-limit"), has_limit, "{path}");
            let template = if status == "404" { "/payments/{id}" } else { "/payments" };
            let described = &document["paths"][format!("/api/v1{template}")]["get"]["responses"][status];
            for (name, header) in resolved(&document, described)["headers"].as_object().unwrap() {
                let name: HeaderName = name.parse().unwrap();
                let is_absent = !answer.headers().contains_key(&name);
                assert!(!is_absent || resolved(&document, header)["required"] != true, "{path} {status} lacks {name}");
            }
        }
    }
}
