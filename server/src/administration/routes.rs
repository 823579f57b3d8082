//! The table of the administration API's routes.

use std::sync::LazyLock;

use matchit::Router;

use crate::domain::AdminPermission::{
    self, AuditRead, CustomersWrite, DeliveriesWrite, KeysWrite, MerchantsRead, MerchantsWrite, MoneyRead, MoneyWrite,
    PeopleWrite, ServerRead, ServerWrite,
};

/// The beginning of every path.
pub const PREFIX: &str = "/admin/v1";
/// The route that describes the others.
pub(super) const DESCRIPTION: &str = "/admin/v1/openapi.json";

/// A route: a request of the service, and how HTTP says it.
#[derive(Debug)]
pub(super) struct AdminRoute {
    pub(super) method: &'static str,
    /// The path after the prefix. Its parameters are fields of the request. Those of a `GET` are in the query, all others in
    /// the body.
    pub(super) path: &'static str,
    /// The request: its verb, and its action if it has one.
    pub(super) request: (&'static str, Option<&'static str>),
    pub(super) needs: AdminPermission,
    /// A field that only this request's answer has.
    pub(super) answer: &'static str,
}

pub(super) static ROUTES: &[AdminRoute] = &[
    get("/workspaces", "list_workspaces", MerchantsRead, "workspaces"),
    post("/workspaces", "create_workspace", MerchantsWrite, "developerId"),
    route("PUT", "/workspaces/{workspace}/ways", "set_ways", MerchantsWrite, "ways"),
    post("/workspaces/{workspace}/keys", "create_key", KeysWrite, "key"),
    post("/workspaces/{workspace}/apps", "create_app", MerchantsWrite, "appId"),
    get("/apps", "list_apps", MerchantsRead, "apps"),
    route("PATCH", "/apps/{id}", "update_app", MerchantsWrite, "appId"),
    get("/keys", "list_keys", MerchantsRead, "keys"),
    post("/keys/revoke", "revoke_key", KeysWrite, "revokedAt"),
    post("/keys/rotate", "rotate_key", KeysWrite, "key"),
    get("/workspaces/{workspace}/limits", "limits", MerchantsRead, "limits"),
    route("PUT", "/workspaces/{workspace}/limits", "limits", MerchantsWrite, "limits"),
    post("/workspaces/{workspace}/customers/export", "customers/export", CustomersWrite, "customers"),
    post("/workspaces/{workspace}/customers/erase", "customers/erase", CustomersWrite, "customers"),
    get("/refunds", "list_refunds", MoneyRead, "refunds"),
    post("/refunds/{refund}/settle", "settle_refund", MoneyWrite, "settledAt"),
    get("/disputes", "disputes/list", MoneyRead, "disputes"),
    post("/payments/{payment}/disputes", "disputes/open", MoneyWrite, "dispute"),
    post("/disputes/{dispute}/moves", "disputes/move", MoneyWrite, "dispute"),
    post("/disputes/{dispute}/close", "disputes/close", MoneyWrite, "dispute"),
    get("/settlements/rows", "settlements/rows", MoneyRead, "settlements"),
    post("/settlements/rows/{row}/resolve", "settlements/resolve", MoneyWrite, "settlements"),
    get("/settlements/waiting", "settlements/waiting", MoneyRead, "settlements"),
    post("/settlements/gateways/{gateway}/rows", "settlements/import", MoneyWrite, "settlements"),
    post("/settlements/gateways/{gateway}/file", "settlements/import_file", MoneyWrite, "settlements"),
    get("/settlements/gateways/{gateway}/statement", "settlements/read", MoneyWrite, "settlements"),
    get("/payouts", "payouts/list", MoneyRead, "payouts"),
    post("/payouts/outcomes", "payouts/record", MoneyWrite, "payouts"),
    post("/payouts/batches/{batch}", "payouts/send", MoneyWrite, "payouts"),
    post("/books", "books", MoneyWrite, "booked"),
    get("/coverage", "coverage", MoneyRead, "coverage"),
    get("/reviews", "list_reviews", MoneyRead, "reviews"),
    post("/reviews/{payment}/resolve", "resolve_review", MoneyWrite, "resolved"),
    post("/deliveries/{delivery}/resend", "resend_delivery", DeliveriesWrite, "resent"),
    post("/endpoints/{webhook}/recover", "recover_webhook", DeliveriesWrite, "recovered"),
    get("/gateways", "gateways/list", ServerRead, "gateways"),
    post("/gateways/{gateway}/pause", "gateways/pause", ServerWrite, "gateways"),
    post("/gateways/{gateway}/token", "gateways/token", ServerWrite, "gateways"),
    post("/backups", "back_up", ServerWrite, "directory"),
    get("/platform-keys", "platform_keys/list", PeopleWrite, "platformKeys"),
    post("/platform-keys", "platform_keys/create", PeopleWrite, "platformKeys"),
    post("/platform-keys/{id}/revoke", "platform_keys/revoke", PeopleWrite, "platformKeys"),
    get("/sessions", "sessions/list", PeopleWrite, "sessions"),
    post("/sessions/revoke", "sessions/revoke", PeopleWrite, "sessions"),
    post("/people/revoke", "sessions/revoke_person", PeopleWrite, "sessions"),
    get("/notices", "notices/list", ServerRead, "notices"),
    get("/audit", "audit", AuditRead, "audit"),
    get("/workspaces/{workspace}/audit", "audit", AuditRead, "audit"),
];

