//! Restricted keys, error codes and the log of requests.

use std::time::{Duration, SystemTime};

use payments_client::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{super::world::World, report::Report, shop::Shop};
use crate::server::{SANDBOX_KEY, eventually, payment_of};

pub(super) async fn restricted_keys(world: &World, report: &mut Report) {
    let addition = "Restricted keys";
    let server = world.server();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Till"]);
    let key = |limits: &[&str]| {
        let create = ["keys", "create", "--workspace", &workspace, "--environment", "test"];
        server.run_for_line(&[&create, limits].concat())
    };
    let (plain, till) = (key(&[]), key(&["--scope", "payments:read,webhooks:read", "--name", "the till"]));
    let body = json!({"url": world.receiver.url(), "events": "*"});
    let (_, endpoint) = world.ask(&plain, Method::POST, "/webhooks", Some(&body)).await;
    let payment = payment_of(&json!(5));
    let mut statuses = vec![world.ask(&plain, Method::POST, "/payments", Some(&payment)).await.0];
    for path in ["/payments", "/account", "/account/balance", "/account/apps", "/webhooks", "/webhooks/deliveries"] {
        statuses.push(world.ask(&plain, Method::GET, path, None).await.0);
    }
    let may_all = statuses[0] == 201 && statuses[1..].iter().all(|status| *status == 200);
    report.unnoticed(addition, "a key without scopes may do everything", may_all, &statuses);
    let (_, listed) = world.ask(&plain, Method::GET, "/webhooks", None).await;
    report.unnoticed(addition, "and sees secrets", listed[0]["secret"] == endpoint["secret"], &listed[0]["id"]);

    let (status, refused) = world.ask(&till, Method::POST, "/payments", Some(&payment)).await;
    let names_it =
        refused["message"].as_str().is_some_and(|message| message.ends_with("lacks the scope payments:write"));
    report.documented(addition, "a refusal names the missing scope", status == 403 && names_it, &refused);
    let (status, _) = world.ask(&till, Method::GET, "/payments", None).await;
    report.documented(addition, "what the scope names is allowed", status == 200, &status);
    let (_, masked) = world.ask(&till, Method::GET, "/webhooks", None).await;
    report.documented(addition, "secrets are masked", masked[0]["secret"] == "whsec_********", &masked[0]["id"]);

    let soon = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + Duration::from_secs(3);
    let soon = Timestamp::from_millis(i64::try_from(soon.as_millis()).unwrap()).unwrap().to_string();
    let short = key(&["--expires", &soon]);
    let expired = eventually("the key to expire", async || {
        let (status, answer) = world.ask(&short, Method::GET, "/payments", None).await;
        (status != 200).then_some((status, answer))
    })
    .await;
    let is_expired = expired.0 == 401 && expired.1["code"] == "api_key_expired";
    report.documented(addition, "a key that expired", is_expired, &expired);
}

pub(super) async fn list_of_keys(world: &World, report: &mut Report) {
    let addition = "List of keys";
    let shop = Shop::open(world).await;
    let (_, account) = world.ask(&shop.key, Method::GET, "/account", None).await;
    let fields: Vec<_> = account.as_object().unwrap().keys().map(String::as_str).collect();
    report.unnoticed(addition, "the account has no keys", fields == ["workspace", "balance", "volume"], &fields);
    let keys = shop.get("/account/keys").await;
    let own = keys.as_array().unwrap().iter().find(|key| key["isCurrent"] == true);
    let is_own = own.is_some_and(|own| own["last4"] == shop.key[shop.key.len() - 4..] && own["scopes"].is_null());
    report.documented(addition, "the caller's key by its last four characters", is_own, &keys);
    report.documented(addition, "without the keys themselves", !keys.to_string().contains(&shop.key), &keys);
}

pub(super) async fn error_codes(world: &World, report: &mut Report) {
    let addition = "Error codes";
    let completed = Shop::open(world).await;
    let refund = format!("/payments/{}/refund", completed.paid().await["id"].as_str().unwrap());
    let wrong = json!({"amount": 0, "success_url": "/paid", "cancel_url": "https://shop.example/cart"});
    for (key, path, body, status, code) in [
        ("sk_test_unknown", "/payments", json!({}), 401, "unauthorized"),
        (SANDBOX_KEY, "/webhooks/wh_0/test", json!({}), 404, "webhook_endpoint_not_found"),
        (&*completed.key, &*refund, json!({}), 409, "payment_not_refundable"),
        (SANDBOX_KEY, "/payments", wrong.clone(), 400, "validation_failed"),
    ] {
        let (found, answer) = world.ask(key, Method::POST, path, Some(&body)).await;
        let reason = StatusCode::from_u16(status).unwrap().canonical_reason().unwrap();
        let message = &answer["message"];
        let is_message = if status == 400 { message[0].is_string() } else { message.is_string() };
        let is_plain = found == status && answer["statusCode"] == status && answer["error"] == reason && is_message;
        report.unnoticed(addition, code, is_plain, &answer);
        report.documented(addition, code, answer["code"] == code, &answer);
    }
    let (_, answer) = world.ask(SANDBOX_KEY, Method::POST, "/payments", Some(&wrong)).await;
    let field =
        |name: &str, code: &str, nth: usize| json!({"field": name, "code": code, "message": answer["message"][nth]});
    let fields = json!([field("amount", "amount_invalid", 0), field("success_url", "url_invalid", 1)]);
    report.documented(addition, "each invalid field has a code", answer["fields"] == fields, &answer);
}

pub(super) async fn request_log(world: &World, report: &mut Report) {
    let addition = "Request log";
    let shop = Shop::open(world).await;
    let mut body = payment_of(&json!(5));
    body["customer"] = json!({"email": "asha@shop.example"});
    let request = world.server().keyless(Method::POST, "/api/v1/payments").bearer_auth(&shop.key).json(&body);
    let answer = request.send().await.unwrap();
    let mut headers: Vec<_> = answer.headers().keys().map(|name| name.as_str().to_owned()).collect();
    headers.sort_unstable();
    let expected = ["cache-control", "content-length", "content-type", "date", "x-request-id"];
    report.unnoticed(addition, "a response has no header of it", headers == expected, &headers);
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    shop.get("/payments/pay_0").await;
    let logged = eventually("the requests to be logged", async || {
        let list = shop.get("/requests").await;
        (list["items"][0]["path"] == "/api/v1/payments/pay_0").then_some(list)
    })
    .await;
    let created: Value = logged["items"][1].clone();
    let is_named = created["id"] == id.as_str() && created["method"] == "POST" && created["status"] == 201;
    let is_keyed = created["keyLast4"] == shop.key[shop.key.len() - 4..] && created["error"].is_null();
    report.documented(addition, "a request by its X-Request-Id", is_named && is_keyed, &created);
    report.documented(addition, "without bodies", !logged.to_string().contains("asha"), &logged);
    let failed = shop.get("/requests?failed=true").await;
    let is_one = failed["items"] == json!([logged["items"][0]]) && failed["items"][0]["error"] == "payment_not_found";
    report.documented(addition, "those that failed", is_one, &failed);
}
