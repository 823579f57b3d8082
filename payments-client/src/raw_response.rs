//! Complete responses and failed requests.

use bytes::Bytes;
use payments_core::ErrorBody;
use reqwest::{StatusCode, header::HeaderMap};
use serde::de::DeserializeOwned;

use crate::{
    IdempotencyKey,
    clock::Clock,
    error::{BodyStart, Context, Error, Kind},
    response::{is_replayed, request_id},
    retry::Failure,
    retry_after::retry_after,
};

/// A complete response of any status.
pub(crate) struct RawResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) tries: u32,
}

impl RawResponse {
    fn context(&self, clock: &Clock) -> Context {
        Context {
            tries: self.tries,
            request_id: request_id(&self.headers).map(Into::into),
            retry_after: retry_after(&self.headers, clock.now()),
            key: None,
            body_start: Some(BodyStart::of(&self.body)),
        }
    }

    pub(crate) fn refusal(self, clock: &Clock) -> (Failure, Kind, Context) {
        let failure = Failure::Status { status: self.status.as_u16(), replayed: is_replayed(&self.headers) };
        let context = self.context(clock);
        let kind = match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(body) => Kind::Api { status: self.status, body: Box::new(body) },
            Err(_) => Kind::Status { status: self.status },
        };
        (failure, kind, context)
    }

    /// Deserializes the body again, to find the path of the error.
    pub(crate) fn unreadable<T: DeserializeOwned>(
        &self,
        source: serde_json::Error,
        key: Option<IdempotencyKey>,
        clock: &Clock,
    ) -> Error {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        let path = match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Ok(_) => ".".into(),
            Err(error) => error.path().to_string(),
        };
        Error::new(Kind::Decode { status: self.status, path, source }, Context { key, ..self.context(clock) })
    }

    /// The API's response to a successful delete.
    pub(crate) fn removed(self) -> Self {
        let body = Bytes::from_static(br#"{"success":true,"message":"The webhook endpoint was removed before"}"#);
        Self { status: StatusCode::OK, body, ..self }
    }
}

/// Classifies a request that failed without a response.
pub(crate) fn failed(error: reqwest::Error) -> (Failure, Kind) {
    // The URL contains ids and queries.
    let error = error.without_url();
    if error.is_connect() {
        (Failure::Connect, Kind::Connect(Some(error)))
    } else if error.is_timeout() {
        (Failure::Lost, Kind::Timeout(Some(error)))
    } else {
        (Failure::Lost, Kind::Lost(Some(error)))
    }
}
