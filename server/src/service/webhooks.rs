//! Webhook endpoints, test pings, delivery lists and signature checks.

use std::sync::Arc;

use payments_core::{
    CreateWebhook, Delivery, DeliveryId, Envelope, ErrorCode, EventId, EventKind, Fields, Invalid, Page, PageRequest,
    RawJson, Retries, RotateSecret, SignatureScheme, SigningSecret, Timestamp, UpdateWebhook, WebhookEndpoint,
    WebhookId, aliased::UnknownFields, whole_number,
};
use secrecy::{ExposeSecret, SecretString};
use webhook_verify::{Failure, Secret, Tolerance, Verifier};

use super::{
    Answer, Caller, IdempotentRequest, Record, Result, Service, ServiceError, claims::Effect, retry_on_conflict,
};
use crate::{
    delivery::LONGEST_PING,
    domain::{Endpoint, Outgoing, Permission},
    store::{Change, Write},
};

impl Service {
    /// Creates an endpoint. The response and the list include its new secret.
    pub async fn create_webhook(
        &self,
        caller: &Caller,
        params: CreateWebhook,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        self.settings.targets.check_url(&params.url).map_err(|error| Invalid::field("url", error.code(), error))?;
        if let Some(app) = &params.app_id {
            self.directory.own_app(&caller.scope.developer_id, app).await?;
        }
        let now = self.ambient.now();
        let endpoint = WebhookEndpoint {
            id: WebhookId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes()),
            developer_id: caller.scope.developer_id.clone(),
            app_id: params.app_id,
            url: params.url,
            secret: SigningSecret::new(self.ambient.random()),
            events: params.events,
            previous_secret_expires_at: None,
            description: params.description.filter(|text| !text.is_empty()),
            is_active: true,
            retries: params.retries.or(Some(Retries::None)),
            signature: params.signature.filter(|scheme| *scheme != SignatureScheme::Service),
            disabled_reason: None,
            created_at: now,
            updated_at: now,
            unknown: UnknownFields::default(),
        };
        let body = RawJson::of(&endpoint)?;
        let endpoint = Box::new(Endpoint {
            version: 0,
            environment: caller.scope.environment,
            only_its_app: endpoint.app_id.is_some(),
            previous_secrets: Vec::new(),
            failing_since: None,
            endpoint,
        });
        let write = Write::EndpointAdded { endpoint, at_most: self.settings.max_webhook_endpoints };
        self.records().commit_once(vec![write], body, request).await
    }

    /// Lists a developer's endpoints, oldest first, with their secrets if the key may write webhooks.
    pub async fn webhooks(&self, caller: &Caller) -> Result<Vec<WebhookEndpoint>> {
        let endpoints = self.store.endpoints(&caller.scope, None, usize::MAX).await?;
        let now = self.ambient.now();
        let sees_secrets = caller.may(Permission::WebhooksWrite);
        let served = endpoints.into_iter().map(|endpoint| match endpoint.served(now) {
            endpoint if sees_secrets => endpoint,
            endpoint => WebhookEndpoint { secret: SigningSecret::masked(), ..endpoint },
        });
        Ok(served.collect())
    }

    /// Changes an endpoint. Its pending deliveries go to the new URL, or fail if it is no longer active. The five days of
    /// failed attempts that disable an endpoint begin anew.
    pub async fn update_webhook(&self, caller: &Caller, id: &str, params: UpdateWebhook) -> Result<WebhookEndpoint> {
        if let Some(url) = &params.url {
            self.settings.targets.check_url(url).map_err(|error| Invalid::field("url", error.code(), error))?;
        }
        retry_on_conflict(|| async {
            let mut endpoint = self.own_endpoint(caller, id).await?;
            endpoint.version += 1;
            params.clone().apply_to(&mut endpoint.endpoint, self.ambient.now());
            endpoint.failing_since = None;
            let updated = endpoint.clone().served(self.ambient.now());
            self.commit(Change::of(Write::EndpointChanged(Box::new(endpoint)))).await?;
            Ok(updated)
        })
        .await
    }

    /// Gives an endpoint a new secret. The old secret also signs for a while.
    pub async fn rotate_secret(
        &self,
        caller: &Caller,
        id: &str,
        params: RotateSecret,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        retry_on_conflict(|| async {
            let mut endpoint = self.own_endpoint(caller, id).await?;
            let now = self.ambient.now();
            endpoint.version += 1;
            endpoint.rotate_secret(SigningSecret::new(self.ambient.random()), params.overlap_seconds, now);
            let body = RawJson::of(&endpoint.clone().served(now))?;
            self.records().commit_once(vec![Write::EndpointChanged(Box::new(endpoint))], body, request).await
        })
        .await
    }

    /// Removes an endpoint. Its pending deliveries fail without an attempt.
    pub async fn remove_webhook(&self, caller: &Caller, id: &str) -> Result<()> {
        retry_on_conflict(|| async {
            let endpoint = self.own_endpoint(caller, id).await?;
            Ok(self.commit(Change::of(Write::EndpointRemoved(Box::new(endpoint)))).await?)
        })
        .await
    }

    /// Sends a test event of a kind to an endpoint and returns the logged delivery, or `null` if it could not be sent or
    /// logged. Waits for the delivery attempt.
    pub async fn test_webhook(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        kind: EventKind,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        // Refuse before claiming the key.
        self.own_endpoint(caller, id).await?;
        let (caller, id, developer) = (caller.clone(), id.to_owned(), caller.scope.developer_id.clone());
        let ping = |service: Arc<Self>, request: Option<IdempotentRequest>| async move {
            service.send_test(&caller, &id, kind, request.as_ref()).await
        };
        match self.once(Effect::TestPing, &developer, request, LONGEST_PING, ping).await {
            Err(ServiceError::Unavailable(error)) => {
                tracing::error!(%error, "a test event could not be logged");
                Ok(Answer::fresh(RawJson::of(&())?))
            }
            outcome => outcome,
        }
    }

    async fn send_test(
        &self,
        caller: &Caller,
        id: &str,
        kind: EventKind,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        let endpoint = self.own_endpoint(caller, id).await?;
        let now = self.ambient.now();
        let data = self.test_data(&kind, caller)?;
        let slot = caller.scope.developer_id.slot();
        let id = EventId::new(slot, now, self.ambient.id_bytes());
        let envelope = RawJson::of(&Envelope { id: &id, event: kind.clone(), created_at: now, data: &data })?;
        let delivery = DeliveryId::new(slot, now, self.ambient.id_bytes());
        let mut outgoing = Outgoing::new(delivery, &caller.scope, &endpoint.endpoint.id, &kind, envelope, now);
        if let Err(error) = self.sender.ping(&endpoint, &mut outgoing.delivery).await {
            tracing::error!(%error, "a test event was not sent");
            return Ok(Answer::fresh(RawJson::of(&())?));
        }
        let body = RawJson::of(&outgoing.delivery)?;
        match self.records().commit_once(vec![Write::Delivery(Box::new(outgoing.clone()))], body, request).await {
            // Another request took the key over and answers for both. Log this delivery attempt too.
            Err(ServiceError::KeyInProgress) => {
                self.commit(Change::of(Write::Delivery(Box::new(outgoing)))).await?;
                Err(ServiceError::KeyInProgress)
            }
            outcome => outcome,
        }
    }

    pub(super) async fn own_endpoint(&self, caller: &Caller, id: &str) -> Result<Endpoint> {
        let id = id.parse().map_err(|_| NO_WEBHOOK)?;
        let found = self.store.endpoint(&id).await?;
        found.filter(|endpoint| endpoint.scope() == caller.scope).ok_or(NO_WEBHOOK)
    }

    /// A page of a developer's deliveries, newest first, to one endpoint or to all.
    pub async fn deliveries(
        &self,
        caller: &Caller,
        webhook: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<Delivery>> {
        let webhook = match webhook {
            None => None,
            Some(id) => Some(self.own_endpoint(caller, id).await?.endpoint.id),
        };
        // Wait for the fan-out of every event that an earlier response reported.
        self.fan_out.settled().await;
        Ok(self.store.deliveries(&caller.scope, webhook.as_ref(), page).await?)
    }
}

