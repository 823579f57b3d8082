//! Anyone can create a test session with the public key, so its page never redirects off site: it shows a link to click.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::server::Server;

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test(flavor = "multi_thread")]
async fn a_test_session_never_redirects_off_site_and_shows_the_host_of_its_link() {
    let server = Server::start();
    for (address, host) in [
        ("http://evil.example/login", "evil.example"),
        ("https://shop.example@evil.example/", "evil.example"),
        ("https://evil.example:8443/?https://shop.example", "evil.example:8443"),
        ("https://xn--80ak6aa92e.example/", "xn--80ak6aa92e.example"),
        ("https://аррӏе.example/", "xn--80ak6aa92e.example"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
    ] {
        for (button, ends) in [("action=success", "success_url"), ("action=cancel", "cancel_url")] {
            let mut body = json!({"amount": 5, "success_url": "https://a.example", "cancel_url": "https://a.example"});
            body[ends] = address.into();
            let payment = server.create(&body).await;
            let id = payment["id"].as_str().unwrap();
            let page = format!("/checkout/{id}");
            let pressed = server.keyless(Method::POST, &page).header("content-type", FORM).body(button);
            let mut answers = vec![pressed.send().await.unwrap()];
            for path in [
                page.clone(),
                format!("{page}?go"),
                format!("/gateways/bkash/return/{id}?status=success"),
                format!("/gateways/stripe/return/{id}?outcome=success"),
            ] {
                answers.push(server.keyless(Method::GET, &path).send().await.unwrap());
            }
            for answer in answers {
                let url = answer.url().clone();
                assert!(answer.headers().get("refresh").is_none());
                if let Some(location) = answer.headers().get("location") {
                    let location = location.to_str().unwrap();
                    assert!(location.starts_with("/checkout/"), "{url} redirects to {location}");
                    continue;
                }
                assert_eq!(answer.status(), StatusCode::OK);
                let text = answer.text().await.unwrap();
                assert!(!text.contains("http-equiv"), "{url} redirects by meta refresh: {text}");
                assert!(text.contains(&format!("This link goes to <strong>{host}</strong>")), "{url}: {text}");
                assert!(text.contains("class=\"button"), "{url} has no link: {text}");
            }
        }
    }
}
