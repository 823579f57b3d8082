//! A shop whose endpoints answer as a test says.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{
    Request, Response, body::Frame, body::Incoming, client, http::request::Parts, server, service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    io::duplex,
    time::{Instant, sleep},
};

use crate::delivery::{
    client::{Endpoints, RequestBuilder},
    send_error::{Exhausted, SendError},
};

/// What an endpoint does with a request.
#[derive(Debug, Clone)]
pub(in crate::delivery) enum Answer {
    /// Answers after a while. Each part of the body follows after its own delay.
    Http { after: Duration, status: u16, parts: Vec<(Duration, Bytes)> },
    /// Never answers.
    Silence,
    /// Closes the connection.
    Closes,
    /// This server cannot send the request.
    NotSent,
}

impl Answer {
    /// A response with this status and the body `thanks`, after this many milliseconds.
    pub(in crate::delivery) fn status(status: u16, millis: u64) -> Self {
        let parts = vec![(Duration::ZERO, Bytes::from_static(b"thanks"))];
        Self::Http { after: Duration::from_millis(millis), status, parts }
    }
}

/// A request that an endpoint received.
#[derive(Clone)]
pub(in crate::delivery) struct Heard {
    pub(in crate::delivery) at: Instant,
    pub(in crate::delivery) head: Parts,
    pub(in crate::delivery) body: Bytes,
}

impl Heard {
    pub(in crate::delivery) fn host(&self) -> &str {
        self.head.uri.host().unwrap()
    }

    pub(in crate::delivery) fn header(&self, name: &str) -> &str {
        self.head.headers[name].to_str().unwrap()
    }
}

type Behaviour = dyn Fn(&Heard) -> Answer + Send + Sync;

/// The endpoints, and every request that they received.
pub(in crate::delivery) struct Shop {
    behaviour: Box<Behaviour>,
    heard: Mutex<Vec<Heard>>,
}

impl Shop {
    pub(in crate::delivery) fn new(behaviour: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { behaviour: Box::new(behaviour), heard: Mutex::default() })
    }

    pub(in crate::delivery) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().clone()
    }
}

/// Sends requests to a shop.
pub(in crate::delivery) struct To(pub(in crate::delivery) Arc<Shop>);

#[async_trait]
impl Endpoints for To {
    async fn send(&self, request: &RequestBuilder<'_>) -> Result<Response<Incoming>, SendError> {
        let (head, body) = request()?.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let heard = Heard { at: Instant::now(), head, body };
        let answer = (self.0.behaviour)(&heard);
        if !matches!(answer, Answer::NotSent) {
            self.0.heard.lock().push(heard);
        }
        match answer {
            Answer::Http { after, status, parts } => {
                sleep(after).await;
                Ok(response(status, parts).await.unwrap())
            }
            Answer::Silence => pending().await,
            Answer::Closes => Err(SendError::closed()),
            Answer::NotSent => Err(Exhausted("file descriptors").into()),
        }
    }
}

/// A response as hyper reads it from a connection.
async fn response(status: u16, parts: Vec<(Duration, Bytes)>) -> Result<Response<Incoming>, hyper::Error> {
    let (ours, theirs) = duplex(64 * 1024);
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(ours)).await?;
    let service = service_fn(move |_| {
        let parts = stream::iter(parts.clone()).then(|(after, part)| async move {
            sleep(after).await;
            Ok::<_, Infallible>(Frame::data(part))
        });
        let response = Response::builder().status(status).body(StreamBody::new(Box::pin(parts)));
        async { response }
    });
    let serving = server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service);
    tokio::spawn(async move {
        let (_, _) = tokio::join!(connection, serving);
    });
    sender.send_request(Request::new(Full::<Bytes>::default())).await
}
