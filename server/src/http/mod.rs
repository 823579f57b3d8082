//! The server's door: which path leads where, and what every answer has in common.
//!
//! A path is matched first and the method second, inside a handler that always answers; rejections are left to one
//! purpose, "no such path". So an unknown path is 404, a wrong method 405 with the right `Allow`, and no route is
//! tried after another has begun.

mod checkout;
mod gate;
mod incoming;
mod listener;
mod page;
mod payments;
mod reply;
mod webhooks;

use std::{convert::Infallible, sync::Arc};

use warp::{Filter, Rejection, filters::BoxedFilter, reply::Response};

pub(crate) use listener::{Limits, Listener};

use crate::service::Service;

/// All routes as one service, the same for every connection.
pub(crate) type Routes = BoxedFilter<(Response,)>;

/// All routes of the server.
pub(crate) fn routes(service: &Arc<Service>) -> Routes {
    let api = payments::routes(service).or(webhooks::routes(service)).unify().or(checkout::routes(service)).unify();
    api.or(page::routes(service)).unify().recover(no_such_path).unify().boxed()
}

/// The one place where a rejection ends: no route took the path.
async fn no_such_path(_: Rejection) -> Result<Response, Infallible> {
    Ok(reply::Problem::NotFound("no route has this path; the API lives under /api/v1".into()).into_response())
}
