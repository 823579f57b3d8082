//! The HTTP client of one gateway. It limits each request's time and each response's size.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Client, RequestBuilder, StatusCode, redirect};
use tokio::time::Instant;

use super::{
    circuit::Circuit,
    error::GatewayError,
    proxy::{self, GatewayProxy},
};
use crate::{domain::GatewayName, metrics::GatewayCalls};

const CONNECT: Duration = Duration::from_secs(5);
/// More than any response of a gateway.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Sends requests to one gateway.
pub(super) struct GatewayClient {
    gateway: GatewayName,
    pub(super) http: Client,
    circuit: Circuit,
    calls: GatewayCalls,
}

/// A complete response.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl GatewayClient {
    /// `timeout` limits a whole call.
    pub(super) fn new(
        gateway: GatewayName,
        timeout: Duration,
        proxy: Option<&GatewayProxy>,
        calls: GatewayCalls,
    ) -> Result<Self, reqwest::Error> {
        let http = Client::builder()
            .user_agent(concat!("payments-server/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(timeout);
        let http = proxy::by(http, proxy)?.build()?;
        Ok(Self { gateway, http, circuit: Circuit::default(), calls })
    }

    /// Sends a request and reads its response. A server error is [`GatewayError::Unanswered`]: the effect is unknown.
    /// Logs `what`, the name of the call, but no header and no body.
    pub(super) async fn call(&self, what: &'static str, request: RequestBuilder) -> Result<Response, GatewayError> {
        if !self.circuit.may_call(Instant::now()) {
            return Err(GatewayError::CircuitOpen { gateway: self.gateway });
        }
        let started = Instant::now();
        let outcome = self.send(request).await;
        let took = started.elapsed();
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.calls.called(self.gateway.as_str(), what, outcome.is_ok(), took);
        match &outcome {
            Ok(response) => {
                self.circuit.answered();
                tracing::info!(
                    gateway = self.gateway.as_str(),
                    what,
                    status = response.status.as_u16(),
                    millis,
                    "gateway answered"
                );
            }
            Err(error) => {
                self.circuit.unanswered(Instant::now());
                tracing::warn!(gateway = self.gateway.as_str(), what, %error, millis, held_back = self.circuit.is_open(),
                    "gateway gave no usable response");
            }
        }
        self.calls.held_back(self.gateway.as_str(), self.circuit.is_open());
        outcome
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, GatewayError> {
        let mut response = request.send().await.map_err(|error| self.request_error(&error.without_url()))?;
        let status = response.status();
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.request_error(&error.without_url()))? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(self.unanswered("the response is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_server_error() {
            return Err(self.unanswered(&format!("status {}", status.as_u16())));
        }
        Ok(Response { status, body: body.freeze() })
    }

    fn request_error(&self, error: &reqwest::Error) -> GatewayError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        self.unanswered(&cause.to_string())
    }

    /// The error for a response that leaves the effect unknown.
    pub(super) fn unanswered(&self, what: &str) -> GatewayError {
        GatewayError::Unanswered { gateway: self.gateway, what: what.to_owned() }
    }

    pub(super) fn refused(&self, code: impl Into<String>, message: impl Into<String>) -> GatewayError {
        GatewayError::Refused { gateway: self.gateway, code: code.into(), message: message.into() }
    }
}

/// A header value that no log shows. An invalid value becomes empty, so the gateway refuses it: credentials are checked when
/// they are read, but tokens are not.
pub(super) fn sensitive(value: &str) -> reqwest::header::HeaderValue {
    let mut value =
        reqwest::header::HeaderValue::from_str(value).unwrap_or_else(|_| reqwest::header::HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}
