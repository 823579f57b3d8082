//! The route table. One row per route: method, path, authentication and rate limit, handler.
//!
//! 404, 405 with `Allow`, and the metrics label follow from it. Tests compare the OpenAPI document with it.

use std::sync::{Arc, LazyLock};

use warp::{Filter, filters::BoxedFilter, http::Method, reply::Response};

use super::{
    account, administration, checkout, dashboard, docs, events, gate, gateways,
    head::Found,
    health, home, page,
    parts::{ADMINISTRATION, METRICS, Parts},
    payments, payouts, people,
    request::{Request, request},
    requests,
    route::{
        Access::{self, Keyed, Keyless, Page, Unlimited},
        Route, Table,
    },
    sandbox,
    server::Server,
    statement, static_files, transactions, webhooks,
};
use crate::domain::Permission::{
    AccountRead, DeliveriesResend, PaymentsRead, PaymentsWrite, PayoutsRead, PayoutsWrite, RefundsWrite, SandboxWrite,
    WebhooksRead, WebhooksWrite,
};

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PUT: Method = Method::PUT;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

static ROUTES: &[Route] = &[
    route(GET, "/api/v1/payments", Keyed(PaymentsRead, |c, r| Box::pin(payments::list(c, r)))),
    route(POST, "/api/v1/payments", Keyed(PaymentsWrite, |c, r| Box::pin(payments::create(c, r)))),
    route(GET, "/api/v1/payments/{id}", Keyed(PaymentsRead, |c, r| Box::pin(payments::retrieve(c, r)))),
    route(GET, "/api/v1/payments/{id}/timeline", Keyed(PaymentsRead, |c, r| Box::pin(payments::timeline(c, r)))),
    route(POST, "/api/v1/payments/{id}/refund", Keyed(RefundsWrite, |c, r| Box::pin(payments::refund(c, r)))),
    route(POST, "/api/v1/payments/{id}/simulate", Keyed(PaymentsWrite, |c, r| Box::pin(payments::simulate(c, r)))),
    route(GET, "/api/v1/account", Keyed(AccountRead, |c, r| Box::pin(account::retrieve(c, r)))),
    route(GET, "/api/v1/account/balance", Keyed(AccountRead, |c, r| Box::pin(account::balance(c, r)))),
    route(GET, "/api/v1/account/activity", Keyed(AccountRead, |c, r| Box::pin(account::activity(c, r)))),
    route(GET, "/api/v1/account/activity.svg", Keyed(AccountRead, |c, r| Box::pin(account::chart(c, r)))),
    route(GET, "/api/v1/account/apps", Keyed(AccountRead, |c, r| Box::pin(account::apps(c, r)))),
    route(GET, "/api/v1/account/keys", Keyed(AccountRead, |c, r| Box::pin(account::keys(c, r)))),
    route(GET, "/api/v1/account/audit", Keyed(AccountRead, |c, r| Box::pin(account::audit(c, r)))),
    route(GET, "/api/v1/account/notices", Keyed(AccountRead, |c, r| Box::pin(account::notices(c, r)))),
    route(GET, "/api/v1/account/transactions", Keyed(AccountRead, |c, r| Box::pin(transactions::list(c, r)))),
    route(GET, "/api/v1/account/transactions.csv", Keyed(AccountRead, |c, r| Box::pin(transactions::table(c, r)))),
    route(GET, "/api/v1/payouts", Keyed(PayoutsRead, |c, r| Box::pin(payouts::list(c, r)))),
    route(POST, "/api/v1/payouts", Keyed(PayoutsWrite, |c, r| Box::pin(payouts::create(c, r)))),
    route(GET, "/api/v1/payouts/destinations", Keyed(PayoutsRead, |c, r| Box::pin(payouts::accounts(c, r)))),
    route(POST, "/api/v1/payouts/destinations", Keyed(PayoutsWrite, |c, r| Box::pin(payouts::set_destination(c, r)))),
    route(POST, "/api/v1/payouts/schedules", Keyed(PayoutsWrite, |c, r| Box::pin(payouts::set_schedule(c, r)))),
    route(GET, "/api/v1/payouts/{id}", Keyed(PayoutsRead, |c, r| Box::pin(payouts::retrieve(c, r)))),
    route(POST, "/api/v1/payouts/{id}/cancel", Keyed(PayoutsWrite, |c, r| Box::pin(payouts::cancel(c, r)))),
    route(GET, "/api/v1/payouts/{id}/statement", Keyed(PayoutsRead, |c, r| Box::pin(statement::show(c, r)))),
    route(GET, "/api/v1/payouts/{id}/transactions", Keyed(PayoutsRead, |c, r| Box::pin(payouts::transactions(c, r)))),
    route(GET, "/api/v1/payouts/{id}/transactions.csv", Keyed(PayoutsRead, |c, r| Box::pin(payouts::table(c, r)))),
    route(GET, "/api/v1/events", Keyed(PaymentsRead, |c, r| Box::pin(events::list(c, r)))),
    route(GET, "/api/v1/events/{id}", Keyed(PaymentsRead, |c, r| Box::pin(events::retrieve(c, r)))),
    route(GET, gate::REQUEST_LOG, Keyed(AccountRead, |c, r| Box::pin(requests::list(c, r, find)))),
    route(GET, "/api/v1/webhooks", Keyed(WebhooksRead, |c, r| Box::pin(webhooks::list(c, r)))),
    route(POST, "/api/v1/webhooks", Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::create(c, r)))),
    route(GET, "/api/v1/webhooks/deliveries", Keyed(WebhooksRead, |c, r| Box::pin(webhooks::deliveries(c, r)))),
    route(
        POST,
        "/api/v1/webhooks/deliveries/{id}/resend",
        Keyed(DeliveriesResend, |c, r| Box::pin(webhooks::resend(c, r))),
    ),
    route(POST, "/api/v1/webhooks/verify", Keyless(|r| Box::pin(webhooks::verify(r)))),
    route(PATCH, "/api/v1/webhooks/{id}", Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::update(c, r)))),
    route(DELETE, "/api/v1/webhooks/{id}", Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::remove(c, r)))),
    route(
        POST,
        "/api/v1/webhooks/{id}/rotate-secret",
        Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::rotate_secret(c, r))),
    ),
    route(POST, "/api/v1/webhooks/{id}/recover", Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::recover(c, r)))),
    route(POST, "/api/v1/webhooks/{id}/test", Keyed(WebhooksWrite, |c, r| Box::pin(webhooks::test(c, r)))),
    route(POST, "/api/v1/sandbox/advance", Keyed(SandboxWrite, |c, r| Box::pin(sandbox::advance(c, r)))),
    route(POST, "/api/v1/sandbox/reset", Keyed(SandboxWrite, |c, r| Box::pin(sandbox::reset(c, r)))),
    route(POST, "/api/v1/checkout/demo-session", Keyless(|r| Box::pin(checkout::demo_session(r)))),
    route(GET, "/api/v1/checkout/{id}", Keyless(|r| Box::pin(checkout::retrieve(r)))),
    route(POST, "/api/v1/checkout/{id}/simulate", Keyless(|r| Box::pin(checkout::simulate(r)))),
    route(POST, "/api/v1/checkout/{id}/pay", Keyless(|r| Box::pin(checkout::pay(r)))),
    route(GET, "/api/v1/openapi.json", Keyless(|r| Box::pin(docs::description(r)))),
    route(GET, "/checkout/{id}", Page(|r| Box::pin(page::visit(r)))),
    route(POST, "/checkout/{id}", Page(|r| Box::pin(page::submit(r)))),
    route(GET, "/gateways/{gateway}/return/{id}", Keyless(|r| Box::pin(gateways::customer_returned(r)))),
    route(POST, "/gateways/{gateway}/return/{id}", Keyless(|r| Box::pin(gateways::customer_returned(r)))),
    route(POST, "/gateways/{gateway}/webhook", Unlimited(|r| Box::pin(gateways::notice(r)))),
    route(GET, "/assets/{id}", Unlimited(|r| Box::pin(static_files::serve(r)))),
    route(GET, "/", Unlimited(|r| Box::pin(home::show(r)))),
    route(GET, "/docs", Unlimited(|r| Box::pin(docs::page(r)))),
    route(GET, "/docs/{id}", Unlimited(|r| Box::pin(docs::page(r)))),
    route(GET, "/dashboard", Unlimited(|r| Box::pin(dashboard::show(r)))),
    route(GET, "/dashboard/sign-in", Page(|r| Box::pin(people::begin(r)))),
    route(GET, "/dashboard/callback", Page(|r| Box::pin(people::finish(r)))),
    route(POST, "/dashboard/sign-out", Keyless(|r| Box::pin(people::sign_out(r)))),
    route(GET, "/healthz", Unlimited(|r| Box::pin(health::alive(r)))),
    route(GET, "/readyz", Unlimited(|r| Box::pin(health::ready(r)))),
    route(GET, ADMINISTRATION, Unlimited(|r| Box::pin(administration::serve(r)))),
    route(POST, ADMINISTRATION, Unlimited(|r| Box::pin(administration::serve(r)))),
    route(PUT, ADMINISTRATION, Unlimited(|r| Box::pin(administration::serve(r)))),
    route(PATCH, ADMINISTRATION, Unlimited(|r| Box::pin(administration::serve(r)))),
    route(DELETE, ADMINISTRATION, Unlimited(|r| Box::pin(administration::serve(r)))),
    route(GET, METRICS, Unlimited(|r| Box::pin(health::metrics(r)))),
];

