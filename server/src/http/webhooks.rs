//! `/api/v1/webhooks`: subscribe, list, and what was delivered.

use std::sync::Arc;

use payments_core::CreateWebhook;
use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, gate,
    incoming::{Incoming, incoming},
    reply::{self, Problem},
};
use crate::service::{Caller, Service};

pub(super) fn routes(service: &Arc<Service>) -> Routes {
    let at_collection = Arc::clone(service);
    let collection = warp::path!("api" / "v1" / "webhooks").and(incoming()).then(move |incoming| {
        let service = Arc::clone(&at_collection);
        async move { gate::keyed(&service, incoming, |caller, incoming| collection(&service, caller, incoming)).await }
    });
    let at_deliveries = Arc::clone(service);
    let deliveries = warp::path!("api" / "v1" / "webhooks" / "deliveries").and(incoming()).then(move |incoming| {
        let service = Arc::clone(&at_deliveries);
        async move { gate::keyed(&service, incoming, |caller, incoming| deliveries(&service, caller, incoming)).await }
    });
    collection.or(deliveries).unify().boxed()
}

async fn deliveries(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::GET {
        return Err(Problem::MethodNotAllowed("GET, HEAD"));
    }
    let (page, webhook) = (incoming.page()?, incoming.query("webhookId"));
    reply::json(StatusCode::OK, &service.deliveries(&caller, webhook.as_deref(), page).await?)
}

async fn collection(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::POST => create(service, caller, incoming).await,
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
