//! Requests to any route.

use std::{borrow::Cow, future::IntoFuture};

use reqwest::Method;
use serde::Serialize;

use crate::{
    Client, Error, IdempotencyKey, RawResponse, Result,
    call::{Call, Route},
    error::Kind,
    platform::BoxFuture,
};

impl Client {
    /// Prepares a request to any route of the server, for example one for which this version has no method. It gets the
    /// client's key, timeouts, retries and errors, and returns the response as the server sent it.
    ///
    /// The path begins with `/` and follows the base URL, as in the API reference: `/api/v1/payments`. An id in it must not
    /// come from a customer unchecked; parse it first, for example as a [`PaymentId`](crate::PaymentId).
    ///
    /// ```no_run
    /// use payments_client::{Client, Method};
    /// use serde_json::Value;
    ///
    /// # async fn list(client: Client) -> Result<(), payments_client::Error> {
    /// let response = client.request(Method::GET, "/api/v1/payments").query("limit", 5).await?;
    /// println!("{} {:?} {:?}", response.status, response.request_id(), response.headers.get("date"));
    /// let page: Value = response.json()?;
    /// println!("{}", page["total"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The client retries what HTTP calls idempotent: GET, HEAD, PUT, DELETE and OPTIONS. It retries a POST or a PATCH only if the
    /// server did not run it, or if you set an [`idempotency_key`](RawRequest::idempotency_key).
    pub fn request(&self, method: Method, path: &str) -> RawRequest {
        let call = if is_plain(path) {
            Ok(Box::new(Call::of(method, Route::Any(path.into()))))
        } else {
            let rule = "the path must begin with / and be visible ASCII without ?, #, \\ and dot segments";
            Err(Kind::Request(format!("{rule}; give parameters with `query`")).into())
        };
        RawRequest { client: self.clone(), call }
    }
}

/// Whether a URL leaves the path unchanged, so that it cannot lead to another route.
fn is_plain(path: &str) -> bool {
    let is_dots = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte))
        && !path.split('/').any(is_dots)
}

/// A request to any route; see [`Client::request`]. Await it to send it.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct RawRequest {
    client: Client,
    call: Result<Box<Call>>,
}

impl RawRequest {
    /// Adds a parameter to the query. A parameter may be added several times.
    pub fn query(self, name: impl Into<Cow<'static, str>>, value: impl ToString) -> Self {
        self.with(|mut call| {
            call.query.push((name.into(), value.to_string()));
            Ok(call)
        })
    }

    /// Sets the body, as JSON.
    pub fn json(self, body: &impl Serialize) -> Self {
        self.with(|call| Ok(Box::new(call.body(body)?)))
    }

    /// Sets an idempotency key, so that the client can retry a POST. Only routes that the API reference lists with the header
    /// `Idempotency-Key` take one.
    pub fn idempotency_key<K>(self, key: K) -> Self
    where
        K: TryInto<IdempotencyKey>,
        Error: From<K::Error>,
    {
        self.with(|call| Ok(Box::new(Call { key: Some(key.try_into()?), ..call.repeatable() })))
    }

    fn with(self, change: impl FnOnce(Box<Call>) -> Result<Box<Call>>) -> Self {
        Self { call: self.call.and_then(change), ..self }
    }

    /// Sends the request and returns the response. Awaiting the request does the same.
    ///
    /// # Errors
    /// See [`Error`]. A status other than 2xx is an error; it [has the response](Error::response).
    pub async fn send(self) -> Result<RawResponse> {
        self.client.send_raw(self.call?).await
    }

    /// Sends the request and blocks the thread until the response arrives. Does not panic inside a runtime.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    #[cfg(feature = "blocking")]
    pub fn wait(self) -> Result<RawResponse> {
        crate::blocking::wait(self.send())?
    }
}

impl IntoFuture for RawRequest {
    type Output = Result<RawResponse>;
    type IntoFuture = BoxFuture<Result<RawResponse>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_own_route() {
        for (path, is_taken) in [
            ("/api/v1/payments", true),
            ("/api/v1/payments/a%2Fb", true),
            ("/", true),
            ("/api/v1/payments/..x", true),
            ("api/v1/payments", false),
            ("", false),
            ("https://elsewhere.example/", false),
            ("/api/v1/payments?limit=5", false),
            ("/api/v1/payments#", false),
            ("/api/v1/payments/../webhooks", false),
            ("/api/v1/payments/%2E%2e/webhooks", false),
            ("/api/v1/payments/.%2e", false),
            ("/api/v1/payments/.\t./webhooks", false),
            ("/api/v1/payments\\..\\webhooks", false),
            ("/api/v1/payments/a b", false),
        ] {
            assert_eq!(is_plain(path), is_taken, "{path:?}");
        }
    }

    #[test]
    fn a_path_is_appended_to_the_base_url_unchanged() {
        for (base, url) in [
            ("https://pay.example", "https://pay.example/api/v2//a%2Fb?q=%26&q=2"),
            ("https://pay.example/sub/", "https://pay.example/sub/api/v2//a%2Fb?q=%26&q=2"),
        ] {
            let client = Client::builder("sk_test_1").base_url(base).build().unwrap();
            let request = client.request(Method::GET, "/api/v2//a%2Fb").query("q", "&").query("q", 2);
            let built = client.prepare(&request.call.unwrap(), std::time::Duration::MAX).build().unwrap();
            assert_eq!(built.url().as_str(), url);
        }
    }
}