const fn route(method: Method, template: &'static str, access: Access) -> Route {
    Route { method, template, access }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(ROUTES));

pub(super) fn find(method: &Method, path: &str) -> Option<Found> {
    TABLE.find(method, path)
}

pub type Routes = BoxedFilter<(Response,)>;

/// Builds the filter that handles requests. The listener has already found their routes.
pub fn routes(server: &Arc<Server>, parts: Parts) -> Routes {
    let respond = move |request: Request| async move {
        let head = Arc::clone(&request.head);
        let found = head.found.as_ref().and_then(|found| Some((found, ROUTES.get(found.row)?)));
        match found.filter(|(_, route)| parts.include(route.template)) {
            Some((found, route)) => gate::answer(found, route, request).await,
            // The listener counts the request for its client address.
            None => page::no_such_path(&head.parts),
        }
    };
    request(Arc::clone(server), parts).then(respond).boxed()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::{gateway, http::reference::DESCRIPTION};

    /// Whether a path matches a template, segment by segment.
    fn matches(template: &str, path: &str) -> bool {
        let (wanted, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let matches = |(wanted, given): (&&str, &&str)| match *wanted {
            "{gateway}" => gateway::declared(given).is_some(),
            wanted if wanted.starts_with("{*") => true,
            wanted if wanted.starts_with('{') => !given.is_empty(),
            wanted => wanted == *given,
        };
        let has_rest = template.contains("{*") && given.len() > wanted.len();
        let lacks_rest = template.contains("{*") && path == template.trim_end_matches("{*id}");
        !lacks_rest && (wanted.len() == given.len() || has_rest) && wanted.iter().zip(&given).all(matches)
    }

    /// Finds the template of a path by comparing it with every template. A literal segment takes precedence over a parameter.
    fn template_of(path: &str) -> Option<&'static str> {
        let path = path.strip_suffix('/').filter(|rest| !matches!(*rest, "" | "/")).unwrap_or(path);
        let matching = ROUTES.iter().map(|route| route.template).filter(|template| matches(template, path));
        matching.max_by_key(|template| template.split('/').map(|part| !part.starts_with('{')).collect::<Vec<_>>())
    }

    /// Paths similar to those of the table, with segments replaced, added or removed.
    fn paths() -> impl Strategy<Value = String> {
        let words = ROUTES.iter().flat_map(|route| route.template.split('/'));
        let words: Vec<&str> = words.chain(gateway::registry().map(|it| it.name.as_str())).collect();
        let segment = prop_oneof![proptest::sample::select(words), Just("%2f"), Just("")].prop_map(str::to_owned);
        let segment = prop_oneof![4 => segment, 1 => "[ -~&&[^/?#]]{0,6}"];
        let template = (0..ROUTES.len()).prop_map(|row| ROUTES[row].template.split('/').map(str::to_owned).collect());
        let changes = proptest::collection::vec((0..8_usize, 0..3, segment.clone()), 0..3);
        let near = (template, changes).prop_map(|(mut parts, changes): (Vec<String>, _)| {
            for (index, change, segment) in changes {
                let index = index.min(parts.len() - 1);
                match change {
                    0 => parts[index] = segment,
                    1 => parts.insert(index, segment),
                    _ if parts.len() > 1 => drop(parts.remove(index)),
                    _ => {}
                }
            }
            parts.join("/")
        });
        let any = proptest::collection::vec(segment, 0..8).prop_map(|parts| parts.join("/"));
        (prop_oneof![3 => near, 1 => any], prop_oneof![4 => Just(""), 1 => Just("/")])
            .prop_map(|(path, end)| path + end)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_lookup_agrees_with_a_linear_search(
            path in paths(),
            method in proptest::sample::select(vec!["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "BREW"]),
        ) {
            let method: Method = method.parse().unwrap();
            let found = find(&method, &path);
            let template = template_of(&path);
            prop_assert_eq!(found.as_ref().map(|found| found.template), template);
            let Some(found) = found else { return Ok(()) };
            let has_slash = path.len() > 1 && path.ends_with('/');
            prop_assert_eq!(found.label, if has_slash { "other" } else { found.template });
            let rows = ROUTES.iter().filter(|route| Some(route.template) == template);
            let mut methods: BTreeSet<&str> = rows.map(|route| route.method.as_str()).collect();
            if methods.contains("GET") {
                methods.insert("HEAD");
            }
            match found.allow {
                None => prop_assert!(methods.contains(method.as_str())),
                Some(allow) => {
                    prop_assert!(!methods.contains(method.as_str()));
                    prop_assert_eq!(allow.split(", ").collect::<BTreeSet<_>>(), methods);
                }
            }
            let mut parts = found.template.split('/').zip(path.split('/'));
            let has_parameters = parts.all(|(wanted, given)| match wanted.strip_prefix('{') {
                Some("gateway}") => found.gateway.is_some_and(|gateway| gateway.name.as_str() == given),
                Some("*id}") => found.id.starts_with(given),
                Some(name) => name == "id}" && found.id == given,
                None => wanted == given,
            });
            prop_assert!(has_parameters);
        }
    }

    #[test]
    fn the_lookup_finds_every_row_and_no_row_repeats() {
        let mut rows = BTreeSet::new();
        for route in ROUTES {
            assert!(rows.insert((route.template, route.method.as_str())), "{}", route.template);
            let path = route
                .template
                .replace("{id}", "pay_1")
                .replace("{gateway}", gateway::registry().next().unwrap().name.as_str());
            let found = find(&route.method, &path).unwrap();
            assert!(std::ptr::eq(&ROUTES[found.row], route) && found.allow.is_none(), "{}", route.template);
        }
    }

    #[test]
    fn a_paths_label_is_its_template_and_an_unknown_path_has_none() {
        for (path, label) in [
            ("/api/v1/payments", Some("/api/v1/payments")),
            ("/api/v1/payments/pay_1", Some("/api/v1/payments/{id}")),
            ("/api/v1/webhooks/deliveries", Some("/api/v1/webhooks/deliveries")),
            ("/api/v1/webhooks/wh_1", Some("/api/v1/webhooks/{id}")),
            ("/api/v1/webhooks/deliveries/test", Some("/api/v1/webhooks/{id}/test")),
            ("/api/v1/checkout/demo-session", Some("/api/v1/checkout/demo-session")),
            ("/api/v1/payments/", Some("other")),
            ("/api/v1/payments/a/b", None),
            ("/api/v1/webhooks//test", None),
            ("/", Some("/")),
            ("//", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(find(&GET, path).map(|found| found.label), label, "{path}");
        }
    }

    #[test]
    fn the_openapi_document_has_exactly_the_operations_of_the_table() {
        let document: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let described: BTreeSet<(String, String, bool)> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| methods.as_object().unwrap().iter().map(move |row| (path, row)))
            .map(|(path, (method, operation))| (path.clone(), method.to_uppercase(), operation["security"].is_null()))
            .collect();
        let api = ROUTES.iter().filter(|route| route.template.starts_with("/api/"));
        let row = |route: &Route| {
            (route.template.to_owned(), route.method.to_string(), matches!(route.access, Access::Keyed(..)))
        };
        assert_eq!(described, api.map(row).collect());
    }
}
