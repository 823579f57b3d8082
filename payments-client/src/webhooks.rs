//! Subscribing endpoints to events.

use std::{future::IntoFuture, pin::Pin};

use payments_core::{CreateWebhook, WebhookEndpoint};
use reqwest::Method;

use crate::{Client, IdempotencyKey, Result, payments::post};

/// The webhook endpoints of the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'c> {
    client: &'c Client,
}

impl<'c> Webhooks<'c> {
    pub(crate) const fn new(client: &'c Client) -> Self {
        Self { client }
    }

    /// Subscribes an endpoint; await it to send it. The answer holds its signing secret.
    pub fn create(self, params: CreateWebhook) -> CreateWebhookRequest<'c> {
        CreateWebhookRequest { client: self.client, params, key: None }
    }

    /// Reads all endpoints, oldest first, each with its secret.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub async fn list(self) -> Result<Vec<WebhookEndpoint>> {
        self.client.send(self.client.request(Method::GET, &["webhooks"])).await
    }
}

/// An endpoint to be subscribed.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct CreateWebhookRequest<'c> {
    client: &'c Client,
    params: CreateWebhook,
    key: Option<IdempotencyKey>,
}

impl CreateWebhookRequest<'_> {
    /// Sends it under your own key.
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }
}

impl<'c> IntoFuture for CreateWebhookRequest<'c> {
    type Output = Result<WebhookEndpoint>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<WebhookEndpoint>> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { post(self.client, &["webhooks"], &self.params, self.key).await })
    }
}
