//! `/api/v1/events`: lists and retrieves events.

use payments_core::EventQuery;

use super::{reply, request::Request};
use crate::service::Caller;

pub(super) async fn list(caller: Caller, request: Request) -> reply::Outcome {
    let query = EventQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().events(&caller, &query).await?)
}

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().event(&caller, request.id()).await?)
}
