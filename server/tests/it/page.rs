//! The checkout page, as a browser without JavaScript uses it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

async fn post(server: &Server, path: &str, form: &'static str) -> reqwest::Response {
    let request = server.keyless(Method::POST, path).header("content-type", "application/x-www-form-urlencoded");
    request.body(form).send().await.unwrap()
}

async fn new_payment(server: &Server, body: &Value) -> (String, Value) {
    let payment: Value =
        server.request(Method::POST, "/payments").json(body).send().await.unwrap().json().await.unwrap();
    (format!("/checkout/{}", payment["id"].as_str().unwrap()), payment)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_button_of_the_simulator_ends_the_session_its_way() {
    let server = Server::start();
    for (button, shown, status, back) in [
        ("action=success", "Paid.", "completed", "https://shop.example/paid"),
        ("action=fail", "The payment failed.", "failed", "https://shop.example/cart"),
        ("action=cancel", "You cancelled this payment.", "cancelled", "https://shop.example/cart"),
    ] {
        let (path, payment) = new_payment(&server, &payment_of(&json!(12.5))).await;
        let id = payment["id"].as_str().unwrap();
        let answer = post(&server, &path, button).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()["location"], format!("{back}?payment_id={id}&status={status}"));
        // A second click, and a reload, tell how it ended and change nothing.
        let again = post(&server, &path, "action=success").await;
        assert_eq!(again.status(), StatusCode::OK);
        for page in [
            again.text().await.unwrap(),
            server.keyless(Method::GET, &path).send().await.unwrap().text().await.unwrap(),
        ] {
            assert!(page.contains(shown), "{page}");
            assert!(!page.contains("<button"), "{page}");
        }
        let read: Value =
            server.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap().json().await.unwrap();
        assert_eq!(read["status"], status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_comes_out_inert() {
    let server = Server::start();
    let mut body = payment_of(&json!(1));
    body["description"] = json!("\"><script>alert(1)</script>{{ amount }}");
    body["success_url"] = json!("https://shop.example/?a=%22%3E%3Cscript%3E");
    let (path, _) = new_payment(&server, &body).await;
    let answer = server.keyless(Method::GET, &path).send().await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
    assert!(policy.contains("form-action 'self' https://shop.example https://shop.example;"), "{policy}");
    let page = answer.text().await.unwrap();
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("{{ amount }}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_session_has_a_page_of_its_own_and_a_style() {
    let server = Server::start();
    let answer = server.keyless(Method::GET, "/checkout/pay_unknown").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert!(answer.text().await.unwrap().contains("No payment has this address."));
    let style = server.keyless(Method::GET, "/assets/checkout.css").send().await.unwrap();
    assert_eq!(style.headers()["content-type"], "text/css; charset=utf-8");
}
