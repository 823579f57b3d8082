//! The server's door: which path leads where, and what every answer has in common.
//!
//! A path is matched first and the method second, inside a handler that always answers; rejections are left to one
//! purpose, "no such path". So an unknown path is 404, a wrong method 405 with the right `Allow`, and no route is
//! tried after another has begun.

mod account;
mod assets;
mod by_address;
mod checkout;
mod client_address;
mod dashboard;
mod docs;
mod gate;
mod gateways;
mod head;
mod health;
mod incoming;
mod limit;
mod lingering;
mod listener;
mod metrics_at;
mod page;
mod payments;
mod reply;
mod route;
mod webhooks;
mod windows;

use std::{convert::Infallible, sync::Arc};

use ipnet::IpNet;
use tokio::sync::watch;
use warp::{Filter, Rejection, filters::BoxedFilter, reply::Response};

pub(crate) use by_address::ConnectionsByAddress;
pub(crate) use client_address::TrustedProxies;
pub(crate) use limit::RateLimits;
pub(crate) use listener::{Edge, Limits, Listener};
pub(crate) use metrics_at::MetricsAt;

use self::incoming::{Incoming, incoming};
use crate::{metrics::Metrics, service::Service};

/// All routes as one service, the same for every connection.
pub(crate) type Routes = BoxedFilter<(Response,)>;

/// What every route works with.
pub(crate) struct Server {
    pub(crate) service: Arc<Service>,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) metrics: Metrics,
    /// Who may read them.
    pub(crate) metrics_from: Arc<[IpNet]>,
    /// Whether the server was told to stop.
    pub(crate) is_stopping: watch::Receiver<bool>,
}

/// Which routes a listener has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// All but `/metrics`.
    Api,
    /// All.
    ApiAndMetrics,
    /// `/metrics` alone.
    Metrics,
}

/// The routes of one listener.
pub(crate) fn routes(server: &Arc<Server>, parts: Parts) -> Routes {
    let api = || {
        [
            payments::routes(server),
            webhooks::routes(server),
            account::routes(server),
            checkout::routes(server),
            page::routes(server),
            gateways::routes(server),
            docs::routes(server),
            dashboard::routes(server),
            health::routes(server),
        ]
    };
    let mut all = Vec::new();
    if parts != Parts::Metrics {
        all.extend(api());
    }
    if parts != Parts::Api {
        all.push(health::metrics_route(server));
    }
    first_of(all).recover(no_such_path).unify().boxed()
}

/// A path, and what answers whoever asks for it. `answer` makes its future apart from the route's, so that a route whose
/// path is another costs little to try: warp makes a future of every route it tries.
fn at<T, P, H, F>(path: P, answer: H) -> Routes
where
    T: Send + 'static,
    P: Filter<Extract = (T,), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(T, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    path.and(incoming()).then(move |part, incoming| Box::pin(answer(part, incoming))).boxed()
}

/// The first of these that has the path. Each is boxed, so that the type of the whole does not grow with their number; and
/// all that come after one are one, so that whoever asks for the first does not pay for the others.
fn first_of(routes: impl IntoIterator<Item = Routes, IntoIter: DoubleEndedIterator>) -> Routes {
    let none = warp::any().and_then(async || Err::<Response, _>(warp::reject::not_found())).boxed();
    routes.into_iter().rfold(none, |after, route| route.or(after).unify().boxed())
}

/// The one place where a rejection ends: no route took the path.
async fn no_such_path(_: Rejection) -> Result<Response, Infallible> {
    Ok(reply::Problem::NotFound("no route has this path; the API lives under /api/v1".into()).into_response())
}
