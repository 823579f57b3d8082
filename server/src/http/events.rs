//! `/api/v1/events`: lists and retrieves events.

use payments_core::EventQuery;
use warp::http::StatusCode;

use super::{reply, request::Request, route::Outcome};
use crate::service::Caller;

pub(super) async fn list(caller: Caller, request: Request) -> Outcome {
    let query = EventQuery::from_query(|name| request.query(name))?;
    reply::json(StatusCode::OK, &request.service().events(&caller, &query).await?)
}

pub(super) async fn retrieve(caller: Caller, request: Request) -> Outcome {
    reply::json(StatusCode::OK, &request.service().event(&caller, request.id()).await?)
}