/// Verifies the signature in a request's body by the rules of `webhook_verify`. Returns its timestamp, or why it is
/// invalid. The route needs no API key. The body holds a secret: never log it.
pub fn verify_signature(body: &[u8], now: Timestamp) -> Result<Result<u64, Failure>, Invalid> {
    let mut fields = Fields::of_body(body)?.refusing_near_misses();
    let mut text = |name| match fields.raw(name) {
        None => fields.error(name, ErrorCode::FieldMissing, "must be given", String::new()),
        Some(_) => fields.text(name, body.len()).unwrap_or_default(),
    };
    let (payload, signature, secret) = (text("payload"), text("signature"), SecretString::from(text("secret")));
    let tolerance = match fields.raw("tolerance").map(whole_number) {
        None => Tolerance::default(),
        Some(Some(seconds)) => Tolerance::seconds(seconds),
        Some(None) => {
            let error = "must be a whole number of seconds, 0 or more";
            fields.value_error("tolerance", ErrorCode::FieldInvalid, error, Tolerance::OFF)
        }
    };
    fields.finish(())?;
    let verify = || -> Result<u64, Failure> {
        let verifier = Verifier::new(Secret::new(secret.expose_secret())?).tolerance(tolerance);
        Ok(verifier.verify_at(&signature, payload.as_bytes(), now.as_unix_seconds())?.timestamp())
    };
    Ok(verify())
}

pub(super) const NO_WEBHOOK: ServiceError = ServiceError::NotFound { what: Record::WebhookEndpoint };
