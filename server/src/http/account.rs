//! `/api/v1/account`: the workspace, its balances, its lifetime volume, its apps.

use std::sync::Arc;

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
        gate::keyed(server, warp::path!("api" / "v1" / "account"), account),
        gate::keyed(server, warp::path!("api" / "v1" / "account" / "balance"), balance),
        gate::keyed(server, warp::path!("api" / "v1" / "account" / "apps"), apps),
    ])
}

async fn account(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.account(&caller).await?)
}

async fn balance(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.balance(&caller).await?)
}

async fn apps(service: Arc<Service>, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.apps(&caller).await?)
}

fn only_get(incoming: &Incoming) -> Result<(), Problem> {
    if incoming.method == Method::GET { Ok(()) } else { Err(Problem::MethodNotAllowed("GET, HEAD")) }
}
