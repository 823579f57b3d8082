//! A webhook endpoint for tests: records each request and replies as configured.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use payments_client::{
    Client, CreateWebhook, Event, Subscription,
    webhook::{Secret, Tolerance, Verifier},
};
use tokio::net::TcpListener;
use warp::{
    Filter,
    http::{HeaderMap, Response, StatusCode},
};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    /// Verifies the signature and parses the event.
    pub(crate) fn verified_with(&self, secret: &str) -> Event {
        let header = self.headers.get("x-service-signature").unwrap().as_bytes();
        let verifier = Verifier::new(Secret::new(secret).unwrap());
        Event::from_verified(verifier.verify(header, &self.body).unwrap()).unwrap()
    }

    /// How many secrets signed it.
    pub(crate) fn signatures(&self) -> usize {
        self.headers["x-service-signature"].to_str().unwrap().matches(",v1=").count()
    }

    /// Whether the signature is valid, regardless of its age.
    pub(crate) fn verified_with_any_age(&self, secret: &str) -> bool {
        let header = self.headers.get("x-service-signature").unwrap().as_bytes();
        let verifier = Verifier::new(Secret::new(secret).unwrap()).tolerance(Tolerance::OFF);
        verifier.verify(header, &self.body).is_ok()
    }
}

/// How the endpoint replies.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Status(StatusCode, String),
    /// Replies to each request with the next status, and repeats the last one.
    InTurn(Vec<StatusCode>),
    Redirect(String),
    /// Replies 200 after this time.
    Delayed(Duration),
    /// Reads the request and never replies.
    Never,
}

/// An endpoint on 127.0.0.1.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    /// Starts an endpoint that replies 200.
    pub(crate) async fn ok() -> Self {
        Self::start(Reply::Status(StatusCode::OK, String::new())).await
    }

    pub(crate) async fn start(reply: Reply) -> Self {
        Self::start_at("127.0.0.1:0", reply).await
    }

    pub(crate) async fn start_at(address: &str, reply: Reply) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let log = Arc::clone(&received);
        let route = warp::header::headers_cloned().and(warp::body::bytes()).then(move |headers, body| {
            let (log, reply) = (Arc::clone(&log), reply.clone());
            async move {
                let nth = {
                    let mut log = log.lock().unwrap();
                    log.push(Received { headers, body });
                    log.len() - 1
                };
                match reply {
                    Reply::InTurn(statuses) => {
                        let status = statuses.get(nth).or(statuses.last()).unwrap();
                        Response::builder().status(status).body(String::new())
                    }
                    Reply::Status(status, body) => Response::builder().status(status).body(body),
                    Reply::Redirect(to) => Response::builder().status(302).header("location", to).body(String::new()),
                    Reply::Delayed(time) => {
                        tokio::time::sleep(time).await;
                        Response::builder().status(200).body(String::new())
                    }
                    Reply::Never => {
                        tokio::time::sleep(Duration::from_secs(600)).await;
                        unreachable!("no test runs this long")
                    }
                }
            }
        });
        let task = tokio::spawn(warp::serve(route).incoming(listener).run());
        Self { address, received, task }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Subscribes the endpoint to every event and returns its secret.
    pub(crate) async fn subscribe(&self, client: &Client) -> String {
        let endpoint = client.webhooks().create(CreateWebhook::new(self.url(), Subscription::All)).await.unwrap();
        endpoint.secret.reveal().to_owned()
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}
