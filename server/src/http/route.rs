//! Routes as data, and the lookup that finds one.

use std::{collections::BTreeMap, pin::Pin};

use matchit::Router;
use warp::{
    http::{HeaderMap, Method},
    reply::Response,
};

use super::{
    reply::Problem,
    request::{Params, Request},
};
use crate::service::Caller;

/// What a handler returns.
pub(super) type Outcome = Result<Response, Problem>;
/// A handler at work. It does nothing before it is polled.
pub(super) type Handling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One method of one path.
pub(super) struct Route {
    /// The method; `GET` answers `HEAD` as well, and hyper leaves the body out (RFC 9110, section 9.3.2).
    pub(super) method: Method,
    /// The path as the API's description writes it: `/api/v1/payments/{id}`.
    pub(super) template: &'static str,
    pub(super) access: Access,
}

/// Who may call a route, how it is limited, and its handler.
#[derive(Clone, Copy)]
pub(super) enum Access {
    /// A caller with an API key; limited by key.
    Keyed(fn(Caller, Request) -> Handling),
    /// Anybody; limited by address.
    Keyless(fn(Request) -> Handling),
    /// Anybody; limited by address. `show` makes a page of a refusal, for a person.
    Page { handle: fn(Request) -> Handling, show: fn(&HeaderMap, Problem) -> Response },
    /// Anybody, without a limit.
    Unlimited(fn(Request) -> Handling),
}

/// The metrics' label of requests without a route.
pub(super) const OTHER: &str = "other";

/// The routes of the server, by path.
pub(super) struct Table(Router<Resource>);

/// The routes of one path.
struct Resource {
    routes: Vec<&'static Route>,
    /// Their methods, as `Allow` lists them.
    allow: String,
}

/// The route of a request.
#[derive(Clone)]
pub(super) struct Found {
    /// The path's route for the method. If the path does not take the method: its first route, which says who may read
    /// the 405 and how it is limited.
    pub(super) route: &'static Route,
    /// The methods of the path, if the request's is not among them.
    pub(super) allow: Option<&'static str>,
    /// The metrics' label: the template, or `other` if the path ends with a slash.
    pub(super) label: &'static str,
    /// The path's parameters.
    pub(super) params: Params,
}

impl Table {
    pub(super) fn new(routes: &'static [Route]) -> Self {
        let mut resources = BTreeMap::<_, Vec<_>>::new();
        for route in routes {
            resources.entry(route.template).or_default().push(route);
        }
        let mut router = Router::new();
        for (template, routes) in resources {
            let inserted = router.insert(template, Resource { allow: allow(&routes), routes });
            debug_assert!(inserted.is_ok(), "{template}: {inserted:?}");
        }
        Self(router)
    }

    /// The route of a method and a path. A slash at the path's end makes no difference.
    pub(super) fn find(&'static self, method: &Method, path: &str) -> Option<Found> {
        let found = self.0.at(path.strip_suffix('/').unwrap_or(path)).ok()?;
        let params = Params::new(found.params.iter());
        // matchit lets a parameter be empty where more of the template follows: `/api/v1/payments//refund`.
        if params.has_empty() {
            return None;
        }
        let Resource { routes, allow } = found.value;
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let route = routes.iter().find(|route| route.method == *method);
        let first = routes.first()?;
        Some(Found {
            route: route.unwrap_or(first),
            label: if path.ends_with('/') { OTHER } else { first.template },
            allow: route.is_none().then_some(allow.as_str()),
            params,
        })
    }
}

/// The value of `Allow`, in alphabetical order.
fn allow(routes: &[&Route]) -> String {
    let mut methods: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.join(", ")
}
