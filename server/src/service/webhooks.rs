//! Subscribing endpoints to events.

use payments_core::{
    CreateWebhook, Delivery, Invalid, Page, PageRequest, RawJson, SigningSecret, WebhookEndpoint, WebhookId,
    aliased::UnknownFields,
};

use super::{Answer, Caller, IdempotentRequest, Refused, Service};
use crate::store::{Change, CommitError, Conflict, Endpoint, StoreError, Write};

impl Service {
    /// Subscribes an endpoint. Its new secret is in the answer, and in the list.
    pub(crate) async fn create_webhook(
        &self,
        caller: &Caller,
        params: CreateWebhook,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Refused> {
        self.settings.targets.check_url(&params.url).map_err(|fault| Invalid::new(format!("url {fault}")))?;
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
        let body = RawJson::of(&endpoint).map_err(StoreError::engine)?;
        let write = Write::Endpoint(Box::new(Endpoint { environment: caller.scope.environment, endpoint }));
        let change = Change { idempotency: request.map(|request| request.keep(&body, now)), writes: vec![write] };
        match (self.store.commit(change).await, request) {
            (Ok(()), _) => Ok(Answer::fresh(body)),
            (Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(kept))), Some(request)) => {
                request.answer_from(*kept)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// A developer's endpoints, oldest first, each with its secret.
    pub(crate) async fn webhooks(&self, caller: &Caller) -> Result<Vec<WebhookEndpoint>, Refused> {
        Ok(self.store.endpoints(&caller.scope).await?)
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
            Some(id) => {
                let id = id.parse().map_err(|_| NO_WEBHOOK)?;
                let found = self.store.endpoint(&id).await?.filter(|endpoint| endpoint.scope() == caller.scope);
                Some(found.ok_or(NO_WEBHOOK)?.endpoint.id)
            }
        };
        Ok(self.store.deliveries(&caller.scope, webhook.as_ref(), page).await?)
    }
}

const NO_WEBHOOK: Refused = Refused::NotFound { what: "webhook endpoint" };
