//! What people paste and programs encode: each refusal says what is wrong with it.

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
async fn half_a_character_is_refused_by_the_name_of_its_field() {
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
async fn a_number_in_quotes_and_white_space_around_a_url_are_named() {
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
async fn a_compressed_body_is_refused_as_that() {
    let server = Server::start();
    // What `gzip` writes, cut.
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
async fn each_workspace_has_a_slug_of_its_own_in_latin_letters() {
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
