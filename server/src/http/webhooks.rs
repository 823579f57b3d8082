//! `/api/v1/webhooks`: create, list, update, remove and test endpoints, replace secrets, list, resend and recover
//! deliveries, verify signatures.

use std::sync::Arc;

use payments_core::{CreateWebhook, Fields, RecoverWebhook, RotateSecret, TestWebhook, UpdateWebhook};
use serde_json::json;
use warp::http::StatusCode;

use super::{
    idempotent::{Lookup, idempotent},
    reply,
    request::Request,
};
use crate::service::{Caller, verify_signature};

pub(super) async fn create(caller: Caller, request: Request) -> reply::Outcome {
    let service = Arc::clone(request.service());
    idempotent(caller, request, StatusCode::CREATED, Lookup::First, |caller, body, identity| async move {
        service.create_webhook(&caller, CreateWebhook::from_json(&body)?, identity.as_ref()).await
    })
    .await
}

pub(super) async fn list(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().webhooks(&caller).await?)
}

pub(super) async fn update(caller: Caller, mut request: Request) -> reply::Outcome {
    let params = UpdateWebhook::from_json(&request.read_json().await?)?;
    reply::ok(&request.service().update_webhook(&caller, request.id(), params).await?)
}

pub(super) async fn rotate_secret(caller: Caller, request: Request) -> reply::Outcome {
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    idempotent(caller, request, StatusCode::OK, Lookup::First, |caller, body, identity| async move {
        service.rotate_secret(&caller, &id, RotateSecret::from_json(&body)?, identity.as_ref()).await
    })
    .await
}

pub(super) async fn remove(caller: Caller, request: Request) -> reply::Outcome {
    request.service().remove_webhook(&caller, request.id()).await?;
    reply::ok(&json!({"success": true, "message": "Webhook endpoint removed"}))
}

pub(super) async fn test(caller: Caller, request: Request) -> reply::Outcome {
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    idempotent(caller, request, StatusCode::OK, Lookup::First, |caller, body, identity| async move {
        let kind = TestWebhook::from_json(&body)?.event;
        service.test_webhook(&caller, &id, kind, identity.as_ref()).await
    })
    .await
}

pub(super) async fn deliveries(caller: Caller, request: Request) -> reply::Outcome {
    let (page, webhook) = (request.page()?, request.query("webhookId"));
    reply::ok(&request.service().deliveries(&caller, webhook.as_deref(), page).await?)
}

pub(super) async fn resend(caller: Caller, request: Request) -> reply::Outcome {
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    idempotent(caller, request, StatusCode::CREATED, Lookup::First, |caller, body, identity| async move {
        // The request has no parameters; its body may be empty.
        Fields::of_body(if body.is_empty() { b"{}" } else { &body })?;
        service.resend_delivery(&caller, &id, identity.as_ref()).await
    })
    .await
}

pub(super) async fn recover(caller: Caller, mut request: Request) -> reply::Outcome {
    let params = RecoverWebhook::from_json(&request.read_json().await?)?;
    let recovered = request.service().recover_webhook(&caller, request.id(), &params).await?;
    reply::ok(&recovered)
}

pub(super) async fn verify(mut request: Request) -> reply::Outcome {
    let body = request.read_json().await?;
    let verdict = match verify_signature(&body, request.service().ambient.now())? {
        Ok(timestamp) => json!({"valid": true, "timestamp": timestamp}),
        Err(failure) => json!({"valid": false, "reason": failure.code()}),
    };
    reply::ok(&verdict)
}
