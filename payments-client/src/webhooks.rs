//! Subscribing endpoints to events, and what was delivered to them.

use std::fmt;

use payments_core::{CreateWebhook, Delivery, Page, WebhookEndpoint, WebhookId};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, IdempotentRequest, call::Call, request::Request};

/// The webhook endpoints of the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'c> {
    client: &'c Client,
}

impl Client {
    /// Webhook endpoints.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { client: self }
    }
}

impl Webhooks<'_> {
    /// Subscribes an endpoint. The answer holds its signing secret.
    ///
    /// A developer may have so many in an environment, 100 unless the server's operator chose otherwise; one more is
    /// refused with 409 ([`Error::is_conflict`](crate::Error::is_conflict)), whose message says so.
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreateWebhook, Subscription};
    /// # async fn subscribe(client: Client) -> Result<(), payments_client::Error> {
    /// let params = CreateWebhook::new("https://shop.example/webhooks", Subscription::All);
    /// let endpoint = client.webhooks().create(params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, params: CreateWebhook) -> IdempotentRequest<WebhookEndpoint> {
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/webhooks", &[]).body(&params))
    }

    /// Reads all endpoints, oldest first, each with its secret.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for endpoint in client.webhooks().list().await? {
    ///     println!("{} {}", endpoint.id, endpoint.url);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> Request<Vec<WebhookEndpoint>> {
        Request::new(self.client, Call::new(Method::GET, "/webhooks", &[]))
    }

    /// Removes an endpoint. If the first answer was lost and the second says that there is no such endpoint, it was
    /// removed, and that is a success.
    ///
    /// ```no_run
    /// # use payments_client::{Client, WebhookId};
    /// # async fn delete(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// client.webhooks().delete(&id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(self, id: &WebhookId) -> Request<Removed> {
        Request::new(self.client, Call::new(Method::DELETE, "/webhooks/{}", &[id.as_str()]))
    }

    /// Sends a `test.ping` to an endpoint. `None` if the server could not send the ping or record it.
    ///
    /// ```no_run
    /// # use payments_client::{Client, WebhookId};
    /// # async fn test(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// if let Some(delivery) = client.webhooks().test(&id).await? {
    ///     println!("{:?}", delivery.response_status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn test(self, id: &WebhookId) -> IdempotentRequest<Option<Delivery>> {
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/webhooks/{}/test", &[id.as_str()]))
    }

    /// Reads a page of deliveries, newest first. Each event is sent once: one that failed here does not come again.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let page = client.webhooks().deliveries().limit(50).await?;
    /// for delivery in page.items {
    ///     match (delivery.response_status, delivery.error) {
    ///         (Some(status), _) => println!("{} was answered with {status}", delivery.id),
    ///         (None, Some(error)) => println!("{} got no answer: {} ({})", delivery.id, error.message, error.code),
    ///         (None, None) => println!("{} is under way", delivery.id),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn deliveries(self) -> Request<Page<Delivery>> {
        Request::new(self.client, Call::new(Method::GET, "/webhooks/deliveries", &[]))
    }

    /// Asks the server to verify a signature; no API key is sent. A receiver does better to verify by itself, with
    /// [`webhook`](crate::webhook), and to keep the secret.
    ///
    /// ```no_run
    /// # use payments_client::{Client, VerifySignature};
    /// # async fn verify(client: Client, secret: &str) -> Result<(), payments_client::Error> {
    /// let verdict = client.webhooks().verify(VerifySignature::new("{}", "t=1,v1=00", secret)).await?;
    /// assert!(!verdict.valid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify(self, params: VerifySignature) -> Request<Verdict> {
        let call = Call::new(Method::POST, "/webhooks/verify", &[]).keyless().repeatable();
        Request::new(self.client, call.body(&params))
    }
}

impl Request<Page<Delivery>> {
    /// Only deliveries to this endpoint.
    pub fn webhook(self, id: &WebhookId) -> Self {
        self.query("webhookId", id.to_string())
    }
}

/// What the API says of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Removed {
    /// Always true.
    pub success: bool,
    /// What was done.
    pub message: String,
}

/// A signature to be verified by the server. `Debug` does not show the secret.
#[derive(Clone, Serialize)]
pub struct VerifySignature {
    payload: String,
    signature: String,
    secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<u64>,
}

impl VerifySignature {
    /// The raw body of a request, its signature header and the endpoint's secret.
    #[must_use]
    pub fn new(payload: impl Into<String>, signature: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { payload: payload.into(), signature: signature.into(), secret: secret.into(), tolerance: None }
    }

    /// How many seconds old or early a signature may be; 300 unless said otherwise, 0 for any.
    #[must_use]
    pub fn tolerance(mut self, seconds: u64) -> Self {
        self.tolerance = Some(seconds);
        self
    }
}

impl fmt::Debug for VerifySignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifySignature").field("tolerance", &self.tolerance).finish_non_exhaustive()
    }
}

/// Whether a signature is right.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether it is.
    pub valid: bool,
    /// When it was made, in seconds since 1970, if it is.
    #[serde(default)]
    pub timestamp: Option<u64>,
    /// Why it is not: `missing_secret`, `malformed_header`, `timestamp_outside_tolerance` or `signature_mismatch`.
    #[serde(default)]
    pub reason: Option<String>,
}
