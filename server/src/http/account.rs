//! `/api/v1/account`: the workspace, its balances, lifetime volume, apps and keys.

use warp::http::StatusCode;

use super::{reply, request::Request, route::Outcome};
use crate::service::Caller;

pub(super) async fn retrieve(caller: Caller, request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().account(&caller).await?)
}

pub(super) async fn balance(caller: Caller, request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().balance(&caller).await?)
}

pub(super) async fn apps(caller: Caller, request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().apps(&caller).await?)
}

pub(super) async fn keys(caller: Caller, request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().own_keys(&caller).await?)
}
