//! The HTTP client of one gateway. It limits each request's time and each response's size.

use std::{error::Error, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use reqwest::{Client, Request, RequestBuilder, StatusCode, header::HeaderValue, redirect};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use super::{
    answer::Rejection,
    declaration::Declaration,
    error::GatewayError,
    health::Health,
    proxy::{self, GatewayProxy},
};
use crate::{metrics::GatewayCalls, trace};

const CONNECT: Duration = Duration::from_secs(5);
/// More than any response of a gateway.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Sends a request to a gateway and returns the complete response.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request. The error says why there is no complete response.
    async fn send(&self, request: Request) -> Result<Response, NoResponse>;
}

/// Why a request got no complete response.
#[derive(Debug)]
pub struct NoResponse {
    pub what: String,
    /// False only if there was no connection to send the request on.
    pub was_sent: bool,
}

impl NoResponse {
    fn of(error: &(dyn Error + 'static), was_sent: bool) -> Self {
        Self { what: innermost(error), was_sent }
    }
}

/// The most specific cause: for a failed connection, what the system said.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

pub(super) struct Network(pub(super) Client);

#[async_trait]
impl Transport for Network {
    async fn send(&self, request: Request) -> Result<Response, NoResponse> {
        let response = self.0.execute(request).await;
        // Without a connection, nothing was sent: the name was not found, nothing listens, or the connection was not secure.
        let response = response.map_err(|error| {
            let was_sent = !error.is_connect();
            NoResponse::of(&error.without_url(), was_sent)
        })?;
        let status = response.status();
        let body = Limited::new(reqwest::Body::from(response), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error| NoResponse::of(&*error, true))?.to_bytes();
        Ok(Response { status, body })
    }
}

pub(super) struct GatewayClient {
    declared: &'static Declaration,
    /// Builds the requests.
    pub(super) http: Client,
    transport: Box<dyn Transport>,
    health: Arc<Health>,
    calls: GatewayCalls,
}

pub struct Response {
    pub status: StatusCode,
    pub body: Bytes,
}

/// The HTTP client. `timeout` limits a whole call.
pub(super) fn client(timeout: Duration, proxy: Option<&GatewayProxy>) -> Result<Client, reqwest::Error> {
    let http = Client::builder()
        .user_agent(concat!("payments-server/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        // This is shorter than a call, so that the error can say that nothing was sent.
        .connect_timeout(CONNECT.min(timeout * 3 / 4))
        .timeout(timeout);
    proxy::by(http, proxy)?.build()
}

impl GatewayClient {
    /// A client whose requests use this transport.
    pub(super) fn by(
        declared: &'static Declaration,
        http: Client,
        transport: Box<dyn Transport>,
        health: Arc<Health>,
        calls: GatewayCalls,
    ) -> Self {
        Self { declared, http, transport, health, calls }
    }

    /// Sends a request and reads its response. A server error is [`GatewayError::Unanswered`]: the effect is unknown.
    /// Logs `what`, the name of the call, but no header and no body.
    pub(super) async fn call(&self, what: &'static str, request: RequestBuilder) -> Result<Response, GatewayError> {
        if !self.health.circuit.may_call(Instant::now()) {
            return Err(GatewayError::CircuitOpen { gateway: self.declared.name });
        }
        let started = Instant::now();
        let outcome = trace::gateway_call(self.declared.name.as_str(), what, self.send(request)).await;
        let (gateway, took) = (self.declared.name.as_str(), started.elapsed());
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.health.called(outcome.is_ok(), Instant::now());
        match &outcome {
            Ok(response) => {
                tracing::info!(gateway, what, status = response.status.as_u16(), millis, "gateway answered");
            }
            Err(error) => {
                let held_back = self.health.is_held_back();
                tracing::warn!(gateway, what, %error, millis, held_back, "gateway gave no usable response");
            }
        }
        self.calls.called(gateway, what, outcome.is_ok(), took);
        self.calls.held_back(gateway, self.health.is_held_back());
        outcome
    }

    /// Sends a request to another host than the gateway's, such as one that keeps its certificates. It says nothing of the
    /// gateway's health.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, GatewayError> {
        let sent = async {
            let request = request.build().map_err(|error| NoResponse::of(&error.without_url(), false))?;
            self.transport.send(request).await
        };
        let gateway = self.declared.name;
        let response =
            sent.await.map_err(|NoResponse { what, was_sent }| GatewayError::Unanswered { gateway, what, was_sent })?;
        if response.status.is_server_error() {
            return Err(self.unanswered(&format!("status {}", response.status.as_u16())));
        }
        Ok(response)
    }

    /// The error for a response that leaves the effect unknown.
    pub(super) fn unanswered(&self, what: &str) -> GatewayError {
        GatewayError::Unanswered { gateway: self.declared.name, what: what.to_owned(), was_sent: true }
    }

    /// Why the gateway did not carry out a request, in its words.
    pub(super) fn rejection(&self, code: impl Into<String>, message: impl Into<String>) -> Rejection {
        Rejection { gateway: self.declared.name, code: code.into(), message: message.into() }
    }
}

/// A header value that no log shows. An invalid value becomes empty, so the gateway refuses it. Credentials are checked when
/// they are read, but tokens are not.
pub(super) fn sensitive(value: &SecretString) -> HeaderValue {
    let mut value = HeaderValue::from_str(value.expose_secret()).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}
