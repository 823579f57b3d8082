//! The statement of a payout as a page.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_a_page_without_script_in_the_language_that_is_asked_for() {
    let server = Server::start();
    let post = async |path: &str, body: Value| {
        let answer = server.request(Method::POST, path).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json::<Value>().await.unwrap()
    };
    let payment = post("/payments", payment_of(&json!(750))).await;
    post(&format!("/checkout/{}/simulate", payment["id"].as_str().unwrap()), json!({"status": "completed"})).await;
    let account = json!({"holder": "<b>Karim & Sons</b>", "bank": "010271234", "number": "1234567890123"});
    post("/payouts/destinations", json!({"currency": "BDT", "bankAccount": account})).await;
    let payout = post("/payouts", json!({"currency": "BDT", "amount": 1})).await;
    let path = format!("/payouts/{}/statement", payout["id"].as_str().unwrap());
    for (query, accepted, language, title, amount) in [
        ("", "en", "en", "Payout statement", "−৳1.00"),
        ("", "bn-BD", "bn", "উত্তোলনের বিবরণী", "−৳১.০০"),
        ("?language=bn", "en", "bn", "উত্তোলনের বিবরণী", "−৳১.০০"),
        ("?language=en", "bn", "en", "Payout statement", "−৳1.00"),
    ] {
        let request = server.request(Method::GET, &(path.clone() + query)).header("accept-language", accepted);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((&*header("content-type"), &*header("content-language")), ("text/html; charset=utf-8", language));
        assert_eq!(header("cache-control"), "no-store");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{policy}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(title) && page.contains(amount) && page.contains("…0123"), "{page}");
        assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("1234567890123"), "{page}");
    }
    let unknown = server.request(Method::GET, "/payouts/po_0/statement").send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}
