//! `/api/v1/payments`: create, retrieve, list, refund.

use std::sync::Arc;

use payments_core::{CreatePayment, CreateRefund, Invalid, PageRequest, Status};
use warp::{
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, first_of, gate,
    incoming::Incoming,
    reply::{self, Problem},
};
use crate::service::{Caller, Service};

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    first_of([
        gate::keyed(server, warp::path!("api" / "v1" / "payments"), collection),
        gate::keyed_with(server, warp::path!("api" / "v1" / "payments" / String), item),
        gate::keyed_with(server, warp::path!("api" / "v1" / "payments" / String / "refund"), refund),
    ])
}

async fn collection(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::POST => create(&service, caller, incoming).await,
        Method::GET => list(&service, &caller, incoming).await,
        _ => Err(Problem::MethodNotAllowed("GET, HEAD, POST")),
    }
}

async fn item(service: Arc<Service>, caller: Caller, id: String, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::GET => reply::json(StatusCode::OK, &service.payment(&caller, &id).await?),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
    }
}

async fn refund(service: Arc<Service>, caller: Caller, id: String, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    let (service, id) = (&service, &*id);
    gate::idempotent(service, caller, incoming, StatusCode::OK, |caller, body, request| async move {
        let params = CreateRefund::from_json(&body)?;
        service.refund_payment(&caller, id, params, request.as_ref()).await
    })
    .await
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
