//! `/api/v1/account`: the workspace, its balances, its lifetime volume, its apps.

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
    let at_account = server.clone();
    let account =
        warp::path!("api" / "v1" / "account").and(incoming()).then(move |incoming| {
            let server = at_account.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| account(&server.service, caller, incoming)).await
            }
        });
    let at_balance = server.clone();
    let balance =
        warp::path!("api" / "v1" / "account" / "balance").and(incoming()).then(move |incoming| {
            let server = at_balance.clone();
            async move {
                gate::keyed(&server, incoming, |caller, incoming| balance(&server.service, caller, incoming)).await
            }
        });
    let at_apps = server.clone();
    let apps = warp::path!("api" / "v1" / "account" / "apps").and(incoming()).then(move |incoming| {
        let server = at_apps.clone();
        async move { gate::keyed(&server, incoming, |caller, incoming| apps(&server.service, caller, incoming)).await }
    });
    first_of([account.boxed(), balance.boxed(), apps.boxed()])
}

async fn account(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.account(&caller).await?)
}

async fn balance(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.balance(&caller).await?)
}

async fn apps(service: &Service, caller: Caller, incoming: Incoming) -> Result<Response, Problem> {
    only_get(&incoming)?;
    reply::json(StatusCode::OK, &service.apps(&caller).await?)
}

fn only_get(incoming: &Incoming) -> Result<(), Problem> {
    if incoming.method == Method::GET { Ok(()) } else { Err(Problem::MethodNotAllowed("GET, HEAD")) }
}
