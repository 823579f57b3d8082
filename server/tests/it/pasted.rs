//! Pasted text and unusual encodings. Each refusal says what is wrong.

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

const HALF: &str = r"half a character: an escape of \ud800 to \udfff without its other half";

async fn refused(server: &Server, body: impl Into<reqwest::Body>) -> Value {
    let request = server.request(Method::POST, "/payments").header(header::CONTENT_TYPE, "application/json");
    let answer = request.body(body).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    answer.json::<Value>().await.unwrap()["message"].take()
}

fn with(rest: &str) -> String {
    format!(r#"{{"amount":5,"success_url":"https://a.example","cancel_url":"https://a.example",{rest}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_is_refused_with_the_name_of_its_field() {
    let server = Server::start();
    for (rest, sentence) in [
        (r#""customer":{"name":"Asha \ud83c"}"#, format!("customer.name has {HALF}")),
        (r#""description":"\udf81""#, format!("description has {HALF}")),
        (r#""customer":{"\ud83c":1}"#, format!("customer has a field whose name has {HALF}")),
        (r#""lineItems":[{"\ud83c":1}]"#, format!("lineItems[0] has a field whose name has {HALF}")),
        (r#""\ud83c":1"#, format!("body has a field whose name has {HALF}")),
        (r#""metadata":{"note":["\ud83c"]}"#, format!("metadata must not have {HALF}")),
        (r#""metadata":{"\udf81":1}"#, format!("metadata must not have {HALF}")),
    ] {
        assert_eq!(refused(&server, with(rest)).await, json!([sentence]), "{rest}");
    }
    let whole: Value = serde_json::from_str(&with(r#""metadata":{"note":"\ud83c\udf81 \\ud83c"}"#)).unwrap();
    assert_eq!(server.create(&whole).await["metadata"], whole["metadata"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_a_number_in_quotes_and_white_space_around_a_url() {
    let server = Server::start();
    let fault_of = async |name: &str, value: Value| {
        let mut body = payment_of(&json!(5));
        body[name] = value;
        refused(&server, body.to_string()).await[0].as_str().unwrap().to_owned()
    };
    assert_eq!(fault_of("amount", json!("100")).await, "amount must be a positive number, without quotes");
    assert_eq!(fault_of("amount", json!("much")).await, "amount must be a positive number");
    let line = json!([{"name": "Tea", "quantity": "2"}]);
    let fault = "lineItems[0].quantity must be a whole number from 1 to 1000000, without quotes";
    assert_eq!(fault_of("lineItems", line).await, fault);
    for (url, fault) in [
        ("https://shop.example/paid ", "must not begin or end with white space"),
        ("\nhttps://shop.example/paid", "must not begin or end with white space"),
        ("https://shop.example/a b", "must not contain white space; write a space as %20"),
    ] {
        for field in ["success_url", "cancel_url"] {
            assert_eq!(fault_of(field, json!(url)).await, format!("{field} {fault}"));
        }
        let hook = server.request(Method::POST, "/webhooks").json(&json!({"url": url, "events": "*"}));
        let said: Value = hook.send().await.unwrap().json().await.unwrap();
        assert_eq!(said["message"], json!([format!("url {fault}")]));
    }
    let payment = server.create(&payment_of(&json!(5))).await;
    let pay = format!("/api/v1/checkout/{}/pay", payment["id"].as_str().unwrap());
    let pay = server.keyless(Method::POST, &pay).json(&json!({"redirectUrl": "https://shop.example/paid "}));
    let said: Value = pay.send().await.unwrap().json().await.unwrap();
    assert_eq!(said["message"], json!(["redirectUrl must not begin or end with white space"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_refused_as_compressed() {
    let server = Server::start();
    // The beginning of a file that `gzip` wrote.
    let compressed = vec![0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0x03, 0xab, 0x56];
    let said = refused(&server, compressed).await;
    assert_eq!(said, json!(["body must be UTF-8; it is compressed by gzip, send it as it is"]));
    for (encoding, status) in [("gzip", 400), ("br", 400), ("identity", 201)] {
        let request = server.request(Method::POST, "/payments").header(header::CONTENT_ENCODING, encoding);
        let answer = request.json(&payment_of(&json!(5))).send().await.unwrap();
        assert_eq!(answer.status(), status);
        if status == 400 {
            let said: Value = answer.json().await.unwrap();
            let sentence = "the body must not be compressed; send it as it is, without Content-Encoding";
            assert_eq!((&said["code"], &said["message"]), (&json!("content_type_invalid"), &json!([sentence])));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_workspace_has_its_own_slug_in_latin_letters() {
    let server = Server::start();
    let mut slugs = Vec::new();
    for name in ["রহিম অ্যান্ড সন্স", "ঢাকা ক্যাফে", "Rahim & Sons", "Rahim Sons", "!!!", "???"]
    {
        let key = server.new_key(name, "test");
        let account = server.keyless(Method::GET, "/api/v1/account").bearer_auth(key).send().await.unwrap();
        let account: Value = account.json().await.unwrap();
        assert_eq!(account["workspace"]["name"], name);
        slugs.push(account["workspace"]["slug"].as_str().unwrap().to_owned());
    }
    assert_eq!(slugs[2..], ["rahim-sons", "rahim-sons-2", "workspace", "workspace-2"]);
    assert!(
        slugs.iter().all(|slug| slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')),
        "{slugs:?}"
    );
    assert!(slugs[0] != slugs[1] && slugs[..2].iter().all(|slug| slug.len() > 5 && slug != "workspace"), "{slugs:?}");
}

/// The ids of a list that a query finds.
async fn found(server: &Server, list: &str, query: &str) -> Vec<String> {
    let page = server.get(&format!("{list}?{query}")).await;
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{list}?{query}: {page}"));
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_filter_accepts_dates_any_offset_a_bare_plus_and_the_end_of_9999() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    server.keyless(Method::POST, &simulate).send().await.unwrap();
    let day = &payment["createdAt"].as_str().unwrap()[..10];
    for list in ["/payments", "/events", "/account/transactions"] {
        for (query, finds) in [
            (format!("createdAfter={day}"), true),
            (format!("created_before={day}"), false),
            (format!("createdAfter={day}T06:00:00+06:00"), true),
            (format!("createdBefore={day}T06:00:00+06:00"), false),
            (format!("createdAfter={day}T06:00:00%2B06:00"), true),
            (format!("createdAfter={day}+06:00:00+06:00"), true),
            ("createdBefore=9999-12-31".to_owned(), true),
            ("createdBefore=9999-12-31T23:59:59.999Z".to_owned(), true),
            ("createdAfter=9999-12-31".to_owned(), false),
            ("createdAfter=0001-01-01T00:00:00Z&createdBefore=9999-12-31T23:59:59Z".to_owned(), true),
            ("createdAfter=0001-01-01".to_owned(), true),
        ] {
            assert_eq!(!found(&server, list, &query).await.is_empty(), finds, "{list}?{query}");
        }
        let wrong = server.request(Method::GET, &format!("{list}?createdAfter={day}T06:00:00")).send().await.unwrap();
        let sentence = "createdAfter must be a time such as 2026-03-01T00:00:00Z, or a date such as 2026-03-01";
        assert_eq!(wrong.json::<Value>().await.unwrap()["message"], json!([sentence]));
    }
    let table = format!("/account/transactions.csv?createdAfter={day}&createdBefore=9999-12-31&limit=1");
    let table = server.request(Method::GET, &table).send().await.unwrap().text().await.unwrap();
    assert_eq!(table.lines().count(), 2, "{table}");
    let hook = json!({"url": "http://127.0.0.1:9/", "events": "*"});
    let hook: Value = server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().json().await.unwrap();
    let recover = format!("/webhooks/{}/recover", hook["id"].as_str().unwrap());
    let recover = server.request(Method::POST, &recover).json(&json!({"since": day, "until": "9999-12-31"}));
    assert_eq!(recover.send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_with_a_plus_finds_its_payments() {
    let server = Server::start();
    let mut body = payment_of(&json!(5));
    body["customer"] = json!({"email": "asha+shop@example.com", "phone": "+1 212-555-0100"});
    body["merchantTransactionId"] = json!("A+17 B");
    let plus = server.create(&body).await["id"].as_str().unwrap().to_owned();
    let mut spaces = payment_of(&json!(5));
    spaces["merchantTransactionId"] = json!("C 18");
    let spaces = server.create(&spaces).await["id"].as_str().unwrap().to_owned();
    for (query, finds) in [
        ("customerEmail=asha+shop@example.com", Some(&plus)),
        ("customerEmail=asha%2Bshop@example.com", Some(&plus)),
        ("customer_email=asha@example.com", None),
        ("customerPhone=+1212-555-0100", Some(&plus)),
        ("customer_phone=%2B12125550100", Some(&plus)),
        ("merchant_transaction_id=A%2B17%20B", Some(&plus)),
        ("merchantTransactionId=C+18", Some(&spaces)),
        ("merchantTransactionId=C%2018", Some(&spaces)),
        ("merchantTransactionId=D+19", None),
    ] {
        assert_eq!(found(&server, "/payments", query).await, finds.cloned().into_iter().collect::<Vec<_>>(), "{query}");
    }
    body["merchantTransactionId"] = json!("E+20");
    let bare = server.create(&body).await["id"].clone();
    assert_eq!(json!(found(&server, "/payments", "merchantTransactionId=E+20").await), json!([bare]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_currency_may_be_in_small_letters() {
    let server = Server::start();
    for (given, code) in [("usd", "USD"), ("bdt", "BDT"), ("Usd", "USD")] {
        let mut body = payment_of(&json!(5));
        body["currency"] = json!(given);
        let payment = server.create(&body).await;
        assert_eq!(payment["currency"], code);
        assert!(
            found(&server, "/payments", &format!("currency={given}"))
                .await
                .contains(&payment["id"].as_str().unwrap().to_owned())
        );
        let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({"currency": given}));
        assert_eq!(demo.send().await.unwrap().json::<Value>().await.unwrap()["currency"], code);
        for path in ["/account/transactions", "/account/transactions.csv", "/account/activity.svg"] {
            let answer = server.request(Method::GET, &format!("{path}?currency={given}")).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
        }
    }
    let mut body = payment_of(&json!(5));
    body["currency"] = json!("eur");
    assert_eq!(refused(&server, body.to_string()).await, json!(["currency must be one of BDT, USD"]));
}
