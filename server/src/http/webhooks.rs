//! `/api/v1/webhooks`: subscribe, list, remove, test, what was delivered, and the keyless verification.

use payments_core::CreateWebhook;
use serde_json::json;
use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, first_of, gate,
    incoming::{Incoming, incoming},
    reply::{self, Problem},
};
use crate::service::{Caller, Service, SignatureCheck, verify_signature};

pub(super) fn routes(server: &Server) -> Routes {
    let at_collection = server.clone();
    let collection =
        warp::path!("api" / "v1" / "webhooks").and(incoming()).then(move |incoming| {
            let server = at_collection.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| collection(&server.service, caller, incoming)).await
            }
        });
    let at_deliveries = server.clone();
    let deliveries =
        warp::path!("api" / "v1" / "webhooks" / "deliveries").and(incoming()).then(move |incoming| {
            let server = at_deliveries.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| deliveries(&server.service, caller, incoming)).await
            }
        });
    let at_verify = server.clone();
    let verify = warp::path!("api" / "v1" / "webhooks" / "verify").and(incoming()).then(move |incoming| {
        let server = at_verify.clone();
        async move { gate::keyless(&server, incoming, |incoming| verify(&server.service, incoming)).await }
    });
    let at_item = server.clone();
    let item =
        warp::path!("api" / "v1" / "webhooks" / String).and(incoming()).then(move |id: String, incoming| {
            let server = at_item.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| item(&server.service, caller, &id, incoming)).await
            }
        });
    let at_test = server.clone();
    let ping = warp::path!("api" / "v1" / "webhooks" / String / "test").and(incoming());
    let ping = ping.then(move |id: String, incoming| {
        let server = at_test.clone();
        async move {
            gate::keyed(&server, incoming, |caller, incoming| send_ping(&server.service, caller, &id, incoming)).await
        }
    });
    // The words before the id, which would take them for one.
    first_of([collection.boxed(), deliveries.boxed(), verify.boxed(), item.boxed(), ping.boxed()])
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

async fn item(service: &Service, caller: Caller, id: &str, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::DELETE {
        return Err(Problem::MethodNotAllowed("DELETE"));
    }
    service.remove_webhook(&caller, id).await?;
    reply::json(StatusCode::OK, &json!({"success": true, "message": "Webhook endpoint removed"}))
}

async fn send_ping(service: &Service, caller: Caller, id: &str, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    gate::idempotent(service, caller, incoming, StatusCode::OK, |caller, _, request| async move {
        service.test_webhook(&caller, id, request.as_ref()).await
    })
    .await
}

async fn verify(service: &Service, mut incoming: Incoming) -> Result<Response, Problem> {
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
