//! Routes as data, and their lookup.

use std::{collections::BTreeMap, pin::Pin};

use matchit::Router;
use warp::http::Method;

use super::{reply::Outcome, request::Request};
use crate::{domain::Permission, service::Caller};

/// A handler's future. It does nothing until polled.
pub(super) type Handling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub(super) struct Route {
    /// The method. `GET` also answers `HEAD`: then hyper leaves out the body (RFC 9110, section 9.3.2).
    pub(super) method: Method,
    /// The path as the OpenAPI document writes it: `/api/v1/payments/{id}`.
    pub(super) template: &'static str,
    pub(super) access: Access,
}

#[derive(Clone, Copy)]
pub(super) enum Access {
    /// Needs an API key with this permission; limited per key.
    Keyed(Permission, fn(Caller, Request) -> Handling),
    /// Needs no key; limited per client address.
    Keyless(fn(Request) -> Handling),
    /// Needs no key; limited per client address. Errors are pages for people.
    Page(fn(Request) -> Handling),
    /// Needs no key; not limited.
    Unlimited(fn(Request) -> Handling),
}

/// The metrics label of requests without a route.
pub(super) const OTHER: &str = "other";

pub(super) struct Table(Router<Resource>);

struct Resource {
    routes: Vec<&'static Route>,
    allow: String,
}

#[derive(Clone)]
pub(super) struct Found {
    /// The path's route for the method. If the path does not allow the method, this is the path's first route, and its access
    /// applies to the 405.
    pub(super) route: &'static Route,
    /// The path's methods, if the request has another one.
    pub(super) allow: Option<&'static str>,
    /// The metrics label: the template, or `other` if the path ends with a slash.
    pub(super) label: &'static str,
    /// The path parameter `{id}`, not decoded; empty if the template has none.
    pub(super) id: String,
}

impl Found {
    /// The route with its parameter. It is the same for all spellings of the path.
    pub(super) fn path(&self) -> String {
        self.route.template.replace("{id}", &self.id)
    }
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

    /// Finds the route of a method and a path. Ignores a trailing slash.
    pub(super) fn find(&'static self, method: &Method, path: &str) -> Option<Found> {
        // `/` is a path of its own, and `//` is not the same.
        let without_slash = path.strip_suffix('/').filter(|rest| !matches!(*rest, "" | "/"));
        let found = self.0.at(without_slash.unwrap_or(path)).ok()?;
        // matchit matches empty parameters in the middle of a path: `/api/v1/payments//refund`.
        if found.params.iter().any(|(_, value)| value.is_empty()) {
            return None;
        }
        let Resource { routes, allow } = found.value;
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let route = routes.iter().find(|route| route.method == *method);
        let first = routes.first()?;
        Some(Found {
            route: route.unwrap_or(first),
            label: if without_slash.is_some() { OTHER } else { first.template },
            allow: route.is_none().then_some(allow.as_str()),
            id: found.params.get("id").unwrap_or_default().to_owned(),
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
