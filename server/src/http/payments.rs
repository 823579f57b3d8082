//! `/api/v1/payments`: create, retrieve, list, refund.

use payments_core::{CreatePayment, Invalid, PageRequest, Refund, Status};
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
use crate::service::{Caller, Service};

pub(super) fn routes(server: &Server) -> Routes {
    let at_collection = server.clone();
    let collection =
        warp::path!("api" / "v1" / "payments").and(incoming()).then(move |incoming| {
            let server = at_collection.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| collection(&server.service, caller, incoming)).await
            }
        });
    let at_item = server.clone();
    let item =
        warp::path!("api" / "v1" / "payments" / String).and(incoming()).then(move |id: String, incoming| {
            let server = at_item.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| item(&server.service, caller, &id, incoming)).await
            }
        });
    let at_refund = server.clone();
    let refund = warp::path!("api" / "v1" / "payments" / String / "refund").and(incoming());
    let refund = refund.then(move |id: String, incoming| {
        let server = at_refund.clone();
        async move {
            gate::keyed(&server, incoming, |caller, incoming| refund_of(&server.service, caller, &id, incoming)).await
        }
    });
    first_of([collection.boxed(), item.boxed(), refund.boxed()])
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

async fn refund_of(service: &Service, caller: Caller, id: &str, incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    gate::idempotent(service, caller, incoming, StatusCode::OK, |caller, body, request| async move {
        let reason = Refund::reason_from_json(&body)?;
        service.refund_payment(&caller, id, reason, request.as_ref()).await
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
