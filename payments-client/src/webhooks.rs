//! The webhook methods.

use std::fmt;

use payments_core::{
    CreateWebhook, Delivery, DeliveryId, EventKind, Page, RecoverWebhook, Recovered, Removed, RotateSecret,
    TestWebhook, UpdateWebhook, Verdict, WebhookEndpoint, WebhookId,
};
use reqwest::Method;
use serde::Serialize;

use crate::{Client, IdempotentRequest, call::Call, request::Request};

/// The webhook methods, for the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'c> {
    client: &'c Client,
}

impl Client {
    /// The webhook methods: endpoints, deliveries and verification.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { client: self }
    }
}

impl Webhooks<'_> {
    /// Creates an endpoint. The response contains its signing secret.
    ///
    /// The number of endpoints per developer and environment is limited, by default to 100. Beyond the limit the server
    /// returns 409 ([`WebhookEndpointLimitReached`](crate::ErrorCode::WebhookEndpointLimitReached)).
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreateWebhook, Subscription};
    /// # async fn subscribe(client: Client) -> Result<(), payments_client::Error> {
    /// let params = CreateWebhook::new("https://shop.example/webhooks", Subscription::All);
    /// let endpoint = client.webhooks().create(params).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A delivery is one attempt. With [`Retries::Standard`](crate::Retries::Standard) the server repeats a failed attempt up to
    /// six times within 18 hours, and disables an endpoint that is gone:
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreateWebhook, Retries, Subscription};
    /// # async fn subscribe(client: Client) -> Result<(), payments_client::Error> {
    /// let params = CreateWebhook::new("https://shop.example/webhooks", Subscription::All);
    /// client.webhooks().create(params.retries(Retries::Standard)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, params: CreateWebhook) -> IdempotentRequest<WebhookEndpoint> {
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/webhooks", None).body(&params))
    }

    /// Lists all endpoints with their secrets, oldest first.
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
        Request::new(self.client, Call::new(Method::GET, "/webhooks", None))
    }

    /// Changes an endpoint's URL, events, state, retries or description. Fields that the parameters omit stay. Pending
    /// deliveries go to the new URL, or fail if the endpoint is no longer active.
    ///
    /// An endpoint that the server disabled has a [`disabled_reason`](WebhookEndpoint::disabled_reason).
    /// [`is_active(true)`](UpdateWebhook::is_active) turns it on again:
    ///
    /// ```no_run
    /// # use payments_client::{Client, UpdateWebhook};
    /// # async fn turn_on(client: Client) -> Result<(), payments_client::Error> {
    /// for endpoint in client.webhooks().list().await? {
    ///     if let Some(reason) = &endpoint.disabled_reason {
    ///         println!("{} was disabled: {reason}", endpoint.url);
    ///         client.webhooks().update(&endpoint.id, UpdateWebhook::default().is_active(true)).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```no_run
    /// # use payments_client::{Client, UpdateWebhook, WebhookId};
    /// # async fn update(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// let params = UpdateWebhook::default().url("https://shop.example/hooks").description("the new shop");
    /// let endpoint = client.webhooks().update(&id, params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn update(self, id: &WebhookId, params: UpdateWebhook) -> Request<WebhookEndpoint> {
        let call = Call::new(Method::PATCH, "/webhooks/{}", Some(id.as_str())).repeatable();
        Request::new(self.client, call.body(&params))
    }

    /// Gives an endpoint a new secret, which the response contains. Until the overlap ends, each delivery has two signatures,
    /// and [`Verifier`](crate::webhook::Verifier) accepts it with either secret. A rotation within an overlap keeps the last
    /// three secrets.
    ///
    /// ```no_run
    /// # use payments_client::{Client, RotateSecret, WebhookId};
    /// # async fn rotate(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// let endpoint = client.webhooks().rotate_secret(&id, RotateSecret::default().overlap_seconds(3600)).await?;
    /// // Give endpoint.secret.reveal() to the receiver within the hour.
    /// # Ok(())
    /// # }
    /// ```
    pub fn rotate_secret(self, id: &WebhookId, params: RotateSecret) -> IdempotentRequest<WebhookEndpoint> {
        let call = Call::new(Method::POST, "/webhooks/{}/rotate-secret", Some(id.as_str()));
        IdempotentRequest::new(self.client, call.body(&params))
    }

    /// Deletes an endpoint. If a response is lost and the retry returns 404, the first try has deleted the endpoint, so
    /// the call succeeds.
    ///
    /// ```no_run
    /// # use payments_client::{Client, WebhookId};
    /// # async fn delete(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// client.webhooks().delete(&id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(self, id: &WebhookId) -> Request<Removed> {
        Request::new(self.client, Call::new(Method::DELETE, "/webhooks/{}", Some(id.as_str())).removal())
    }

    /// Sends a `test.ping` to an endpoint. Returns `None` if the server could not send or record it.
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
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/webhooks/{}/test", Some(id.as_str())))
    }

    /// Sends an example of an event of any kind to an endpoint, marked as a test. No payment stands behind it: its payment
    /// has `isSimulated` and the metadata `{"test":true}`. Returns `None` if the server could not send or record it.
    ///
    /// ```no_run
    /// # use payments_client::{Client, EventKind, WebhookId};
    /// # async fn test(client: Client, id: WebhookId) -> Result<(), payments_client::Error> {
    /// let delivery = client.webhooks().test_event(&id, EventKind::PaymentRefunded).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn test_event(self, id: &WebhookId, event: EventKind) -> IdempotentRequest<Option<Delivery>> {
        let call = Call::new(Method::POST, "/webhooks/{}/test", Some(id.as_str()));
        IdempotentRequest::new(self.client, call.body(&TestWebhook::with(event)))
    }

    /// Resends the failed deliveries of an endpoint, except those that were resent already. One request examines at most
    /// 1,000 deliveries. A repeated request resends nothing twice.
    ///
    /// ```no_run
    /// # use payments_client::{Client, RecoverWebhook, Timestamp, WebhookId};
    /// # async fn recover(client: Client, id: WebhookId, since: Timestamp) -> Result<(), payments_client::Error> {
    /// let mut params = RecoverWebhook::since(since);
    /// while let Some(next) = client.webhooks().recover(&id, &params).await?.next {
    ///     params = params.after(next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn recover(self, id: &WebhookId, params: &RecoverWebhook) -> Request<Recovered> {
        let call = Call::new(Method::POST, "/webhooks/{}/recover", Some(id.as_str())).repeatable();
        Request::new(self.client, call.body(params))
    }

    /// Lists a page of deliveries, newest first. A failed delivery has no further attempt; [`resend`](Self::resend) sends its
    /// event again. A pending one with a [`next_attempt_at`](Delivery::next_attempt_at) waits for its next attempt.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let page = client.webhooks().deliveries().limit(50).await?;
    /// for delivery in page.items {
    ///     match (delivery.response_status, delivery.error) {
    ///         (Some(status), _) => println!("{}: the endpoint returned {status}", delivery.id),
    ///         (None, Some(error)) => println!("{}: {} ({})", delivery.id, error.message, error.code),
    ///         (None, None) => println!("{} is not attempted yet", delivery.id),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn deliveries(self) -> Request<Page<Delivery>> {
        Request::new(self.client, Call::new(Method::GET, "/webhooks/deliveries", None))
    }

    /// Sends a delivery's event to its endpoint once more: the same body with a new signature. Returns the new delivery,
    /// which is pending.
    ///
    /// The server returns 409 ([`DeliveryNotResendable`](crate::ErrorCode::DeliveryNotResendable)) if the delivery is still
    /// pending, its endpoint was removed, or its payload was deleted because it is old.
    ///
    /// ```no_run
    /// # use payments_client::{Client, DeliveryStatus};
    /// # async fn resend(client: Client) -> Result<(), payments_client::Error> {
    /// for delivery in client.webhooks().deliveries().await?.items {
    ///     if delivery.status == DeliveryStatus::Failed {
    ///         client.webhooks().resend(&delivery.id).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resend(self, id: &DeliveryId) -> IdempotentRequest<Delivery> {
        IdempotentRequest::new(
            self.client,
            Call::new(Method::POST, "/webhooks/deliveries/{}/resend", Some(id.as_str())),
        )
    }

    /// Asks the server to verify a signature, without an API key. Receivers should verify locally with
    /// [`webhook`](crate::webhook) instead, and not send their secret.
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
        let call = Call::new(Method::POST, "/webhooks/verify", None).keyless().repeatable();
        Request::new(self.client, call.body(&params))
    }
}

impl Request<Page<Delivery>> {
    /// Filters by endpoint.
    pub fn webhook(self, id: &WebhookId) -> Self {
        self.query("webhookId", id.to_string())
    }
}

/// A signature to verify. `Debug` omits the secret.
#[derive(Clone, Serialize)]
pub struct VerifySignature {
    payload: String,
    signature: String,
    secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<u64>,
}

impl VerifySignature {
    /// Creates parameters from a request's raw body, its signature header and the endpoint's secret.
    #[must_use]
    pub fn new(payload: impl Into<String>, signature: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { payload: payload.into(), signature: signature.into(), secret: secret.into(), tolerance: None }
    }

    /// Sets how far the timestamp may be from now, in seconds. Default: 300; 0 turns the check off.
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
