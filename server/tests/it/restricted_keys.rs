//! Keys that are limited by their scopes and their expiry.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    document,
    receiver::Receiver,
    routes::{Route, routes},
    server::{Server, eventually, payment_of},
};

const SCOPES: [&str; 10] = [
    "payments:read",
    "payments:write",
    "refunds:write",
    "account:read",
    "payouts:read",
    "payouts:write",
    "webhooks:read",
    "webhooks:write",
    "deliveries:resend",
    "sandbox:write",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_key_does_what_its_scope_names_and_a_refusal_names_the_missing_one() {
    let server = Server::start();
    let document = document::open();
    for scope in SCOPES {
        let key = server.new_key_with("Till", "test", &["--scope", scope]);
        for route in routes(&document).filter(Route::is_keyed) {
            let request = route.unknown(&server, "").bearer_auth(&key).header("content-type", "application/json");
            let answer = request.body(route.body).send().await.unwrap();
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            // Writing includes reading, and both permissions about deliveries include reading them.
            let is_granted = |needed: &&str| {
                let includes = match scope {
                    "webhooks:write" => *needed == "deliveries:resend",
                    "deliveries:resend" => *needed == "webhooks:read",
                    _ => false,
                };
                includes || *needed == scope || needed.replace("read", "write") == scope
            };
            if let Some(missing) = route.scopes.iter().find(|needed| !is_granted(needed)) {
                let body: Value = serde_json::from_str(&body).unwrap();
                assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("permission_missing")), "{scope}");
                let message = format!("this API key is restricted to {scope} and lacks the scope {missing}");
                assert_eq!(body["message"], message, "{scope}: {}", route.id);
            } else {
                assert_ne!(status, StatusCode::FORBIDDEN, "{scope}: {}", route.id);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_webhooks_write_sees_no_secret() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let listed = server.run(&["keys", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let workspace = listed["keys"][0]["workspace"].as_str().unwrap();
    for (scope, shown) in [("webhooks:read", "whsec_********"), ("webhooks:write", &*secret)] {
        let create = ["keys", "create", "--workspace", workspace, "--environment", "test", "--scope", scope];
        let key = server.run_for_line(&create);
        let list = server.keyless(Method::GET, "/api/v1/webhooks").bearer_auth(&key).send().await.unwrap();
        assert_eq!(list.json::<Value>().await.unwrap()[0]["secret"], shown, "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_keeps_its_scopes_expiry_and_name_and_the_list_shows_them() {
    let server = Server::start();
    let limits = ["--scope", "payments:write,account:read", "--expires", "2099-01-01T00:00:00Z", "--name", "the till"];
    server.new_key_with("Till", "test", &limits);
    let shown = "payments:write,account:read 2099-01-01T00:00:00.000Z - the till";
    let line =
        |listed: &str| listed.lines().find(|line| line.ends_with(shown) && line.contains(" - - ")).map(str::to_owned);
    let before = line(&server.run(&["keys", "list"])).unwrap();
    let key = server.run_for_line(&["keys", "rotate", before.split(' ').next().unwrap()]);
    let after = server.run(&["keys", "list"]);
    assert_eq!(after.lines().filter(|line| line.ends_with(shown)).count(), 2, "{after}");
    let create = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&key).json(&payment_of(&json!(5)));
    assert_eq!(create.send().await.unwrap().status(), StatusCode::CREATED);
    let webhooks = server.keyless(Method::GET, "/api/v1/webhooks").bearer_auth(&key);
    assert_eq!(webhooks.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    for (argument, value, why) in
        [("--expires", "2001-01-01T00:00:00Z", "expired already"), ("--scope", "payments", "payments:read")]
    {
        let workspace = before.split(' ').nth(1).unwrap();
        let create = ["keys", "create", "--workspace", workspace, "--environment", "test", argument, value];
        let refused = server.try_run(&create);
        assert!(!refused.status.success());
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains(why), "{stderr}");
    }
}

/// Creates a key for a workspace, with more arguments of `keys create`. Returns the workspace's id and the key.
fn key_of(server: &Server, workspace: &str, arguments: &[&str]) -> String {
    let create = ["keys", "create", "--workspace", workspace, "--environment", "test"];
    server.run_for_line(&[&create, arguments].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_requests_has_ids_only_for_keys_that_may_read_payments() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Till"]);
    let [all, of_account, of_both] =
        [&[][..], &["--scope", "account:read"], &["--scope", "account:read,payments:write"]]
            .map(|scopes| key_of(&server, &workspace, scopes));
    let as_key = |method, path: &str, key: &str| server.keyless(method, &format!("/api/v1{path}")).bearer_auth(key);
    let create = as_key(Method::POST, "/payments", &all).json(&payment_of(&json!(5)));
    let id = create.send().await.unwrap().json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    for path in [format!("/payments/{id}"), format!("/payments/{id}/timeline/"), "/account".to_owned()] {
        as_key(Method::GET, &path, &all).send().await.unwrap();
    }
    let paths = async |key: &str| {
        eventually("the requests to be logged", async || {
            let log: Value = as_key(Method::GET, "/requests", key).send().await.unwrap().json().await.unwrap();
            let paths: Vec<_> =
                log["items"].as_array()?.iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect();
            (paths.len() == 4).then_some(paths)
        })
        .await
    };
    for key in [&all, &of_both] {
        assert!(paths(key).await.contains(&format!("/api/v1/payments/{id}")));
    }
    let shown = ["/api/v1/account", "/api/v1/payments/{id}/timeline", "/api/v1/payments/{id}", "/api/v1/payments"];
    assert_eq!(paths(&of_account).await, shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_only_one_app_sees_only_that_apps_payments() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Two shops"]);
    let [mine, other] = ["Mine", "Other"]
        .map(|name| server.run_for_line(&["apps", "create", "--workspace", &workspace, "--name", name]));
    let only = key_of(&server, &workspace, &["--app", &mine, "--app-only"]);
    let keys = [
        key_of(&server, &workspace, &[]),
        key_of(&server, &workspace, &["--app", &other]),
        key_of(&server, &workspace, &["--app", &mine]),
    ];
    let ask = async |method, path: &str, key: &str, body: &Value| -> (u16, Value) {
        let mut request = server.keyless(method, &format!("/api/v1{path}")).bearer_auth(key);
        if !body.is_null() {
            request = request.header("idempotency-key", "order-1").json(body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    let get = async |path: &str, key: &str| ask(Method::GET, path, key, &Value::Null).await;
    let order = payment_of(&json!(5));
    let (_, foreign) = ask(Method::POST, "/payments", &keys[1], &order).await;
    // The other app's order has the same idempotency key and body, but its payment is not shown.
    assert_eq!(ask(Method::POST, "/payments", &only, &order).await.0, 422);
    let mut created = Vec::new();
    for (nth, key) in [&keys[0], &keys[2], &only, &keys[1]].into_iter().enumerate() {
        let answer =
            server.keyless(Method::POST, "/api/v1/payments").bearer_auth(key).json(&payment_of(&json!(nth + 1)));
        created.push(answer.send().await.unwrap().json::<Value>().await.unwrap());
    }
    let ids: Vec<_> = created.iter().map(|payment| payment["id"].as_str().unwrap()).collect();
    let own = [ids[2], ids[1]];

    for query in ["", "?status=pending", "?currency=BDT", "?limit=1"] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/payments{query}{}{after}", if query.is_empty() { "?" } else { "&" });
            let (status, page) = get(&path, &only).await;
            assert_eq!((status, &page["total"]), (200, &Value::Null), "{path}: {page}");
            found.extend(page["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
            if page["hasMore"] == false {
                break;
            }
            after = format!("after={}", page["next"].as_str().unwrap());
        }
        assert_eq!(found, own, "{query}");
    }
    assert_eq!(get("/payments?page=2", &only).await.0, 400);
    assert_eq!(get("/payments", &keys[2]).await.1["total"], 5, "a key that is bound to an app sees all");

    let (_, events) = get("/events", &keys[0]).await;
    let (_, seen) = get("/events", &only).await;
    let payments: Vec<_> =
        seen["items"].as_array().unwrap().iter().map(|it| it["data"]["id"].as_str().unwrap()).collect();
    assert_eq!((payments, events["items"].as_array().unwrap().len()), (vec![ids[1], ids[2]], 5));
    for event in events["items"].as_array().unwrap() {
        let payment = event["data"]["id"].as_str().unwrap();
        let expected = if own.contains(&payment) { 200 } else { 404 };
        for path in [
            format!("/events/{}", event["id"].as_str().unwrap()),
            format!("/events?paymentId={payment}"),
            format!("/payments/{payment}"),
            format!("/payments/{payment}/timeline"),
        ] {
            assert_eq!(get(&path, &only).await.0, expected, "{path}");
        }
        let refund = server.keyless(Method::POST, &format!("/api/v1/payments/{payment}/refund")).bearer_auth(&only);
        let refunded = refund.send().await.unwrap().status().as_u16();
        // A test payment cannot be refunded.
        assert_eq!(refunded, if expected == 200 { 409 } else { 404 });
    }
    assert!(foreign["id"].is_string());
    for path in ["/account", "/account/transactions", "/requests", "/webhooks", "/webhooks/deliveries"] {
        assert_eq!(get(path, &only).await.1["code"], "permission_missing", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_only_one_app_stays_so_when_rotated_and_has_no_scope_of_the_workspace() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Two shops"]);
    let app = server.run_for_line(&["apps", "create", "--workspace", &workspace, "--name", "Mine"]);
    key_of(&server, &workspace, &["--app", &app, "--app-only"]);
    let shown = format!("{app},only payments:read,payments:write,refunds:write");
    let listed = server.run(&["keys", "list"]);
    let id = listed.lines().find(|line| line.contains(&shown)).unwrap().split(' ').next().unwrap();
    server.run(&["keys", "rotate", id]);
    let listed = server.run(&["keys", "list"]);
    assert_eq!(listed.lines().filter(|line| line.contains(&shown)).count(), 2, "{listed}");
    let create = ["keys", "create", "--workspace", &workspace, "--environment", "test", "--app-only"];
    for (arguments, says) in [
        (&["--app", &app, "--scope", "account:read"][..], "account:read is about the whole workspace"),
        (&["--app", &app, "--scope", "sandbox:write"], "may have payments:read, payments:write, refunds:write"),
        (&[], "--app <APP>"),
    ] {
        let refused = server.try_run(&[&create, arguments].concat());
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && stderr.contains(says), "{stderr}");
    }
}
