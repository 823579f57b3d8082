//! `/api/v1/checkout`: the keyless routes behind the checkout page.

use std::sync::Arc;

use payments_core::{DemoSession, Pay, Simulate};
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
use crate::service::{Paying, Service};

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    first_of([
        // Before the id, which would take this word for one.
        gate::keyless(server, warp::path!("api" / "v1" / "checkout" / "demo-session"), demo_session),
        gate::keyless_with(server, warp::path!("api" / "v1" / "checkout" / String), session),
        gate::keyless_with(server, warp::path!("api" / "v1" / "checkout" / String / "simulate"), simulate),
        gate::keyless_with(server, warp::path!("api" / "v1" / "checkout" / String / "pay"), pay),
    ])
}

async fn session(service: Arc<Service>, id: String, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::GET => reply::json(StatusCode::OK, &service.checkout_session(&id).await?),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
    }
}

async fn simulate(service: Arc<Service>, id: String, incoming: Incoming) -> Result<Response, Problem> {
    let simulate = Simulate::from_json(&posted(incoming).await?)?;
    reply::json(StatusCode::OK, &service.simulate(&id, simulate).await?)
}

async fn pay(service: Arc<Service>, id: String, incoming: Incoming) -> Result<Response, Problem> {
    let pay = Pay::from_json(&posted(incoming).await?)?;
    match service.pay(&id, &pay).await? {
        Paying::Gateway { redirect_url } => reply::json(StatusCode::OK, &json!({ "redirectUrl": redirect_url })),
        Paying::Simulated(simulation) => reply::json(StatusCode::OK, &simulation),
    }
}

async fn demo_session(service: Arc<Service>, incoming: Incoming) -> Result<Response, Problem> {
    let body = posted(incoming).await?;
    reply::json(StatusCode::CREATED, &service.create_demo_session(DemoSession::from_json(&body)?).await?)
}

async fn posted(mut incoming: Incoming) -> Result<bytes::Bytes, Problem> {
    match incoming.method {
        Method::POST => incoming.read_json().await,
        _ => Err(Problem::MethodNotAllowed("POST")),
    }
}
