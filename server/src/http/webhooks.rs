//! `/api/v1/webhooks`: subscribe, list, remove, test, what was delivered, and the keyless verification.

use std::sync::Arc;

use payments_core::{CreateWebhook, Fields};
use serde_json::json;
use warp::{
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, first_of, gate,
    incoming::Incoming,
    reply::{self, Problem},
};
use crate::service::{Caller, Service, SignatureCheck, verify_signature};

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    first_of([
        gate::keyed(server, warp::path!("api" / "v1" / "webhooks"), collection),
        // Before the id, which would take these words for one.
        gate::keyed(server, warp::path!("api" / "v1" / "webhooks" / "deliveries"), deliveries),
        gate::keyless(server, warp::path!("api" / "v1" / "webhooks" / "verify"), verify),
        gate::keyed_with(server, warp::path!("api" / "v1" / "webhooks" / String), item),
        gate::keyed_with(server, warp::path!("api" / "v1" / "webhooks" / String / "test"), ping),
    ])
}

async fn deliveries(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::GET {
        return Err(Problem::MethodNotAllowed("GET, HEAD"));
    }
    let (page, webhook) = (incoming.page()?, incoming.query("webhookId"));
    reply::json(StatusCode::OK, &service.deliveries(&caller, webhook.as_deref(), page).await?)
}

async fn collection(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::POST => create(&service, caller, incoming).await,
        Method::GET => reply::json(StatusCode::OK, &service.webhooks(&caller).await?),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD, POST")),
    }
}

async fn create(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    gate::idempotent(service, caller, incoming, StatusCode::CREATED, |caller, body, request| async move {
        service.create_webhook(&caller, CreateWebhook::from_json(&body)?, request.as_ref()).await
    })
    .await
}

async fn item(service: Arc<Service>, caller: Caller, id: String, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::DELETE {
        return Err(Problem::MethodNotAllowed("DELETE"));
    }
    service.remove_webhook(&caller, &id).await?;
    reply::json(StatusCode::OK, &json!({"success": true, "message": "Webhook endpoint removed"}))
}

async fn ping(service: Arc<Service>, caller: Caller, id: String, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    let (service, id) = (&service, &*id);
    gate::idempotent(service, caller, incoming, StatusCode::OK, |caller, body, request| async move {
        // It has no parameters; there may be no body.
        Fields::of_body(if body.is_empty() { b"{}" } else { &body })?;
        service.test_webhook(&caller, id, request.as_ref()).await
    })
    .await
}

async fn verify(service: Arc<Service>, mut incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    let check = SignatureCheck::from_json(&incoming.read_json().await?)?;
    let verdict = match verify_signature(&check, service.ambient.now()) {
        Ok(timestamp) => json!({"valid": true, "timestamp": timestamp}),
        Err(failure) => json!({"valid": false, "reason": failure.code()}),
    };
    reply::json(StatusCode::OK, &verdict)
}
