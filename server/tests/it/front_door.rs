//! The first impression of a person who starts a server or opens its address.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::server::{SANDBOX_KEY, Server, server_binary, write_settings};

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
    let output = Command::new("bash").args(["-c", &format!("curl{command}")]).output().unwrap();
    let payment: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&payment["status"], &payment["amount"]), (&"pending".into(), &750.into()), "{command}");
    assert!(command.contains(SANDBOX_KEY));

    let wrong_method = server.keyless(Method::POST, "/").send().await.unwrap();
    assert_eq!(wrong_method.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(server.keyless(Method::GET, "//").send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_banner_lists_every_address_and_its_pages_exist() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("payments.toml");
    let text = "[stripe]\nsecret_key = 'sk_test_hush'\nwebhook_secret = 'whsec_hush'\n";
    write_settings(&config, text);
    let mut command = Command::new(server_binary());
    command.args(["--listen", "127.0.0.1:0", "--data-dir", "a shop's", "--config"]).arg(&config);
    let mut process = command.current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.ends_with("Bearer sk_test_demo'\n\n") {
        assert_ne!(out.read_line(&mut banner).unwrap(), 0, "{banner}");
    }
    let field = |name: &str| banner.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap().trim().to_owned();
    let statuses = futures_util::future::join_all(["Console", "Reference"].map(|name| reqwest::get(field(name)))).await;
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(statuses.into_iter().all(|answer| answer.unwrap().status() == StatusCode::OK), "{banner}");
    assert_eq!(field("Data"), directory.path().join("a shop's").to_str().unwrap());
    assert_eq!(field("Gateways"), "Stripe for USD: test mode");
    assert_eq!(field("Sandbox"), "the key sk_test_demo works and moves no money");
    assert!(!banner.contains("hush"), "{banner}");
}

#[tokio::test]
async fn for_an_unknown_path_a_browser_gets_a_page_and_a_program_gets_json() {
    let server = Server::start();
    let get = async |path: &str, accept: &str| {
        let answer = server.keyless(Method::GET, path).header("accept", accept).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        answer.text().await.unwrap()
    };
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/nowhere", "/docs/nowhere", "/checkout", "//"] {
        let page = get(path, browser).await;
        assert!(page.contains("<title>No such page</title>"), "{path}: {page}");
        assert!(get(path, "*/*").await.contains("route_not_found"), "{path}");
    }
    assert!(get("/api/v1/nowhere", browser).await.contains("route_not_found"));
}
