//! `/api/v1/requests`: the log of a developer's requests.

use payments_core::{LoggedRequest, RequestQuery};
use warp::http::Method;

use super::{head::Found, reply, request::Request, route::OTHER};
use crate::{domain::Permission, service::Caller};

type Find = fn(&Method, &str) -> Option<Found>;

pub(super) async fn list(caller: Caller, request: Request, find: Find) -> reply::Outcome {
    let query = RequestQuery::from_query(|name| request.query(name))?;
    let mut page = request.service().requests(&caller, &query).await?;
    if !caller.may(Permission::PaymentsRead) {
        page.items.iter_mut().for_each(|request| request.path = without_id(request, find).to_owned());
    }
    reply::ok(&page)
}

/// The path of a logged request without the payment's id: anybody with that id can open its checkout without a key.
fn without_id(request: &LoggedRequest, find: Find) -> &'static str {
    let method = request.method.parse().unwrap_or(Method::GET);
    find(&method, &request.path).map_or(OTHER, |found| found.template)
}
