//! The log of requests.

use payments_core::RequestPage;
use reqwest::Method;

use crate::{Client, call::Call, request::Request};

/// The log of the requests that any key of the same developer and environment made.
#[derive(Debug, Clone, Copy)]
pub struct RequestLog<'c> {
    client: &'c Client,
}

impl Client {
    /// The log of requests with keys of this developer, and of their answers.
    #[must_use]
    pub fn request_log(&self) -> RequestLog<'_> {
        RequestLog { client: self }
    }
}

impl RequestLog<'_> {
    /// Lists requests of the last seven days, newest first. A request appears within three seconds.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for request in client.request_log().list().failed().await?.items {
    ///     println!("{} {} {}: {:?}", request.created_at, request.method, request.path, request.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> Request<RequestPage> {
        Request::new(self.client, Call::new(Method::GET, "/requests", None))
    }
}

impl Request<RequestPage> {
    /// Only requests before this position in the log. Pass the `next` of an earlier part.
    pub fn before(self, place: &str) -> Self {
        self.query("before", place.to_owned())
    }

    /// Only requests whose answer was an error.
    pub fn failed(self) -> Self {
        self.query("failed", "true".to_owned())
    }

    /// At most `limit` requests, 1 to 100. Default: 20.
    pub fn limit(self, limit: u8) -> Self {
        self.query("limit", limit.to_string())
    }
}
