//! Keys that may do only what their scopes name, and until they expire.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{Server, payment_of},
};

/// Which scope each operation needs.
const NEEDED: [(&str, &str, &str); 27] = [
    ("GET", "/payments", "payments:read"),
    ("GET", "/payments/pay_0", "payments:read"),
    ("GET", "/payments/pay_0/timeline", "payments:read"),
    ("GET", "/events", "payments:read"),
    ("GET", "/events/evt_0", "payments:read"),
    ("POST", "/payments", "payments:write"),
    ("POST", "/sandbox/advance", "payments:write"),
    ("POST", "/sandbox/reset", "payments:write"),
    ("POST", "/payments/pay_0/refund", "refunds:write"),
    ("GET", "/requests", "account:read"),
    ("GET", "/account", "account:read"),
    ("GET", "/account/balance", "account:read"),
    ("GET", "/account/activity", "account:read"),
    ("GET", "/account/activity.svg?days=0", "account:read"),
    ("GET", "/account/apps", "account:read"),
    ("GET", "/account/keys", "account:read"),
    ("GET", "/account/transactions", "account:read"),
    ("GET", "/account/transactions.csv?limit=0", "account:read"),
    ("GET", "/webhooks", "webhooks:read"),
    ("GET", "/webhooks/deliveries", "webhooks:read"),
    ("POST", "/webhooks", "webhooks:write"),
    ("PATCH", "/webhooks/wh_0", "webhooks:write"),
    ("DELETE", "/webhooks/wh_0", "webhooks:write"),
    ("POST", "/webhooks/wh_0/test", "webhooks:write"),
    ("POST", "/webhooks/wh_0/recover", "webhooks:write"),
    ("POST", "/webhooks/wh_0/rotate-secret", "webhooks:write"),
    ("POST", "/webhooks/deliveries/del_0/resend", "webhooks:write"),
];

const SCOPES: [&str; 6] =
    ["payments:read", "payments:write", "refunds:write", "account:read", "webhooks:read", "webhooks:write"];

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_key_does_what_its_scope_names_and_a_refusal_names_the_missing_one() {
    let server = Server::start();
    for scope in SCOPES {
        let key = server.new_key_with("Till", "test", &["--scope", scope]);
        for (method, path, needed) in NEEDED {
            let request = server.keyless(method.parse().unwrap(), &format!("/api/v1{path}")).bearer_auth(&key);
            let answer = request.json(&json!({})).send().await.unwrap();
            let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
            // Writing includes reading.
            if needed == scope || needed.replace("read", "write") == scope {
                assert_ne!(status, StatusCode::FORBIDDEN, "{scope}: {method} {path}");
            } else {
                assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("permission_missing")), "{scope}");
                let message = format!("this API key is restricted to {scope} and lacks the scope {needed}");
                assert_eq!(body["message"], message, "{scope}: {method} {path}");
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
