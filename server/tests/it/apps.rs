//! Developer apps: the app of a payment comes from its key and decides which endpoints get its events.

use payments_client::{Client, CreateWebhook, Subscription};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{Server, eventually, payment_of},
};

fn workspace(server: &Server) -> String {
    server.run(&["workspaces", "create", "--name", "Rahim"])
}

fn app(server: &Server, workspace: &str, name: &str) -> String {
    server.run(&["apps", "create", "--workspace", workspace, "--name", name])
}

fn key(server: &Server, workspace: &str, app: Option<&str>) -> String {
    let mut arguments = vec!["keys", "create", "--workspace", workspace, "--environment", "test"];
    arguments.extend(app.iter().flat_map(|app| ["--app", app]));
    server.run(&arguments)
}

async fn create(server: &Server, key: &str) -> Value {
    let request = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(key);
    request.json(&payment_of(&json!(5))).send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_an_endpoint_for_an_unknown_or_foreign_app_returns_404() {
    let server = Server::start();
    let (own, other) = (workspace(&server), workspace(&server));
    let (key, foreign) = (key(&server, &own, None), app(&server, &other, "Theirs"));
    for id in ["app_unknown", &foreign] {
        let body = json!({"url": "http://127.0.0.1:9/hook", "events": "*", "appId": id});
        let request = server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(&key).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{id}");
        assert_eq!(answer.json::<Value>().await.unwrap()["message"], "no developer app has this id");
    }
    let list = server.keyless(Method::GET, "/api/v1/webhooks").bearer_auth(&key).send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_endpoint_receives_events_of_its_app_and_of_payments_without_an_app() {
    let mut server = Server::start();
    let rahim = workspace(&server);
    let (till, kiosk) = (app(&server, &rahim, "Till"), app(&server, &rahim, "Kiosk"));
    let keys = [key(&server, &rahim, None), key(&server, &rahim, Some(&till)), key(&server, &rahim, Some(&kiosk))];
    let client = Client::builder(&keys[0]).base_url(&server.url).build().unwrap();
    let mut receivers = Vec::new();
    for app in [None, Some(&till), Some(&kiosk)] {
        let receiver = Receiver::ok().await;
        let mut params = CreateWebhook::new(receiver.url(), Subscription::All);
        params.app_id = app.map(|id| id.parse().unwrap());
        let endpoint = client.webhooks().create(params).await.unwrap();
        receivers.push((receiver, endpoint.secret.reveal().to_owned()));
    }
    server.crash_and_restart();

    let mut ids = Vec::new();
    for (key, app, name) in [(0, None, None), (1, Some(&till), Some("Till")), (2, Some(&kiosk), Some("Kiosk"))] {
        let payment = create(&server, &keys[key]).await;
        assert_eq!(payment["appId"], json!(app));
        let id = payment["id"].as_str().unwrap().to_owned();
        let session = server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap();
        assert_eq!(session.json::<Value>().await.unwrap()["appName"], json!(name));
        ids.push(id);
    }
    // Fan-out is complete before the list is read.
    let log = server.keyless(Method::GET, "/api/v1/webhooks/deliveries").bearer_auth(&keys[0]).send().await.unwrap();
    assert_eq!(log.json::<Value>().await.unwrap()["total"], 3 + 2 + 2);
    for ((receiver, secret), indices) in receivers.iter().zip([vec![0, 1, 2], vec![0, 1], vec![0, 2]]) {
        let expected: Vec<&str> = indices.iter().map(|index| ids[*index].as_str()).collect();
        eventually("the events", || async { (receiver.received().len() == expected.len()).then_some(()) }).await;
        let received = receiver.received();
        let mut found: Vec<String> = received
            .iter()
            .map(|received| received.verified_with(secret).payment().unwrap().id.as_str().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_keeps_its_app_through_rotation_and_keys_list_shows_the_app() {
    let server = Server::start();
    let (own, other) = (workspace(&server), workspace(&server));
    let (till, foreign) = (app(&server, &own, "Till"), app(&server, &other, "Theirs"));
    for id in ["app_unknown", "", &foreign] {
        let refused = server.try_run(&["keys", "create", "--workspace", &own, "--environment", "test", "--app", id]);
        assert!(!refused.status.success());
        assert!(String::from_utf8_lossy(&refused.stderr).contains("no developer app has this id"), "{id}");
    }
    key(&server, &own, Some(&till));
    let rows = || {
        let listed: Value = serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap();
        let rows = listed["keys"].as_array().unwrap().clone();
        rows.into_iter().filter(|row| row["workspace"] == own.as_str()).collect::<Vec<_>>()
    };
    let bound = rows().remove(0);
    assert_eq!(bound["app"], till);
    let rotated = server.run(&["keys", "rotate", bound["id"].as_str().unwrap()]);
    assert_eq!(create(&server, &rotated).await["appId"], till);
    assert!(rows().iter().all(|row| row["app"] == till));
    assert!(server.run(&["keys", "list"]).contains(&format!(" {till}")));
}
