//! `/api/v1/payments`: create, retrieve, list.

use std::sync::Arc;

use payments_core::{CreatePayment, Invalid, PageRequest, Status};
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
    let collection = warp::path!("api" / "v1" / "payments").and(incoming()).then(move |incoming| {
        let service = Arc::clone(&at_collection);
        async move { gate::keyed(&service, incoming, |caller, incoming| collection(&service, caller, incoming)).await }
    });
    let at_item = Arc::clone(service);
    let item = warp::path!("api" / "v1" / "payments" / String).and(incoming()).then(move |id: String, incoming| {
        let service = Arc::clone(&at_item);
        async move { gate::keyed(&service, incoming, |caller, incoming| item(&service, caller, &id, incoming)).await }
    });
    collection.or(item).unify().boxed()
}

async fn collection(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::POST => create(service, caller, incoming).await,
        Method::GET => list(service, &caller, incoming).await,
        _ => Err(Problem::MethodNotAllowed("GET, HEAD, POST")),
    }
}

async fn item(service: &Service, caller: Caller, id: &str, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::GET => reply::json(StatusCode::OK, &service.payment(&caller, id).await?),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
    }
}

async fn create(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    gate::idempotent(service, caller, incoming, StatusCode::CREATED, |caller, body, request| async move {
        let params = CreatePayment::from_json(&body, caller.scope.environment)?;
        service.create_payment(&caller, params, request.as_ref()).await
    })
    .await
}

async fn list(service: &Service, caller: &Caller, incoming: Incoming) -> Result<Response, Problem> {
    let mut invalid = Invalid::default();
    let page = incoming.page().unwrap_or_else(|faults| {
        invalid.append(faults);
        PageRequest::default()
    });
    let status = incoming.query("status").and_then(|word| match Status::known(&word) {
        Some(status) => Some(status),
        None => {
            let words = Status::KNOWN.iter().map(Status::as_str).collect::<Vec<_>>().join(", ");
            invalid.add("status", format_args!("must be one of {words}"), None)
        }
    });
    let page = invalid.or(page)?;
    reply::json(StatusCode::OK, &service.payments(caller, status.as_ref(), page).await?)
}
