//! `/api/v1/checkout`: the checkout page's keyless API.

use payments_core::{DemoSession, Pay, Simulate};
use serde_json::json;
use warp::http::StatusCode;

use super::{reply, request::Request, route::Outcome};
use crate::service::Paying;

pub(super) async fn retrieve(request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().checkout_session(request.id()).await?)
}

pub(super) async fn simulate(mut request: Request) -> Outcome {
    let simulate = Simulate::from_json(&request.read_json().await?)?;
    reply::json(StatusCode::OK, &request.service().simulate(request.id(), simulate).await?)
}

pub(super) async fn pay(mut request: Request) -> Outcome {
    let pay = Pay::from_json(&request.read_json().await?)?;
    match request.service().pay(request.id(), &pay).await? {
        Paying::Gateway { redirect_url } => reply::json(StatusCode::OK, &json!({ "redirectUrl": redirect_url })),
        Paying::Simulated(simulation) => reply::json(StatusCode::OK, &simulation),
    }
}

pub(super) async fn demo_session(mut request: Request) -> Outcome {
    let demo = DemoSession::from_json(&request.read_json().await?)?;
    let service = request.server.services.of_demo()?;
    reply::json(StatusCode::CREATED, &service.create_demo_session(demo).await?)
}
