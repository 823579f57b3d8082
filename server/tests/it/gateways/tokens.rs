//! The token that every bKash call needs: bKash grants two an hour, and the server wastes none.

use std::time::Duration;

use gateway_fakes::{Fault, Running, bkash::Bkash};
use reqwest::{Method, StatusCode};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use super::live;
use crate::{live::Live, server::eventually};

async fn pay(live: &Live, id: &str) -> StatusCode {
    let pay = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
    pay.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_be_reached_uses_up_no_token() {
    let mut live = live().await;
    let id = live.create(7.0, "BDT").await;
    let address = live.bkash.url().replace("http://", "");
    live.bkash = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    eventually("nobody to listen", async || TcpStream::connect(&address).await.err()).await;
    for _ in 0..3 {
        assert_eq!(pay(&live, &id).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    live.bkash = Running::start(Bkash::new(), &address).await.unwrap();
    eventually("the payment to begin", async || (pay(&live, &id).await == StatusCode::OK).then_some(())).await;
    assert_eq!(live.bkash.program().token_calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_gateway_does_not_use_up_both_tokens_of_an_hour() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    for _ in 0..2 {
        live.bkash.faults().next("token", Fault::ErrorBefore);
    }
    for _ in 0..4 {
        assert_eq!(pay(&live, &id).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(live.bkash.faults().calls_of("token"), 1, "the second waits for some minutes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_who_hangs_up_does_not_lose_the_gateways_token() {
    let mut live = Live::start("gateway-timeout = 20").await;
    let id = live.create(7.0, "BDT").await;
    live.server.restart_in(&[("PAYMENTS_GATEWAY_PROXY", &*slow_proxy().await)]);
    assert!(timeout(Duration::from_millis(500), pay(&live, &id)).await.is_err(), "the customer hangs up");
    eventually("a token", async || (live.bkash.program().token_calls() == 1).then_some(())).await;
    assert_eq!(pay(&live, &id).await, StatusCode::OK);
    assert_eq!(live.bkash.program().token_calls(), 1);
}

/// An HTTP proxy that takes two seconds for each connection.
async fn slow_proxy() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = vec![0; 8192];
                let length = tokio::io::AsyncReadExt::read(&mut client, &mut head).await.unwrap_or(0);
                sleep(Duration::from_secs(2)).await;
                let text = String::from_utf8_lossy(&head[..length]).into_owned();
                let Some(host) = text.split('/').nth(2).map(str::to_owned) else { return };
                let Ok(mut gateway) = TcpStream::connect(host).await else { return };
                let _ = gateway.write_all(&head[..length]).await;
                let _ = copy_bidirectional(&mut client, &mut gateway).await;
            });
        }
    });
    format!("http://{address}")
}
