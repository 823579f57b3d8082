//! The account: balance and volume per environment, apps, and keys.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

/// The balance with what payouts can take, which is all of it here.
fn with_payouts(mut balance: Value) -> Value {
    balance["available"] = json!({"bdt": balance["bdt_balance"], "usd": balance["usd_balance"]});
    balance["pending"] = json!({"bdt": 0, "usd": 0});
    balance
}

async fn pay(server: &Server, amount: f64, currency: &str, action: &str) {
    let mut body = payment_of(&json!(amount));
    body["currency"] = currency.into();
    let payment = server.create(&body).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    let answer = server.keyless(Method::POST, &simulate).json(&json!({"action": action})).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_balance_is_net_and_the_volume_gross_even_after_a_crash() {
    let mut server = Server::start();
    let empty = server.get("/account").await;
    assert_eq!(empty["balance"], with_payouts(json!({"bdt": 0, "usd": 0, "bdt_balance": 0, "usd_balance": 0})));
    assert_eq!(empty["volume"], json!({"bdt": 0, "usd": 0, "total_payments": 0}));
    pay(&server, 750.0, "BDT", "success").await;
    pay(&server, 12.5, "USD", "success").await;
    pay(&server, 0.09, "BDT", "success").await;
    pay(&server, 99.0, "BDT", "fail").await;
    pay(&server, 99.0, "USD", "cancel").await;
    server.crash_and_restart();
    let account = server.get("/account").await;
    // 750 - 37.5, 12.5 - 0.63, 0.09 - 0.
    assert_eq!(
        account["balance"],
        with_payouts(json!({"bdt": 712.59, "usd": 11.87, "bdt_balance": 712.59, "usd_balance": 11.87}))
    );
    assert_eq!(account["volume"], json!({"bdt": 750.09, "usd": 12.5, "total_payments": 3}));
    assert_eq!(
        server.get("/account/balance").await,
        with_payouts(json!({"bdt_balance": 712.59, "usd_balance": 11.87}))
    );
    let workspace = account["workspace"].as_object().unwrap();
    assert_eq!(workspace.keys().collect::<Vec<_>>(), ["id", "name", "slug", "website", "status"]);
    assert_eq!(
        (&workspace["name"], &workspace["slug"], &workspace["status"]),
        (&json!("Sandbox"), &json!("sandbox"), &json!("active"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apps_list_repeats_the_webhook_url_as_website_url() {
    let server = Server::start();
    assert_eq!(server.get("/account/apps").await, json!([]));
    let workspace = server.get("/account").await["workspace"]["id"].as_str().unwrap().to_owned();
    let id = server.run(&[
        "apps",
        "create",
        "--workspace",
        &workspace,
        "--name",
        "Till",
        "--redirect-uri",
        "https://a.example/back",
        "--webhook-url",
        "https://a.example/hook",
    ]);
    let apps = server.get("/account/apps").await;
    let app = &apps[0];
    assert_eq!(app["id"], id);
    assert_eq!((&app["name"], &app["redirectUris"]), (&json!("Till"), &json!(["https://a.example/back"])));
    assert_eq!((&app["webhookUrl"], &app["websiteUrl"]), (&json!("https://a.example/hook"), &app["webhookUrl"]));
    assert_eq!((&app["status"], &app["isActive"], &app["description"]), (&json!("active"), &json!(true), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_list_has_the_newest_keys_of_the_callers_workspace_and_environment() {
    let server = Server::start();
    let workspace = server.run(&["workspaces", "create", "--name", "Rahim"]);
    let create = |workspace: &str, limits: &[&str]| {
        server.run(&[&["keys", "create", "--workspace", workspace][..], limits].concat())
    };
    let own = create(&workspace, &["--environment", "test"]);
    let app = server.run(&["apps", "create", "--workspace", &workspace, "--name", "Till"]);
    let limits = ["--environment", "test", "--name", "the till", "--scope", "payments:read", "--app", &app];
    let till = create(&workspace, &[&limits[..], &["--expires", "2099-01-01T00:00:00Z"]].concat());
    let live = create(&workspace, &["--environment", "live"]);
    let other = create(&server.run(&["workspaces", "create", "--name", "Karim"]), &["--environment", "test"]);
    let list = async |key: &str| {
        let request = server.keyless(Method::GET, "/api/v1/account/keys").bearer_auth(key);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let listed = list(&own).await;
    let last4 = |key: &str| key[key.len() - 4..].to_owned();
    let fields =
        ["id", "name", "last4", "scopes", "appId", "isCurrent", "createdAt", "lastUsedAt", "expiresAt", "revokedAt"];
    assert_eq!(listed[0].as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    let shown = |key: &Value| {
        json!([key["name"], key["last4"], key["scopes"], key["appId"], key["isCurrent"], key["expiresAt"]])
    };
    assert_eq!(
        listed.as_array().unwrap().iter().map(shown).collect::<Vec<_>>(),
        [
            json!(["the till", last4(&till), ["payments:read"], app, false, "2099-01-01T00:00:00.000Z"]),
            json!([null, last4(&own), null, null, true, null]),
        ]
    );
    for key in [&live, &other] {
        let listed = list(key).await;
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["last4"]), (1, &json!(last4(key))));
    }
    server.run(&["keys", "revoke", listed[0]["id"].as_str().unwrap()]);
    let listed = list(&own).await;
    assert!(listed[0]["revokedAt"].is_string() && listed[1]["revokedAt"].is_null(), "{listed}");
    for _ in 0..100 {
        create(&workspace, &["--environment", "test"]);
    }
    let listed = list(&own).await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 100);
    assert!(listed.iter().all(|key| key["isCurrent"] == false), "the caller's key is older than the newest 100");
}