const fn get(path: &'static str, request: &'static str, needs: AdminPermission, answer: &'static str) -> AdminRoute {
    route("GET", path, request, needs, answer)
}

const fn post(path: &'static str, request: &'static str, needs: AdminPermission, answer: &'static str) -> AdminRoute {
    route("POST", path, request, needs, answer)
}

/// `request` is a verb, or a verb, a slash and an action.
const fn route(
    method: &'static str,
    path: &'static str,
    request: &'static str,
    needs: AdminPermission,
    answer: &'static str,
) -> AdminRoute {
    let bytes = request.as_bytes();
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'/' {
        at += 1;
    }
    let (verb, rest) = request.split_at(at);
    let action = if rest.is_empty() { None } else { Some(rest.split_at(1).1) };
    AdminRoute { method, path, request: (verb, action), needs, answer }
}

impl AdminRoute {
    /// The names of the path's parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// The route of a request. If several have it, the one whose parameters all have values.
    pub(super) fn of_request(
        verb: &str,
        action: Option<&str>,
        has: impl Fn(&str) -> bool,
    ) -> Option<&'static AdminRoute> {
        let rows = ROUTES.iter().filter(|row| row.request == (verb, action) && row.parameters().all(&has));
        rows.max_by_key(|row| row.parameters().count())
    }
}

type Rows = Vec<&'static AdminRoute>;

static TABLE: LazyLock<Router<Rows>> = LazyLock::new(|| {
    let mut router: Router<Rows> = Router::new();
    for row in ROUTES {
        match router.at_mut(row.path) {
            Ok(found) if found.value.first().is_some_and(|it: &&AdminRoute| it.path == row.path) => {
                found.value.push(row);
            }
            _ => {
                let inserted = router.insert(row.path, vec![row]);
                debug_assert!(inserted.is_ok(), "{}: {inserted:?}", row.path);
            }
        }
    }
    router
});

/// What the table says of a method and a path.
pub(super) enum Found<'p> {
    Route(&'static AdminRoute, Vec<(&'static str, &'p str)>),
    /// The path has other methods.
    Methods(String),
    Nothing,
}

/// Finds the route of a path after the prefix. Its parameters are not decoded.
pub(super) fn find<'p>(method: &str, path: &'p str) -> Found<'p> {
    let Ok(found) = TABLE.at(path) else { return Found::Nothing };
    if found.params.iter().any(|(_, value)| value.is_empty()) {
        return Found::Nothing;
    }
    let values: Vec<&'p str> = found.params.iter().map(|(_, value)| value).collect();
    match found.value.iter().find(|row| row.method == method) {
        Some(row) => Found::Route(row, row.parameters().zip(values).collect()),
        None => Found::Methods(found.value.iter().map(|row| row.method).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_row_is_found_by_its_path_and_none_repeats() {
        let mut seen = BTreeSet::new();
        for row in ROUTES {
            assert!(seen.insert((row.method, row.path)), "{} {}", row.method, row.path);
            let path: Vec<_> =
                row.path.split('/').map(|part| if part.starts_with('{') { "x1" } else { part }).collect();
            let path = path.join("/");
            let Found::Route(found, parameters) = find(row.method, &path) else { panic!("{path}") };
            assert!(std::ptr::eq(found, row), "{path}");
            assert_eq!(parameters.len(), row.parameters().count());
            assert!(matches!(find("DELETE", &path), Found::Methods(_)));
        }
        assert!(
            matches!(find("GET", "/nothing"), Found::Nothing)
                && matches!(find("PUT", "/workspaces//ways"), Found::Nothing)
        );
    }
}
