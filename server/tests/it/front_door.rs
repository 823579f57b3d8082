//! What somebody meets who starts a server or opens its address for the first time.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::server::{SANDBOX_KEY, Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_front_page_leads_to_pages_that_exist_and_its_curl_creates_a_payment() {
    let server = Server::start();
    let answer = server.keyless(Method::GET, "/").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
    let page = answer.text().await.unwrap();
    let links: Vec<_> = page.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(["dashboard", "docs", "api/v1/openapi.json"].iter().all(|page| links.contains(page)), "{links:?}");
    for link in links {
        let linked = server.keyless(Method::GET, &format!("/{link}")).send().await.unwrap();
        assert_eq!(linked.status(), StatusCode::OK, "{link}");
    }
    let command = page.split("<code>curl").nth(1).and_then(|rest| rest.split("</code>").next()).unwrap();
    let output = std::process::Command::new("bash").args(["-c", &format!("curl{command}")]).output().unwrap();
    let payment: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&payment["status"], &payment["amount"]), (&"pending".into(), &750.into()), "{command}");
    assert!(command.contains(SANDBOX_KEY));

    let wrong_method = server.keyless(Method::POST, "/").send().await.unwrap();
    assert_eq!(wrong_method.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(server.keyless(Method::GET, "//").send().await.unwrap().status(), StatusCode::NOT_FOUND);
}
