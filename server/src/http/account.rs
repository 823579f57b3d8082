//! `/api/v1/account`: the workspace, its balances, lifetime volume, apps and keys.

use super::{reply, request::Request};
use crate::service::Caller;

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().account(&caller).await?)
}

pub(super) async fn balance(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().balance(&caller).await?)
}

pub(super) async fn apps(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().apps(&caller).await?)
}

pub(super) async fn keys(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().own_keys(&caller).await?)
}
