//! Webhook endpoints, test pings, delivery lists and signature checks.

use std::sync::Arc;

use payments_core::{
    Amount, CreateWebhook, Delivery, DeliveryId, Envelope, EventId, EventKind, Fields, Invalid, Page, PageRequest,
    RawJson, SigningSecret, Timestamp, WebhookEndpoint, WebhookId, aliased::UnknownFields,
};
use secrecy::{ExposeSecret, SecretString};
use webhook_verify::{Failure, Secret, Tolerance, Verifier};

use super::{Answer, Caller, IdempotentRequest, Refused, Service, retry_on_conflict};
use crate::{
    delivery::LONGEST_PING,
    domain::{Endpoint, Outgoing},
    store::{Change, Write},
};

impl Service {
    /// Creates an endpoint. The response includes its new secret, and so does the list.
    pub(crate) async fn create_webhook(
        &self,
        caller: &Caller,
        params: CreateWebhook,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        self.settings.targets.check_url(&params.url).map_err(|fault| Invalid::new(format!("url {fault}")))?;
        if let Some(app) = &params.app_id {
            self.own_app(&caller.scope.developer_id, app).await?;
        }
        let now = self.ambient.now();
        let endpoint = WebhookEndpoint {
            id: WebhookId::new(now, self.ambient.id_bytes()),
            developer_id: caller.scope.developer_id.clone(),
            app_id: params.app_id,
            url: params.url,
            secret: SigningSecret::new(self.ambient.random()),
            events: params.events,
            is_active: true,
            created_at: now,
            updated_at: now,
            unknown: UnknownFields::default(),
        };
        let body = RawJson::of(&endpoint)?;
        let endpoint = Box::new(Endpoint {
            version: 0,
            environment: caller.scope.environment,
            only_its_app: endpoint.app_id.is_some(),
            endpoint,
        });
        let write = Write::EndpointAdded { endpoint, at_most: self.settings.max_webhook_endpoints };
        let idempotency = request.map(|request| request.to_record(body.clone(), now));
        let change = Change { idempotency, ..Change::of(write) };
        self.commit_once(change, body, request).await
    }

    /// Lists a developer's endpoints with their secrets, oldest first.
    pub(crate) async fn webhooks(&self, caller: &Caller) -> Result<Vec<WebhookEndpoint>, Refused> {
        let endpoints = self.store.endpoints(&caller.scope, None, usize::MAX).await?;
        Ok(endpoints.into_iter().map(|endpoint| endpoint.endpoint).collect())
    }

    /// Removes an endpoint. Its pending deliveries fail without an attempt.
    pub(crate) async fn remove_webhook(&self, caller: &Caller, id: &str) -> Result<(), Refused> {
        retry_on_conflict(|| async {
            let endpoint = self.own_endpoint(caller, id).await?;
            Ok(self.commit(Change::of(Write::EndpointRemoved(Box::new(endpoint)))).await?)
        })
        .await
    }

    /// Sends a `test.ping` to an endpoint and returns the logged delivery, or `null` if the ping could not be sent or
    /// logged. Waits for the delivery attempt.
    pub(crate) async fn test_webhook(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        // Refuse before claiming the key.
        self.own_endpoint(caller, id).await?;
        let (caller, id) = (caller.clone(), id.to_owned());
        let ping = |service: Arc<Self>, request: Option<IdempotentRequest>| async move {
            service.ping(&caller, &id, request.as_ref()).await
        };
        match self.once(request, LONGEST_PING, ping).await {
            Err(Refused::Unavailable(error)) => {
                tracing::error!(%error, "a test ping could not be logged");
                Ok(Answer::fresh(RawJson::of(&())?))
            }
            outcome => outcome,
        }
    }

    async fn ping(&self, caller: &Caller, id: &str, request: Option<&IdempotentRequest>) -> Result<Answer, Refused> {
        let endpoint = self.own_endpoint(caller, id).await?.endpoint;
        let now = self.ambient.now();
        let kind = EventKind::TestPing;
        let data = RawJson::of(&serde_json::json!({
            "event": kind,
            "timestamp": now,
            "developer_id": caller.scope.developer_id,
            "message": "This is a test of your webhook endpoint.",
        }))?;
        let id = EventId::new(now, self.ambient.id_bytes());
        let envelope = RawJson::of(&Envelope { id: &id, event: kind.clone(), created_at: now, data: &data })?;
        let delivery = DeliveryId::new(now, self.ambient.id_bytes());
        let mut outgoing = Outgoing::new(delivery, &caller.scope, &endpoint.id, &kind, envelope, now);
        if let Err(error) = self.sender.ping(&endpoint, &mut outgoing.delivery).await {
            tracing::error!(%error, "a test ping was not sent");
            return Ok(Answer::fresh(RawJson::of(&())?));
        }
        let body = RawJson::of(&outgoing.delivery)?;
        let idempotency = request.map(|request| request.to_record(body.clone(), now));
        let log = Write::Delivery(Box::new(outgoing.clone()));
        match self.commit_once(Change { idempotency, ..Change::of(log) }, body, request).await {
            // Another request took the key over and answers for both. Log this delivery attempt too.
            Err(Refused::KeyInProgress) => {
                self.commit(Change::of(Write::Delivery(Box::new(outgoing)))).await?;
                Err(Refused::KeyInProgress)
            }
            outcome => outcome,
        }
    }

    async fn own_endpoint(&self, caller: &Caller, id: &str) -> Result<Endpoint, Refused> {
        let id = id.parse().map_err(|_| NO_WEBHOOK)?;
        let found = self.store.endpoint(&id).await?;
        found.filter(|endpoint| endpoint.scope() == caller.scope).ok_or(NO_WEBHOOK)
    }

    /// A page of a developer's deliveries, newest first, to one endpoint or to all.
    pub(crate) async fn deliveries(
        &self,
        caller: &Caller,
        webhook: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<Delivery>, Refused> {
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
pub(crate) fn verify_signature(body: &[u8], now: Timestamp) -> Result<Result<u64, Failure>, Invalid> {
    let mut fields = Fields::of_body(body)?;
    let mut text = |name| match fields.raw(name) {
        None => fields.fault(name, "must be given", String::new()),
        Some(_) => fields.text(name, body.len()).unwrap_or_default(),
    };
    let (payload, signature, secret) = (text("payload"), text("signature"), SecretString::from(text("secret")));
    let tolerance = match fields.raw("tolerance").map(whole_number) {
        None => Tolerance::default(),
        Some(Some(seconds)) => Tolerance::seconds(seconds),
        Some(None) => fields.fault("tolerance", "must be a whole number of seconds, 0 or more", Tolerance::OFF),
    };
    fields.finish(())?;
    let verify = || -> Result<u64, Failure> {
        let verifier = Verifier::new(Secret::new(secret.expose_secret())?).tolerance(tolerance);
        Ok(verifier.verify_at(&signature, payload.as_bytes(), now.as_unix_seconds())?.timestamp())
    };
    Ok(verify())
}

/// Reads a JSON number without a fraction, such as `300.0` or `3e2`.
fn whole_number(json: &str) -> Option<u64> {
    json.parse().ok().or_else(|| {
        let minor = json.parse::<Amount>().ok()?.as_minor();
        (minor % 100 == 0).then_some(minor / 100)
    })
}

const NO_WEBHOOK: Refused = Refused::NotFound { what: "webhook endpoint" };
