//! One request to a gateway: bounded in time, bounded in size, and told apart by what is known of its effect.

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
/// More than any answer of a gateway.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The way to one gateway.
pub(super) struct Line {
    gateway: GatewayName,
    pub(super) client: Client,
    circuit: Circuit,
    calls: GatewayCalls,
}

/// An answer, whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Line {
    /// `timeout` bounds all of a call.
    pub(super) fn new(
        gateway: GatewayName,
        timeout: Duration,
        proxy: Option<&GatewayProxy>,
        calls: GatewayCalls,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .user_agent(concat!("payments-server/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(timeout);
        let client = proxy::by(client, proxy)?.build()?;
        Ok(Self { gateway, client, circuit: Circuit::default(), calls })
    }

    /// Sends a request and reads all of its answer. A server error counts as no answer: it says nothing of the effect.
    /// `what` names the call in the log; nothing of its headers or bodies gets there.
    pub(super) async fn call(&self, what: &'static str, request: RequestBuilder) -> Result<Answer, GatewayError> {
        if !self.circuit.may_call(Instant::now()) {
            return Err(GatewayError::CircuitOpen { gateway: self.gateway });
        }
        let begun = Instant::now();
        let outcome = self.answer(request).await;
        let took = begun.elapsed();
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.calls.called(self.gateway.as_str(), what, outcome.is_ok(), took);
        match &outcome {
            Ok(answer) => {
                self.circuit.answered();
                tracing::info!(
                    gateway = self.gateway.as_str(),
                    what,
                    status = answer.status.as_u16(),
                    millis,
                    "gateway answered"
                );
            }
            Err(error) => {
                self.circuit.unanswered(Instant::now());
                tracing::warn!(gateway = self.gateway.as_str(), what, %error, millis, held_back = self.circuit.is_open(),
                    "gateway did not answer");
            }
        }
        self.calls.held_back(self.gateway.as_str(), self.circuit.is_open());
        outcome
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Answer, GatewayError> {
        let mut response = request.send().await.map_err(|error| self.unanswered(&error.without_url()))?;
        let status = response.status();
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unanswered(&error.without_url()))? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(self.unanswered_because("an answer too long to be one of its own"));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_server_error() {
            return Err(self.unanswered_because(&format!("status {}", status.as_u16())));
        }
        Ok(Answer { status, body: body.freeze() })
    }

    fn unanswered(&self, error: &reqwest::Error) -> GatewayError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        self.unanswered_because(&cause.to_string())
    }

    /// An answer from which nothing can be learned.
    pub(super) fn unanswered_because(&self, what: &str) -> GatewayError {
        GatewayError::Unanswered { gateway: self.gateway, what: what.to_owned() }
    }

    pub(super) fn refused(&self, code: impl Into<String>, message: impl Into<String>) -> GatewayError {
        GatewayError::Refused { gateway: self.gateway, code: code.into(), message: message.into() }
    }
}

/// A header's value that no log shows. What cannot be a header's value is refused when credentials are read; of a token
/// an empty one is sent and refused.
pub(super) fn sensitive(value: &str) -> reqwest::header::HeaderValue {
    let mut value =
        reqwest::header::HeaderValue::from_str(value).unwrap_or_else(|_| reqwest::header::HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}
