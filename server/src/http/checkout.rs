//! `/api/v1/checkout`: the keyless routes behind the checkout page.

use std::sync::Arc;

use payments_core::Simulate;
use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes,
    incoming::{Incoming, incoming},
    reply::{self, Problem},
};
use crate::service::Service;

pub(super) fn routes(service: &Arc<Service>) -> Routes {
    let for_session = Arc::clone(service);
    let session =
        warp::path!("api" / "v1" / "checkout" / String).and(incoming()).then(move |id: String, incoming: Incoming| {
            let service = Arc::clone(&for_session);
            async move { session(&service, &id, &incoming.method).await.unwrap_or_else(Problem::into_response) }
        });
    let for_simulate = Arc::clone(service);
    let simulate = warp::path!("api" / "v1" / "checkout" / String / "simulate").and(incoming()).then(
        move |id: String, incoming: Incoming| {
            let service = Arc::clone(&for_simulate);
            async move { simulate(&service, &id, incoming).await.unwrap_or_else(Problem::into_response) }
        },
    );
    session.or(simulate).unify().boxed()
}

async fn session(service: &Service, id: &str, method: &Method) -> Result<Response, Problem> {
    if method != Method::GET {
        return Err(Problem::MethodNotAllowed("GET, HEAD"));
    }
    reply::json(StatusCode::OK, &service.checkout_session(id).await?)
}

async fn simulate(service: &Service, id: &str, mut incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    let simulate = Simulate::from_json(&incoming.read_json().await?)?;
    reply::json(StatusCode::OK, &service.simulate(id, simulate).await?)
}
