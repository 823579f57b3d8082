//! Names of query parameters and fields. camelCase and snake_case both work, the names come from one table, and a
//! misspelt filter is refused, because ignoring it would return everything.

use std::collections::BTreeSet;

use gateway_fakes::bkash;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Map, Value, json};

use crate::{
    document::{self, operations},
    live::Live,
    routes::routes,
    server::{SANDBOX_KEY, Server, payment_of},
};

async fn refused(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let (status, mut body): (StatusCode, Value) = (answer.status(), answer.json().await.unwrap());
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    body["message"].take()
}

fn parameters(operation: &Value) -> impl Iterator<Item = &Value> {
    operation["parameters"].as_array().into_iter().flatten().filter(|parameter| parameter["in"] == "query")
}

/// A name of the API in snake_case.
fn in_snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut snake, letter| {
        snake.extend(letter.is_ascii_uppercase().then_some('_'));
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_filter_never_returns_everything() {
    let server = Server::start();
    server.create(&payment_of(&json!(5))).await;
    for (path, wrong, rest) in [
        ("/payments?merchantTransactionID=A-17", "merchantTransactionID", "did you mean merchantTransactionId?"),
        ("/payments?statuss=failed", "statuss", "did you mean status?"),
        ("/payments?Status=failed", "Status", "did you mean status?"),
        ("/payments?CUSTOMER_EMAIL=a@shop.example", "CUSTOMER_EMAIL", "did you mean customerEmail?"),
        ("/payments?customer-email=a@shop.example", "customer-email", "did you mean customerEmail?"),
        ("/payments?customer[email]=a@shop.example", "customer[email]", "did you mean customerEmail?"),
        ("/payments?created%5Bgte%5D=2026-01-01", "created[gte]", "did you mean createdAfter?"),
        ("/payments?_=1764150000", "_", "the parameters are page, limit, status, after, createdAfter, "),
        ("/payments?order=7", "order", "the parameters are page, "),
        ("/payments?=5", "", "the parameters are page, "),
        ("/payments?x", "x", "the parameters are page, "),
        ("/events?event=payment.completed", "event", "did you mean events?"),
        ("/events?events[]=payment.completed", "events[]", "did you mean events?"),
        ("/events?webhookId=wh_1", "webhookId", "the parameters are after, events, paymentId, "),
        ("/webhooks/deliveries?webhook=wh_1", "webhook", "did you mean webhookId?"),
        ("/requests?fail=true", "fail", "did you mean failed?"),
        ("/account/activity?currency=USD", "currency", "the parameters are days"),
        ("/account/activity.svg?day=7", "day", "did you mean days?"),
        ("/account/transactions?bom=true", "bom", "the parameters are after, "),
        ("/account/transactions.csv?created_befor=2026-01-01", "created_befor", "did you mean createdBefore?"),
        ("/account?currency=USD", "currency", "this route has none"),
        ("/webhooks?appId=app_1", "appId", "this route has none"),
        ("/payments/pay_1?expand=customer", "expand", "this route has none"),
    ] {
        let message = refused(server.request(Method::GET, path)).await;
        let sentence = message[0].as_str().unwrap();
        let expected = format!("{wrong} is not a parameter; {rest}");
        assert!(sentence.starts_with(&expected), "{path}: {sentence}");
        assert_eq!(message.as_array().unwrap().len(), 1, "{message}");
    }
    let many: String = (0..40).map(|nth| format!("&{}{nth}=1", "z".repeat(80))).collect();
    let message = refused(server.request(Method::GET, &format!("/payments?{many}"))).await;
    let sentences = message.as_array().unwrap();
    assert_eq!(sentences.len(), 10);
    assert!(sentences[0].as_str().unwrap().starts_with(&format!("{} is not", "z".repeat(64))), "{message}");
    let head = server.request(Method::HEAD, "/payments?statuss=failed").send().await.unwrap();
    assert_eq!(head.status(), StatusCode::BAD_REQUEST, "HEAD is GET");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_parameter_is_refused_in_both_cases() {
    let server = Server::start();
    for (path, name) in [
        ("/payments?status=failed&status=completed", "status"),
        ("/payments?status=failed&status=failed", "status"),
        ("/payments?customerEmail=a@shop.example&customer_email=b@shop.example", "customerEmail"),
        ("/events?events=payment.created&limit=5&events=payment.completed", "events"),
        ("/webhooks/deliveries?webhookId=wh_1&webhook_id=wh_2", "webhookId"),
    ] {
        let answer = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{path}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["code"], &body["message"]),
            (&json!("field_repeated"), &json!([format!("{name} must be given once")]))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_parameter_of_the_document_is_read_in_both_cases() {
    let server = Server::start();
    let document = document::open();
    let mut checked = 0;
    for (path, method, operation) in operations(&document) {
        let path = path.strip_prefix("/api/v1").unwrap().replace("{id}", "x_0");
        for name in parameters(operation).map(|parameter| parameter["name"].as_str().unwrap()) {
            assert_eq!(method, "get", "only lists have parameters");
            for given in BTreeSet::from([name.to_owned(), in_snake_case(name)]) {
                let answer = server.request(Method::GET, &format!("{path}?{given}=%20")).send().await.unwrap();
                let status = answer.status().as_u16();
                match name {
                    // An unknown language counts as missing.
                    "lang" => assert_eq!(status, 200, "{path} {given}"),
                    "webhookId" | "language" => assert_eq!(status, 404, "{path} {given}"),
                    _ => {
                        let body: Value = answer.json().await.unwrap();
                        assert_eq!(
                            (status, &body["fields"][0]["field"]),
                            (400, &json!(name)),
                            "{path} {given}: {body}"
                        );
                        assert_ne!(body["code"], "field_unknown", "{path} {given}");
                    }
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_keyless_routes_and_gateway_returns_ignore_trackers_parameters() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.server.create(&payment_of(&json!(5))).await["id"].as_str().unwrap().to_owned();
    for path in ["/", "/docs", "/dashboard", "/healthz", "/api/v1/openapi.json"] {
        let answer =
            live.server.keyless(Method::GET, &format!("{path}?_=1764150000&utm_source=x&_=2")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
    for path in [format!("/checkout/{id}"), format!("/api/v1/checkout/{id}")] {
        let answer =
            live.server.keyless(Method::GET, &format!("{path}?fbclid=x&_=1&lang=en&lang=bn")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
    let paid = live.create(15.0, "BDT").await;
    let (_, attempt) = live.pay(&paid).await;
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    live.come_back(&format!("{back}&utm_source=x&_=1&_=2")).await;
    live.becomes(&paid, "paid").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_about_parameters_come_only_after_key_permission_and_method_are_checked() {
    let server = Server::start();
    let answer = server.keyless(Method::GET, "/api/v1/payments?statuss=failed").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let key = server.new_key_with("Till", "test", &["--scope", "account:read"]);
    let answer = server.keyless(Method::GET, "/api/v1/payments?statuss=failed").bearer_auth(key).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let answer = server.request(Method::PUT, "/payments?statuss=failed").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    let create = server.request(Method::POST, "/payments?utm_source=x").json(&payment_of(&json!(5)));
    assert_eq!(create.send().await.unwrap().status(), StatusCode::CREATED);
}

/// The fields of an operation's request body.
fn fields<'d>(document: &'d Value, operation: &Value) -> Option<&'d Map<String, Value>> {
    let schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()?;
    document.pointer(&format!("{}/properties", &schema[1..])).unwrap().as_object()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_body_knows_exactly_the_fields_of_its_schema() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let document = document::open();
    let bodies = operations(&document).filter_map(|(_, _, operation)| fields(&document, operation));
    let names: BTreeSet<&String> = bodies.flat_map(|fields| fields.keys()).collect();
    let test = server.create(&payment_of(&json!(5))).await["id"].as_str().unwrap().to_owned();
    let mut bodies = 0;
    for route in routes(&document) {
        let Some(documented) = fields(&document, route.described) else { continue };
        let mut known = BTreeSet::new();
        for name in names.iter().copied() {
            // The request has no effect: if the name is not close to a known one, the other field is wrong.
            let mut body: Map<_, _> = documented.keys().map(|field| (field.clone(), json!([{"": []}]))).collect();
            body.insert(format!("{name}x"), json!(1));
            let said = refused(route.request(server, &test).bearer_auth(SANDBOX_KEY).json(&body)).await;
            let suggestion = format!("{name}x is not a field; did you mean {name}?");
            if said.as_array().unwrap().iter().any(|sentence| *sentence == json!(suggestion)) {
                known.insert(name);
            }
        }
        assert_eq!(known, documented.keys().collect(), "{}", route.id);
        bodies += 1;
    }
    assert_eq!(bodies, 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_miss_of_a_field_is_refused_and_other_unknown_fields_are_ignored() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let hook = json!({"url": "http://127.0.0.1:9/", "events": "*"});
    let endpoint: Value =
        server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().json().await.unwrap();
    let endpoint = format!("/webhooks/{}", endpoint["id"].as_str().unwrap());
    let with = |base: &Value, name: &str| {
        let mut body = base.clone();
        body[name] = json!("x");
        body
    };
    let order = payment_of(&json!(5));
    for (method, path, body, wrong, right) in [
        (Method::POST, "/payments", &order, "customer-email", "customerEmail"),
        (Method::POST, "/payments", &order, "CustomerEmail", "customerEmail"),
        (Method::POST, "/payments", &order, "customer_mail", "customerEmail"),
        (Method::POST, "/payments", &order, "line_item", "lineItems"),
        (Method::POST, "/payments", &order, "LINE_ITEMS", "lineItems"),
        (Method::POST, "/payments", &order, "merchantTransactionID", "merchantTransactionId"),
        (Method::POST, "/payments", &order, "merchant_transactionid", "merchantTransactionId"),
        (Method::POST, "/payments", &order, "currencies", "currency"),
        (Method::POST, "/webhooks", &hook, "retry", "retries"),
        (Method::POST, "/webhooks", &hook, "Retries", "retries"),
        (Method::POST, "/webhooks", &hook, "appID", "appId"),
        (Method::POST, "/webhooks", &hook, "event", "events"),
        (Method::PATCH, &endpoint, &json!({}), "retry", "retries"),
        (Method::PATCH, &endpoint, &json!({}), "active", ""),
        (Method::PATCH, &endpoint, &json!({}), "is_activ", "isActive"),
        (Method::POST, "/checkout/demo-session", &json!({}), "customer_nam", "customerName"),
        (
            Method::POST,
            "/webhooks/verify",
            &json!({"payload": "a", "signature": "b", "secret": "c"}),
            "secrets",
            "secret",
        ),
    ] {
        let request = server.request(method.clone(), path).json(&with(body, wrong));
        if right.is_empty() {
            assert!(request.send().await.unwrap().status().is_success(), "{wrong} is another field");
            continue;
        }
        assert_eq!(
            refused(request).await,
            json!([format!("{wrong} is not a field; did you mean {right}?")]),
            "{method} {path}"
        );
    }
    let mut nested = order.clone();
    nested["customer"] = json!({"e-mail": "asha@shop.example"});
    let message = refused(server.request(Method::POST, "/payments").json(&nested)).await;
    assert_eq!(message, json!(["customer.e-mail is not a field; did you mean customer.email?"]));
    let twice = r#"{"amount":5,"success_url":"https://a.example","cancel_url":"https://a.example",
        "customer":{"email":"a@shop.example","email":"b@shop.example"},"lineItems":[{"name":"Tea","name":"Cup"}]}"#;
    let request = server.request(Method::POST, "/payments").header("content-type", "application/json").body(twice);
    assert_eq!(
        refused(request).await,
        json!(["customer.email must be given once", "lineItems[0].name must be given once"])
    );
    let mut others = order.clone();
    for name in [
        "orderId",
        "order_id",
        "callback_url",
        "webhookUrl",
        "product_name",
        "customer_id",
        "customerAddress",
        "tax",
        "notes",
        "ipn_url",
        "fail_url",
        "failUrl",
        "store_id",
        "shipping",
        "items",
        "country",
        "value_a",
        "total_amount",
    ] {
        others[name] = json!({"any": 1});
    }
    server.create(&others).await;
}
