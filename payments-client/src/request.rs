//! Requests before they are sent.

use std::{future::IntoFuture, marker::PhantomData};

use serde::de::DeserializeOwned;

use crate::{
    Client, IdempotencyKey, RawResponse, Response, Result,
    call::{Call, CallResult},
    error::{Error, Kind},
    platform::BoxFuture,
};

/// A request. Await it to send it.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Request<T> {
    client: Client,
    call: Result<Box<Call>>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Request<T> {
    pub(crate) fn new(client: &Client, call: impl Into<CallResult>) -> Self {
        Self { client: client.clone(), call: call.into().0, value: PhantomData }
    }

    pub(crate) fn into_parts(self) -> (Client, Result<Box<Call>>) {
        (self.client, self.call)
    }

    pub(crate) fn query(mut self, name: &'static str, value: String) -> Self {
        if let Ok(call) = &mut self.call {
            call.query.retain(|(known, _)| *known != name);
            call.query.push((name.into(), value));
        }
        self
    }

    /// Sends the request and returns the value. Awaiting the request does the same.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send(self) -> Result<T> {
        Ok(self.send_for_response().await?.value)
    }

    /// Sends the request and returns the value with the response's details.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_for_response(self) -> Result<Response<T>> {
        self.client.send(self.call?).await
    }

    /// Sends the request and returns the response as the server sent it, without parsing the body.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let response = client.account().retrieve().send_raw().await?;
    /// println!("{} {:?} {:?}", response.status, response.request_id(), response.body);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_raw(self) -> Result<RawResponse> {
        // A 404 must stay an error, because a delete by an earlier try has no response of its own.
        let call = Call { is_removal: false, ..*self.call? };
        self.client.send_raw(call.into()).await
    }

    /// Sends the request and blocks the thread until the value arrives. Does not panic inside a runtime.
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
    type IntoFuture = BoxFuture<Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A request with an idempotency key, yours or a generated one. All tries have the same key. Await it to send it.
///
/// The server stores the response under the key for 24 hours. **After that, the same key creates a second payment.**
/// Before you retry an older request, check the list of payments.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct IdempotentRequest<T> {
    request: Request<T>,
    key: Option<Result<IdempotencyKey>>,
}

impl<T: DeserializeOwned + Send + 'static> IdempotentRequest<T> {
    pub(crate) fn new(client: &Client, call: impl Into<CallResult>) -> Self {
        Self { request: Request::new(client, call), key: None }
    }

    /// Sets your own key, such as the order number. Within 24 hours, the program gets the same payment even after a crash. If
    /// the text is not a valid key, the request fails when it is awaited, and nothing is sent.
    pub fn idempotency_key<K>(mut self, key: K) -> Self
    where
        K: TryInto<IdempotencyKey>,
        Error: From<K::Error>,
    {
        self.key = Some(key.try_into().map_err(Error::from));
        self
    }

    fn keyed(mut self) -> Request<T> {
        let generate = || IdempotencyKey::generate().map_err(|error| Kind::Request(error.to_string()).into());
        let key = self.key.unwrap_or_else(generate);
        self.request.call = self.request.call.and_then(|call| Ok(Call { key: Some(key?), ..call.repeatable() }.into()));
        self.request
    }

    /// Sends the request and returns the value. Awaiting the request does the same.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send(self) -> Result<T> {
        self.keyed().send().await
    }

    /// Sends the request and returns the value with the response's details, such as whether it is a stored response.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_for_response(self) -> Result<Response<T>> {
        self.keyed().send_for_response().await
    }

    /// Sends the request and returns the response as the server sent it, without parsing the body.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn send_raw(self) -> Result<RawResponse> {
        self.keyed().send_raw().await
    }

    /// Sends the request and blocks the thread until the value arrives. Does not panic inside a runtime.
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
    type IntoFuture = BoxFuture<Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
