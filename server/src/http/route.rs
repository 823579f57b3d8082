//! Routes as data, and their lookup.

use std::{collections::BTreeMap, pin::Pin};

use matchit::Router;
use warp::http::Method;

use super::{head::Found, reply::Outcome, request::Request};
use crate::{domain::Permission, gateway, service::Caller};

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
    /// The rows of the path, each with its number.
    rows: Vec<(usize, &'static Route)>,
    allow: String,
}

impl Table {
    pub(super) fn new(routes: &'static [Route]) -> Self {
        let mut resources = BTreeMap::<_, Vec<_>>::new();
        for row in routes.iter().enumerate() {
            resources.entry(row.1.template).or_default().push(row);
        }
        let mut router = Router::new();
        for (template, rows) in resources {
            let inserted = router.insert(template, Resource { allow: allow(&rows), rows });
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
        let Resource { rows, allow } = found.value;
        let gateway = found.params.get("gateway").map(gateway::declared);
        if matches!(gateway, Some(None)) {
            return None;
        }
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let row = rows.iter().find(|(_, route)| route.method == *method);
        let (first, Route { template, .. }) = *rows.first()?;
        Some(Found {
            row: row.map_or(first, |(row, _)| *row),
            template,
            label: if without_slash.is_some() { OTHER } else { template },
            allow: row.is_none().then_some(allow.as_str()),
            id: found.params.get("id").unwrap_or_default().to_owned(),
            gateway: gateway.flatten(),
        })
    }
}

/// The value of `Allow`, in alphabetical order.
fn allow(rows: &[(usize, &Route)]) -> String {
    let mut methods: Vec<&str> = rows.iter().map(|(_, route)| route.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.join(", ")
}
