//! Each create makes one payment, even if responses are lost.

use std::{sync::Arc, time::Duration};

use payments_client::{Client, CreatePayment, Money};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use crate::server::Server;

const CREATES: u64 = 1000;

/// A proxy with one request per connection. Of five requests, it returns 503 to one and drops the response to another.
async fn faulty_proxy(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for number in 0_u64.. {
            let (client, _) = listener.accept().await.unwrap();
            let server = server.clone();
            tokio::spawn(async move {
                let _ = pass(client, &server, number % 5).await;
            });
        }
    });
    url
}

async fn pass(mut client: TcpStream, server: &str, number: u64) -> std::io::Result<()> {
    let request = read_request(&mut client).await?;
    if number == 0 {
        return client
            .write_all(b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await;
    }
    let mut upstream = TcpStream::connect(server).await?;
    upstream.write_all(request.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).await?;
    let mut response = Vec::new();
    upstream.read_to_end(&mut response).await?;
    if number != 1 {
        client.write_all(&response).await?;
    }
    Ok(())
}

async fn read_request(client: &mut TcpStream) -> std::io::Result<String> {
    let mut request = String::new();
    let mut part = [0; 4096];
    loop {
        let read = client.read(&mut part).await?;
        request.push_str(&String::from_utf8_lossy(&part[..read]));
        let Some((head, body)) = request.split_once("\r\n\r\n") else {
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if read == 0 || length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap()) {
            return Ok(request);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_1000_creates_makes_one_payment_if_two_in_five_responses_fail() {
    let server = Server::start();
    let proxy = faulty_proxy(server.url.trim_start_matches("http://").to_owned()).await;
    let client = Client::builder("sk_test_demo")
        .base_url(proxy)
        .retries(60)
        .retry_budget(1_000_000)
        .backoff(Duration::from_millis(1), Duration::from_millis(20))
        .total_timeout(Duration::from_secs(300))
        .build()
        .unwrap();
    let at_once = Arc::new(Semaphore::new(16));
    let mut creates = JoinSet::new();
    for order in 0..CREATES {
        let (client, at_once) = (client.clone(), at_once.clone());
        creates.spawn(async move {
            let _permit = at_once.acquire().await.unwrap();
            let params = CreatePayment::of(Money::taka(1))
                .success_url("https://shop.example/a")
                .cancel_url("https://shop.example/b")
                .merchant_transaction_id(format!("order-{order}"));
            let response = client.payments().create(params).send_for_response().await.unwrap();
            (response.value.id, response.raw.tries)
        });
    }
    let responses = creates.join_all().await;
    assert!(responses.iter().any(|(_, tries)| *tries > 2), "the proxy causes retries");
    let mut ids: Vec<_> = responses.into_iter().map(|(id, _)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(u64::try_from(ids.len()).unwrap(), CREATES);
    assert_eq!(server.client().payments().list().await.unwrap().total, Some(CREATES));
}
