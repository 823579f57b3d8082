//! Requests whose API key fails, and `/readyz`, which everybody may ask, cost the store little.

use reqwest::{Method, Response};

use crate::{
    engine::{Engine, run_sql},
    server::{SANDBOX_KEY, Server},
};

async fn with_key(server: &Server, key: &str) -> Response {
    server.keyless(Method::GET, "/api/v1/account").bearer_auth(key).send().await.unwrap()
}

fn status(response: &Response) -> u16 {
    response.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_keys_are_limited_per_address_and_valid_keys_are_not() {
    let server = Server::start_with(&["--keyless-rate-limit", "4", "--rate-limit", "0"]);
    assert_eq!(status(&with_key(&server, SANDBOX_KEY).await), 200);
    for (nth, key) in ["sk_test_wrong", "nonsense", "sk_live_wrong", "sk_test_other"].into_iter().enumerate() {
        let answer = with_key(&server, key).await;
        let left = answer.headers()["x-ratelimit-remaining"].to_str().unwrap().to_owned();
        assert_eq!((status(&answer), left), (401, (3 - nth).to_string()), "{key}");
    }
    for key in ["sk_test_wrong", "nonsense", "sk_test_never_seen"] {
        let answer = with_key(&server, key).await;
        assert_eq!(status(&answer), 429, "{key}");
        let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait));
        assert!(answer.text().await.unwrap().contains("rate_limited"));
    }
    assert_eq!(status(&with_key(&server, SANDBOX_KEY).await), 200);
    assert_eq!(status(&server.keyless(Method::GET, "/api/v1/checkout/pay_0").send().await.unwrap()), 429);
}

const HIDE_KEYS: &str = "ALTER TABLE payments.record RENAME TO hidden";
const SHOW_KEYS: &str = "ALTER TABLE payments.hidden RENAME TO record";

#[tokio::test(flavor = "multi_thread")]
async fn beyond_an_addresss_limit_the_store_is_not_asked_about_new_keys() {
    let server = Server::start_on(Engine::Postgres, &["--keyless-rate-limit", "4", "--rate-limit", "0"]);
    for nth in 0..6 {
        let expected = if nth < 4 { 401 } else { 429 };
        assert_eq!(status(&with_key(&server, &format!("sk_test_{nth}")).await), expected);
    }
    // A query of the store would fail.
    run_sql(server.database().unwrap(), HIDE_KEYS);
    assert_eq!(status(&with_key(&server, "sk_test_7").await), 429);
    run_sql(server.database().unwrap(), SHOW_KEYS);
}

/// Asks, hides a table from the server, asks again, and returns the second status. Makes a few tries, because a slow machine
/// may take longer than the server remembers.
async fn after_hiding(server: &Server, hide: &str, show: &str, ask: impl AsyncFn() -> u16, expected: u16) -> u16 {
    let mut last = 0;
    for _ in 0..5 {
        assert_eq!(ask().await, expected);
        run_sql(server.database().unwrap(), hide);
        last = ask().await;
        run_sql(server.database().unwrap(), show);
        if last == expected {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_and_readiness_are_remembered() {
    let server = Server::start_on(Engine::Postgres, &[]);
    let unknown = async || status(&with_key(&server, "sk_test_unknown").await);
    assert_eq!(after_hiding(&server, HIDE_KEYS, SHOW_KEYS, unknown, 401).await, 401);
    let ready = async || status(&server.keyless(Method::GET, "/readyz").send().await.unwrap());
    let (hide, show) = (HIDE_KEYS, SHOW_KEYS);
    assert_eq!(after_hiding(&server, hide, show, ready, 200).await, 200);
    // The server does not remember it for long.
    run_sql(server.database().unwrap(), hide);
    crate::server::eventually("the server not to be ready", async || (ready().await == 503).then_some(())).await;
    run_sql(server.database().unwrap(), show);
    crate::server::eventually("the server to be ready", async || (ready().await == 200).then_some(())).await;
}
