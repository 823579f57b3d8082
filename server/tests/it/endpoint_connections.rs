//! Connections to endpoints: an endpoint closes one between two requests or during one, or no descriptor is free.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use payments_client::{CreateWebhook, Subscription};
use reqwest::Method;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::{
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nthanks";

/// What a receiver does with one request of a connection.
#[derive(Clone, Copy)]
enum Step {
    /// Reads the request and responds.
    Respond,
    /// Waits for the next request and closes without reading it.
    CloseOnNextRequest,
    /// Reads the request and closes.
    ReadAndClose,
    /// Reads the request, starts to respond and closes.
    RespondPartially,
    /// Reads the request and responds with an endless body.
    RespondEndlessly,
}

/// Starts a receiver that performs these steps on each connection. Returns its address and the ids of read deliveries.
async fn receiver(steps: &'static [Step]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, read) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let log = Arc::clone(&read);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                for step in steps {
                    if matches!(step, Step::CloseOnNextRequest) {
                        let _ = stream.peek(&mut [0]).await;
                        return;
                    }
                    let Some(delivery) = read_request(&mut stream).await else { return };
                    log.lock().unwrap().push(delivery);
                    let _ = match step {
                        Step::Respond => stream.write_all(ANSWER).await,
                        Step::RespondEndlessly => stream.write_all(ENDLESS).await,
                        Step::RespondPartially => stream.write_all(&ANSWER[..7]).await,
                        _ => Ok(()),
                    };
                }
            });
        }
    });
    (address, read)
}

/// Reads one request and returns the id of its delivery.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(|value| value.trim().to_owned()))
        };
        if body.len() >= header("content-length:")?.parse::<usize>().ok()? {
            return header("x-service-delivery:");
        }
    }
}

async fn subscribe(server: &Server, address: SocketAddr) {
    let params = CreateWebhook::new(format!("http://{address}/hook"), Subscription::All);
    server.client().webhooks().create(params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_closes_keep_alive_connections_gets_every_event_once() {
    let server = Server::start();
    let (address, read) = receiver(&[Step::Respond, Step::CloseOnNextRequest]).await;
    subscribe(&server, address).await;
    for _ in 0..60 {
        server.create(&payment_of(&json!(5))).await;
    }
    let deliveries = server.ended_deliveries(60).await;
    let lost: Vec<_> = deliveries.iter().filter(|delivery| delivery["status"] != "success").collect();
    assert!(lost.is_empty(), "{} of 60 deliveries failed: {:?}", lost.len(), lost[0]);
    let mut read = read.lock().unwrap().clone();
    assert_eq!(read.len(), 60);
    read.sort();
    read.dedup();
    assert_eq!(read.len(), 60, "each event arrived once");
    assert!(deliveries.iter().all(|delivery| delivery["attempts"] == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_read_on_a_new_connection_is_not_resent() {
    let server = Server::start();
    let (address, read) = receiver(&[Step::ReadAndClose]).await;
    subscribe(&server, address).await;
    server.create(&payment_of(&json!(5))).await;
    let delivery = server.ended_deliveries(1).await.remove(0);
    assert_eq!((&delivery["status"], &delivery["responseStatus"]), (&json!("failed"), &Value::Null));
    assert_eq!(delivery["error"]["code"], "connection_closed");
    assert_eq!(read.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_partial_response_is_not_resent() {
    let server = Server::start();
    let (address, read) = receiver(&[Step::Respond, Step::RespondPartially]).await;
    subscribe(&server, address).await;
    server.create(&payment_of(&json!(5))).await;
    assert_eq!(server.ended_deliveries(1).await[0]["status"], "success");
    server.create(&payment_of(&json!(5))).await;
    let delivery = server.ended_deliveries(2).await.remove(0);
    assert_eq!((&delivery["status"], &delivery["error"]["code"]), (&json!("failed"), &json!("connection_closed")));
    assert_eq!(read.lock().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_with_an_endless_body_is_logged_with_its_status_and_partial_body() {
    let server = Server::start();
    // The receiver waits for another request before it closes.
    let (address, _) = receiver(&[Step::RespondEndlessly, Step::Respond]).await;
    subscribe(&server, address).await;
    server.create(&payment_of(&json!(5))).await;
    let delivery = server.ended_deliveries(1).await.remove(0);
    assert_eq!((&delivery["status"], &delivery["responseStatus"]), (&json!("success"), &json!(200)));
    assert_eq!((&delivery["responseBody"], &delivery["error"]), (&json!("thanks"), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_without_a_free_descriptor_waits_for_one() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    // Open the test's own connection while descriptors are free.
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |method: Method, path: &str, body: Option<Value>| -> Value {
        let request = client.request(method, format!("{}/api/v1{path}", server.url)).bearer_auth(SANDBOX_KEY);
        let request = request.header("idempotency-key", "once");
        let request =
            body.map_or_else(|| request.try_clone().unwrap(), |body| request.try_clone().unwrap().json(&body));
        // While its first connection is busy, the client opens another one. The server does not accept that one.
        loop {
            let sent = timeout(Duration::from_secs(2), request.try_clone().unwrap().send()).await;
            if let Ok(answer) = sent {
                return answer.unwrap().json().await.unwrap();
            }
        }
    };
    ask(Method::GET, "/webhooks", None).await;
    // The test lowers the server's descriptor limit, because the server's own limits never use all descriptors.
    let process = Pid::from_raw(i32::try_from(server.process_id()).unwrap());
    let few = Rlimit { current: Some(8), ..getrlimit(Resource::Nofile) };
    let before = prlimit(process, Resource::Nofile, few).unwrap();
    ask(Method::POST, "/payments", Some(payment_of(&json!(5)))).await;
    sleep(Duration::from_millis(1500)).await;
    let status = ask(Method::GET, "/webhooks/deliveries", None).await["items"][0]["status"].clone();
    assert_ne!(status, "failed", "{}", server.log());
    prlimit(process, Resource::Nofile, before).unwrap();
    eventually("the delivery", async || (receiver.received().len() == 1).then_some(())).await;
    assert_eq!(server.ended_deliveries(1).await[0]["status"], "success");
}
