//! `/api/v1/checkout`: the checkout page's keyless API.

use payments_core::{DemoSession, Pay, Simulate};
use serde_json::json;
use warp::http::StatusCode;

use super::{reply, request::Request};
use crate::service::Paying;

pub(super) async fn retrieve(request: Request) -> reply::Outcome {
    reply::ok(&request.service().checkout_view(request.id()).await?.session)
}

pub(super) async fn simulate(mut request: Request) -> reply::Outcome {
    let simulate = Simulate::from_json(&request.read_json().await?)?;
    reply::ok(&request.service().simulate(request.id(), simulate).await?)
}

pub(super) async fn pay(mut request: Request) -> reply::Outcome {
    let pay = Pay::from_json(&request.read_json().await?)?;
    match request.service().pay(request.id(), &pay).await? {
        Paying::Gateway { redirect_url } => reply::ok(&json!({ "redirectUrl": redirect_url })),
        Paying::Simulated(simulation) => reply::ok(&simulation),
    }
}

pub(super) async fn demo_session(mut request: Request) -> reply::Outcome {
    let demo = DemoSession::from_json(&request.read_json().await?)?;
    let service = request.server.services.of_demo()?;
    reply::json(StatusCode::CREATED, &service.create_demo_session(demo).await?)
}
