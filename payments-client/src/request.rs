//! A request that waits to be sent.

use std::{future::IntoFuture, marker::PhantomData, pin::Pin};

use serde::de::DeserializeOwned;

use crate::{
    Client, IdempotencyKey, Response, Result,
    call::{Call, CallResult},
    error::{Error, Kind},
};

type Sending<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// A request; await it to send it.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Request<T> {
    client: Client,
    call: Result<Call>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Request<T> {
    pub(crate) fn new(client: &Client, call: impl Into<CallResult>) -> Self {
        Self { client: client.clone(), call: call.into().0, value: PhantomData }
    }

    pub(crate) fn into_parts(self) -> (Client, Result<Call>) {
        (self.client, self.call)
    }

    pub(crate) fn query(mut self, name: &'static str, value: String) -> Self {
        if let Ok(call) = &mut self.call {
            call.query.retain(|(known, _)| *known != name);
            call.query.push((name, value));
        }
        self
    }

    /// Sends it and gives the value, as awaiting it does.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send(self) -> Result<T> {
        Ok(self.send_for_response().await?.value)
    }

    /// Sends it and gives the value with the answer it came in.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_for_response(self) -> Result<Response<T>> {
        self.client.send(self.call?).await
    }

    /// Sends it and waits, in a program without `async`. It may be called anywhere: within a runtime it holds its
    /// thread up, but does not panic.
    ///
    /// # Errors
    /// See [`Error`].
    #[cfg(feature = "blocking")]
    pub fn wait(self) -> Result<T> {
        crate::blocking::wait(self.send())?
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Request<T> {
    type Output = Result<T>;
    type IntoFuture = Sending<T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A request that carries an idempotency key; await it to send it. The key is a new one unless you give yours, and the
/// same over all tries.
///
/// The server keeps the answer under the key for 24 hours. **The same key after that makes a second payment.** Do not
/// repeat a request that old: read the list of payments first.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct IdempotentRequest<T> {
    request: Request<T>,
    key: Option<IdempotencyKey>,
}

impl<T: DeserializeOwned + Send + 'static> IdempotentRequest<T> {
    pub(crate) fn new(client: &Client, call: impl Into<CallResult>) -> Self {
        Self { request: Request::new(client, call), key: None }
    }

    /// Sends it under your own key, such as the order's number: then a program that crashed and starts again within 24
    /// hours gets the payment it made.
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    fn keyed(mut self) -> Request<T> {
        let key = self.key.map_or_else(
            || IdempotencyKey::generate().map_err(|error| Error::from(Kind::Request(error.to_string()))),
            Ok,
        );
        self.request.call = self.request.call.and_then(|call| Ok(Call { key: Some(key?), ..call.repeatable() }));
        self.request
    }

    /// Sends it and gives the value, as awaiting it does.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send(self) -> Result<T> {
        self.keyed().send().await
    }

    /// Sends it and gives the value with the answer it came in: whether it is a replay, and under which key.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_for_response(self) -> Result<Response<T>> {
        self.keyed().send_for_response().await
    }

    /// Sends it and waits, in a program without `async`. It may be called anywhere: within a runtime it holds its
    /// thread up, but does not panic.
    ///
    /// # Errors
    /// See [`Error`].
    #[cfg(feature = "blocking")]
    pub fn wait(self) -> Result<T> {
        self.keyed().wait()
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for IdempotentRequest<T> {
    type Output = Result<T>;
    type IntoFuture = Sending<T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
