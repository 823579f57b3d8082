//! Rate limits and their headers.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use test_support::cluster::Cluster;

use crate::server::Server;

/// Reads limit and remaining requests from the headers.
fn rate(response: &Response) -> Option<(u32, u32)> {
    let number = |name| response.headers().get(name)?.to_str().ok()?.parse().ok();
    Some((number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_its_own_limit_and_every_response_reports_it() {
    let server = Server::start_with(&["--rate-limit", "3", "--keyless-rate-limit", "100"]);
    for (path, status, left) in
        [("/payments", 200, 2), ("/payments/pay_unknown", 404, 1), ("/payments?limit=0", 400, 0)]
    {
        let answer = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), rate(&answer)), (status, Some((3, left))), "{path}");
    }
    let refused = server.request(Method::GET, "/payments").send().await.unwrap();
    assert_eq!((refused.status(), rate(&refused)), (StatusCode::TOO_MANY_REQUESTS, Some((3, 0))));
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let body: serde_json::Value = refused.json().await.unwrap();
    assert_eq!((&body["statusCode"], &body["error"]), (&429.into(), &"Too Many Requests".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn keyless_requests_are_limited_per_address_and_every_response_reports_it() {
    let server = Server::start_with(&["--rate-limit", "100", "--keyless-rate-limit", "4"]);
    let unknown = server.keyless(Method::GET, "/nothing").send().await.unwrap();
    assert_eq!((unknown.status().as_u16(), rate(&unknown)), (404, Some((4, 3))));
    let no_key = server.keyless(Method::GET, "/api/v1/payments").send().await.unwrap();
    assert_eq!((no_key.status().as_u16(), rate(&no_key)), (401, Some((4, 2))));
    let keyed = server.request(Method::GET, "/payments").send().await.unwrap();
    assert_eq!((keyed.status().as_u16(), rate(&keyed)), (200, Some((100, 99))));
    for left in [1, 0] {
        let session = server.keyless(Method::GET, "/api/v1/checkout/pay_unknown").send().await.unwrap();
        assert_eq!((session.status().as_u16(), rate(&session)), (404, Some((4, left))));
    }
    for path in ["/api/v1/checkout/pay_unknown", "/checkout/pay_unknown", "/nothing", "/api/v1/webhooks/verify"] {
        let refused = server.keyless(Method::GET, path).send().await.unwrap();
        assert_eq!((refused.status().as_u16(), rate(&refused)), (429, Some((4, 0))), "{path}");
        assert!(refused.headers().contains_key("retry-after"));
    }
    // 401 comes before 429.
    let no_key = server.keyless(Method::GET, "/api/v1/payments").send().await.unwrap();
    assert_eq!((no_key.status().as_u16(), rate(&no_key)), (401, Some((4, 0))));
    let keyed = server.request(Method::GET, "/payments").send().await.unwrap();
    assert_eq!(keyed.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_uses_the_client_address_from_a_trusted_proxy() {
    let server = Server::start_with(&["--keyless-rate-limit", "1", "--trusted-proxy", "127.0.0.0/8"]);
    let ask = |client: &'static str| {
        let request = server.keyless(Method::GET, "/api/v1/checkout/pay_unknown").header("x-forwarded-for", client);
        async move { request.timeout(Duration::from_secs(5)).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(ask("192.0.2.1").await, 404);
    assert_eq!(ask("192.0.2.1").await, 429);
    assert_eq!(ask("192.0.2.2").await, 404);
    assert_eq!(ask("192.0.2.3, 192.0.2.1").await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_zero_is_off_and_health_checks_have_no_limit() {
    let server = Server::start_with(&["--rate-limit", "0", "--keyless-rate-limit", "1"]);
    for _ in 0..150 {
        let answer = server.request(Method::GET, "/payments").send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    for path in ["/healthz", "/readyz", "/healthz", "/readyz"] {
        let answer = server.keyless(Method::GET, path).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), rate(&answer)), (200, None), "{path}");
    }
}

/// Sends requests to servers in turn, many concurrently. Returns how many were admitted, and how many of these before the
/// first refused request was sent.
async fn admitted(servers: &[Server], requests: usize, ask: impl Fn(&Server) -> RequestBuilder) -> (u32, u32) {
    let (mut admitted, mut before_refusal) = (0, None);
    for batch in (0..requests).collect::<Vec<_>>().chunks(9) {
        let sent = batch.iter().map(|nth| ask(&servers[nth % servers.len()]).send());
        let answers = join_all(sent).await;
        let refused = answers.iter().filter(|answer| answer.as_ref().unwrap().status() == 429).count();
        admitted += u32::try_from(answers.len() - refused).unwrap();
        if refused > 0 {
            before_refusal.get_or_insert(admitted);
        }
    }
    (admitted, before_refusal.unwrap_or(admitted))
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_on_one_database_share_a_limit() {
    for (limit, requests) in [(10_u32, 60), (100, 300), (200, 500)] {
        let database = Cluster::shared().new_database();
        let limits = [limit.to_string(), (2 * limit).to_string()];
        let args = ["--database-url", &*database, "--rate-limit", &limits[0], "--keyless-rate-limit", &limits[1]];
        let servers: Vec<_> = (0..3).map(|_| Server::start_with(&args)).collect();
        let most = |limit: u32| limit + 3 * (limit / 20);

        let keyed = |server: &Server| server.request(Method::GET, "/payments");
        let (in_all, first) = admitted(&servers, requests, keyed).await;
        assert!(first >= limit && in_all <= most(limit), "{first}, {in_all} of {limit} with a key");
        let keyless = |server: &Server| server.keyless(Method::GET, "/api/v1/checkout/pay_unknown");
        let (in_all, first) = admitted(&servers, 2 * requests, keyless).await;
        assert!(first >= 2 * limit && in_all <= most(2 * limit), "{first}, {in_all} of {} by address", 2 * limit);

        // Each server refuses, and says for how long.
        for server in &servers {
            let refused = keyed(server).send().await.unwrap();
            assert_eq!((refused.status().as_u16(), rate(&refused)), (429, Some((limit, 0))));
            let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
    }
}
