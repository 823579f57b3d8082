//! Gateway calls: proxies, outages and secrets.

use std::{
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use gateway_fakes::{Fault, bkash, stripe};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::live;
use crate::{
    live::Live,
    receiver::Receiver,
    server::{assert_nowhere, server_binary},
};

#[tokio::test(flavor = "multi_thread")]
async fn gateway_calls_ignore_environment_proxies_and_use_the_configured_one() {
    let mut live = live().await;
    // Nothing listens on this port.
    let dead = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let dead = dead.map(|name| (name, "http://127.0.0.1:9"));
    live.server.restart_in(&dead);
    live.paid(5.0, "USD").await;
    live.paid(5.0, "BDT").await;

    let passed = Arc::<AtomicUsize>::default();
    let proxy = proxy(Arc::clone(&passed)).await;
    live.server.restart_in(&[&dead[..], &[("PAYMENTS_GATEWAY_PROXY", &*format!("http://a:hush@{proxy}"))]].concat());
    live.paid(5.0, "USD").await;
    let after_card = passed.load(Ordering::Relaxed);
    assert!(after_card > 0, "Stripe calls use the proxy");
    live.paid(5.0, "BDT").await;
    let after_both = passed.load(Ordering::Relaxed);
    assert!(after_both > after_card, "bKash calls use the proxy");
    let receiver = Receiver::ok().await;
    let hook = json!({"url": receiver.url(), "events": "*"});
    let hook: Value = live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().json().await.unwrap();
    let ping = format!("/webhooks/{}/test", hook["id"].as_str().unwrap());
    assert_eq!(live.request(Method::POST, &ping).send().await.unwrap().status(), 200);
    assert_eq!((receiver.received().len(), passed.load(Ordering::Relaxed)), (1, after_both), "webhooks bypass it");
    assert!(!live.server.log().contains("hush"));

    let mut command = Command::new(server_binary());
    command.args(["serve", "--gateway-proxy", "hush", "--listen", "127.0.0.1:0"]);
    let output = command.arg("--data-dir").arg(live.server.directory.path().join("other")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("--gateway-proxy") && !stderr.contains("hush"), "{stderr}");
}

/// Starts an HTTP proxy that counts the connections it forwards.
async fn proxy(passed: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let passed = Arc::clone(&passed);
            tokio::spawn(async move {
                let mut head = vec![0; 8192];
                let length = client.read(&mut head).await.unwrap_or(0);
                // `GET http://127.0.0.1:1234/path HTTP/1.1`
                let text = String::from_utf8_lossy(&head[..length]).into_owned();
                let Some(host) = text.split('/').nth(2).map(str::to_owned) else { return };
                let Ok(mut gateway) = TcpStream::connect(host).await else { return };
                passed.fetch_add(1, Ordering::Relaxed);
                let _ = gateway.write_all(&head[..length]).await;
                let _ = tokio::io::copy_bidirectional(&mut client, &mut gateway).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_gateway_returns_503_and_a_retry_works() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    live.bkash.faults().next("create", Fault::ErrorBefore);
    let pay = || live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay")).send();
    let answer = pay().await.unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().contains_key("retry-after"));
    assert_eq!(live.payment(&id).await["rawStatus"], "created");
    assert_eq!(pay().await.unwrap().status(), 200);

    live.stripe.program().refuse_next_session();
    let id = live.create(5.0, "USD").await;
    let refused = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay")).send().await.unwrap();
    assert_eq!(refused.status(), 422);
    assert!(refused.text().await.unwrap().contains("cannot currently make live charges"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_gateway_credential_or_token_reaches_the_log_or_the_store() {
    let live = Live::start("gateway-timeout = 1\n").await;
    let bdt = live.paid(5.0, "BDT").await;
    let usd = live.paid(5.0, "USD").await;
    // The log mentions both payments.
    live.server.assert_logs(&bdt);
    live.server.assert_logs(&usd);
    let log = live.server.log();
    for secret in
        [bkash::APP_SECRET, bkash::APP_KEY, bkash::PASSWORD, "eyJ.fake", stripe::SECRET_KEY, stripe::WEBHOOK_SECRET]
    {
        assert!(!log.contains(secret), "{secret}");
        assert_nowhere(secret, &live.server.data());
    }
}
