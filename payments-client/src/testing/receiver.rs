//! A webhook endpoint for a test.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use payments_core::{CreateWebhook, Event, Subscription, WebhookEndpoint};
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};
use webhook_verify::{Secret, Verifier};

use super::StartError;
use crate::Client;

/// How long a test waits for an event.
const WAIT: Duration = Duration::from_secs(10);
/// The longest body that is read.
const MAX_BODY: usize = 1024 * 1024;

/// A webhook endpoint on this machine that verifies requests and answers 200. Dropping it ends it.
#[derive(Debug)]
pub struct Receiver {
    endpoint: WebhookEndpoint,
    events: UnboundedReceiver<Result<Event, ReceiveError>>,
    task: JoinHandle<()>,
}

/// Why a [`Receiver`] has no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// No webhook arrived.
    #[error("no webhook arrived within 10 seconds")]
    Nothing,
    /// A request arrived that is not a webhook of the server.
    #[error("the request is no webhook: {0}")]
    Invalid(String),
}

impl Receiver {
    pub(super) async fn subscribe(client: &Client) -> Result<Self, StartError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/webhook", listener.local_addr()?);
        let endpoint = client.webhooks().create(CreateWebhook::new(url, Subscription::All)).await?;
        let secret = Secret::new(endpoint.secret.reveal()).map_err(io::Error::other)?;
        let (sender, events) = unbounded_channel();
        let task = tokio::spawn(serve(listener, Arc::new(Verifier::new(secret)), sender));
        Ok(Self { endpoint, events, task })
    }

    /// The endpoint as the server stores it.
    #[must_use]
    pub fn endpoint(&self) -> &WebhookEndpoint {
        &self.endpoint
    }

    /// The next event, with a verified signature. Events of one payment arrive in order.
    ///
    /// # Errors
    /// If no event arrives within 10 seconds, or the request is not a webhook.
    pub async fn next(&mut self) -> Result<Event, ReceiveError> {
        match timeout(WAIT, self.events.recv()).await {
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => Err(ReceiveError::Nothing),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Sender = UnboundedSender<Result<Event, ReceiveError>>;

async fn serve(listener: TcpListener, verifier: Arc<Verifier>, sender: Sender) {
    while let Ok((connection, _)) = listener.accept().await {
        let (verifier, sender) = (Arc::clone(&verifier), sender.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (verifier, sender) = (Arc::clone(&verifier), sender.clone());
            async move {
                let event = event_of(&verifier, request).await;
                let status = if event.is_ok() { 200 } else { 400 };
                let _ = sender.send(event);
                let mut answer = Response::new(Empty::<bytes::Bytes>::new());
                *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
                Ok::<_, Infallible>(answer)
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), service));
    }
}

async fn event_of(verifier: &Verifier, request: hyper::Request<Incoming>) -> Result<Event, ReceiveError> {
    let invalid = |error: &dyn std::fmt::Display| ReceiveError::Invalid(error.to_string());
    let (head, body) = request.into_parts();
    let signature = head.headers.get("x-service-signature").map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|error| invalid(&error))?.to_bytes();
    let verified = verifier.verify(&signature, &body).map_err(|error| invalid(&error))?;
    Event::from_verified(verified).map_err(|error| invalid(&error))
}
