//! A merchant's endpoint: keeps what it was sent, and answers as the test tells it.

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

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    /// The event, if the signature proves it.
    pub(crate) fn verified_with(&self, secret: &str) -> Event {
        let header = self.headers.get("x-service-signature").unwrap().as_bytes();
        let verifier = Verifier::new(Secret::new(secret).unwrap());
        Event::from_verified(verifier.verify(header, &self.body).unwrap()).unwrap()
    }
}

impl Received {
    /// Whether the signature is genuine, however long ago it was made.
    pub(crate) fn verified_with_any_age(&self, secret: &str) -> bool {
        let header = self.headers.get("x-service-signature").unwrap().as_bytes();
        let verifier = Verifier::new(Secret::new(secret).unwrap()).tolerance(Tolerance::OFF);
        verifier.verify(header, &self.body).is_ok()
    }
}

/// How the endpoint answers.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    Answer(StatusCode, String),
    Redirect(String),
    /// Answers 200 after this time.
    Late(Duration),
    /// Takes the request and never answers.
    Hang,
}

/// An endpoint on this machine.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0", manner).await
    }

    pub(crate) async fn start_at(address: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let keep = Arc::clone(&received);
        let route = warp::header::headers_cloned().and(warp::body::bytes()).then(move |headers, body| {
            let (keep, manner) = (Arc::clone(&keep), manner.clone());
            async move {
                keep.lock().unwrap().push(Received { headers, body });
                match manner {
                    Manner::Answer(status, body) => Response::builder().status(status).body(body),
                    Manner::Redirect(to) => Response::builder().status(302).header("location", to).body(String::new()),
                    Manner::Late(time) => {
                        tokio::time::sleep(time).await;
                        Response::builder().status(200).body(String::new())
                    }
                    Manner::Hang => {
                        tokio::time::sleep(Duration::from_secs(600)).await;
                        unreachable!("the test is over by now")
                    }
                }
            }
        });
        let task = tokio::spawn(warp::serve(route).incoming(listener).run());
        Self { address, received, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Subscribes it to every event; returns its secret.
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
