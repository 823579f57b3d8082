//! Connection limits and file descriptors: one client's connections never block other clients, webhooks or the store.

use std::{
    io::{ErrorKind, Read},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};

use crate::{
    receiver::{Receiver, Reply},
    server::{SANDBOX_KEY, Server, eventually, metric, payment_of},
};

/// Opens up to `count` connections to the server from 127.0.0.1 and sends nothing.
fn idle(server: &Server, count: usize) -> Vec<TcpStream> {
    // The test process holds the other ends of the connections, and its own limit may be low.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let address: SocketAddr = server.address().parse().unwrap();
    // The server closes connections beyond its limit, and the kernel delays those beyond the backlog.
    (0..count).filter_map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()).collect()
}

/// Whether the server has closed a connection.
fn is_closed(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match (&mut &*stream).read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A client with another address, 127.0.0.2.
fn neighbour() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().local_address(IpAddr::from([127, 0, 0, 2]));
    client.timeout(Duration::from_secs(15)).build().unwrap()
}

async fn count(client: &reqwest::Client, server: &Server, name: &str) -> u64 {
    metric(&metrics(client, server).await, name)
}

async fn metrics(client: &reqwest::Client, server: &Server) -> String {
    client.get(format!("{}/metrics", server.url)).send().await.unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_connections_block_neither_webhooks_nor_payments() {
    let server = Server::start_limited(1024);
    let client = neighbour();
    // Each event goes to 50 endpoints over 50 connections.
    let receiver = Receiver::ok().await;
    for _ in 0..50 {
        receiver.subscribe(&server.client()).await;
    }
    let held = idle(&server, 1000);
    for amount in 1..=4 {
        let create = client.post(format!("{}/api/v1/payments", server.url)).bearer_auth(SANDBOX_KEY);
        let answer = create.json(&payment_of(&json!(amount))).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    let list = client.get(format!("{}/api/v1/webhooks/deliveries?limit=1", server.url)).bearer_auth(SANDBOX_KEY);
    eventually("every delivery", async || {
        let deliveries: Value = list.try_clone().unwrap().send().await.unwrap().json().await.unwrap();
        // The first successful delivery adds the line.
        let all = "payments_deliveries_total{outcome=\"Success\"} 200";
        let made = metrics(&client, &server).await.lines().any(|line| line == all);
        (deliveries["total"] == 200 && made).then_some(())
    })
    .await;
    assert_eq!(receiver.received().len(), 200);
    assert!(!server.log().contains("os error 24"), "the server ran out of file descriptors");
    drop(held);
}

/// Connections kept open to endpoints, deliveries, pings and clients each have their own descriptors.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_endpoints_leave_descriptors_for_clients() {
    const HOSTS: usize = 12;
    const PAYMENTS: usize = 40;
    let server = Server::start_limited_with(128, &["--max-connections-per-address", "0"]);
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let ask =
        |method: Method, path: &str| client.request(method, format!("{}{path}", server.url)).bearer_auth(SANDBOX_KEY);
    let mut receivers = Vec::new();
    for _ in 0..HOSTS {
        let receiver = Receiver::start(Reply::Delayed(Duration::from_millis(200))).await;
        receiver.subscribe(&server.client()).await;
        receivers.push(receiver);
    }
    let endpoints = server.client().webhooks().list().await.unwrap();
    for amount in 1..=PAYMENTS {
        let create = ask(Method::POST, "/api/v1/payments").json(&payment_of(&json!(amount)));
        assert_eq!(create.send().await.unwrap().status(), StatusCode::CREATED);
    }
    for round in 0..4 {
        // Pings alternate between the halves, so that each round needs new connections. They use nearly all client slots.
        let half = &endpoints[round % 2 * HOSTS / 2..][..HOSTS / 2];
        let pings = half.iter().cycle().take(3 * HOSTS).map(|endpoint| {
            let ping = ask(Method::POST, &format!("/api/v1/webhooks/{}/test", endpoint.id));
            async move { ping.send().await.unwrap().json::<Value>().await.unwrap() }
        });
        for ping in join_all(pings).await {
            assert_eq!(ping["responseStatus"], 200, "in round {round}: {ping}");
        }
    }
    eventually("every delivery", async || {
        let made = receivers.iter().map(|receiver| receiver.received().len()).sum::<usize>();
        (made == HOSTS * PAYMENTS + 4 * 3 * HOSTS).then_some(())
    })
    .await;
    assert!(!server.log().contains("cannot accept a connection"), "{}", server.log());
    assert_eq!(count(&client, &server, "payments_deliveries_not_sent_total").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_per_address_limit_are_closed_and_other_addresses_connect() {
    let server = Server::start_with(&["--max-connections-per-address", "3"]);
    let client = neighbour();
    let held = idle(&server, 10);
    eventually("seven to be closed", async || {
        (held.iter().filter(|stream| is_closed(stream)).count() == 7).then_some(())
    })
    .await;
    // A second request might open another connection.
    let metrics = metrics(&client, &server).await;
    let counts =
        ["payments_connections_closed_total", "payments_connections"].map(|name| metric::<u64>(&metrics, name));
    assert_eq!(counts, [7, 4]);
    // Each closed connection makes room for another one.
    drop(held);
    eventually("room", async || server.keyless(Method::GET, "/healthz").send().await.is_ok().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_has_no_per_address_connection_limit() {
    let server = Server::start_with(&["--max-connections-per-address", "1", "--trusted-proxy", "127.0.0.1/32"]);
    let held = idle(&server, 20);
    let client = neighbour();
    eventually("all to be open", async || (count(&client, &server, "payments_connections").await > 20).then_some(()))
        .await;
    assert_eq!(held.iter().filter(|stream| is_closed(stream)).count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn max_connections_above_the_descriptor_limit_is_lowered_with_a_warning() {
    let server = Server::start_limited_with(1024, &["--max-connections", "5000"]);
    server.assert_logs("--max-connections is lowered");
    assert_eq!(count(&neighbour(), &server, "payments_connections_at_most").await, 488);
}

/// Another process lowers the server's descriptor limit, because the server's own limits never use all descriptors.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_recovers_once_file_descriptors_are_free_again() {
    let server = Server::start();
    let process = Pid::from_raw(i32::try_from(server.process_id()).unwrap());
    let few = Rlimit { current: Some(8), ..getrlimit(Resource::Nofile) };
    let before = prlimit(process, Resource::Nofile, few).unwrap();
    let held = idle(&server, 5);
    eventually("the server to run out", async || server.log().contains("cannot accept a connection").then_some(()))
        .await;
    prlimit(process, Resource::Nofile, before).unwrap();
    drop(held);
    let answer = server.request(Method::GET, "/payments").timeout(Duration::from_secs(10)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}
