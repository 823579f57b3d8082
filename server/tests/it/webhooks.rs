//! Webhook endpoints: removal, test pings and signature verification.

use payments_client::{
    Amount, EventKind,
    webhook::{Secret, Signer},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    document,
    receiver::{Receiver, Reply},
    server::{Server, payment_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_endpoint_leaves_the_list_and_receives_no_events() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let removed = server.request(Method::DELETE, &format!("/webhooks/{id}")).send().await.unwrap();
    assert_eq!(removed.status(), StatusCode::OK);
    assert_eq!(removed.json::<Value>().await.unwrap(), json!({"success": true, "message": "Webhook endpoint removed"}));
    assert!(server.client().webhooks().list().await.unwrap().is_empty());
    let again = server.request(Method::DELETE, &format!("/webhooks/{id}")).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
    server.request(Method::POST, "/payments").json(&payment_of(&json!(1))).send().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(receiver.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_ping_returns_its_delivery() {
    let mut server = Server::start();
    let receiver = Receiver::start(Reply::Status(StatusCode::ACCEPTED, "pong".into())).await;
    let secret = receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let ping = |server: &Server| {
        server.request(Method::POST, &format!("/webhooks/{id}/test")).header("idempotency-key", "ping-1").send()
    };
    let first = ping(&server).await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    let first = first.text().await.unwrap();
    let delivery: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&delivery["event"], &delivery["statusCode"]), (&json!("test.ping"), &json!(202)));
    assert_eq!((&delivery["responseBody"], &delivery["status"]), (&json!("pong"), &json!("success")));
    let received = receiver.received();
    let event = received[0].verified_with(&secret);
    assert_eq!(event.kind(), &EventKind::TestPing);
    let data: Value = event.data().parse().unwrap();
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["event", "timestamp", "developer_id", "message"]);

    server.crash_and_restart();
    let replayed = ping(&server).await.unwrap();
    assert_eq!(replayed.headers()["idempotent-replayed"], "true");
    assert_eq!(replayed.text().await.unwrap(), first);
    assert_eq!(receiver.received().len(), 1);
    let log = server.get("/webhooks/deliveries").await;
    assert_eq!((&log["total"], &log["items"][0]["id"]), (&json!(1), &delivery["id"]));
    let unknown = server.request(Method::POST, "/webhooks/wh_unknown/test").send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_of_any_kind_is_an_example_marked_as_a_test() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let kinds = [
        (EventKind::PaymentCreated, "created", 0),
        (EventKind::PaymentCompleted, "paid", 0),
        (EventKind::PaymentPartiallyRefunded, "paid", 250),
        (EventKind::PaymentRefunded, "refunded", 750),
    ];
    for (nth, (kind, status, refunded)) in kinds.into_iter().enumerate() {
        let delivery = server.client().webhooks().test_event(&id, kind.clone()).await.unwrap().unwrap();
        assert_eq!((&delivery.event, delivery.response_status), (&kind, Some(200)));
        let event = receiver.received()[nth].verified_with(&secret);
        let payment = event.payment().unwrap();
        assert_eq!((event.kind(), payment.raw_status.as_str()), (&kind, status));
        assert_eq!(payment.amount_refunded(), Amount::from_minor(100 * refunded));
        assert!(payment.is_simulated && payment.metadata.as_str() == r#"{"test":true}"#, "{payment:?}");
        let reason = payment.unknown.get("refund_reason").map(|reason| reason.as_str().to_owned());
        assert_eq!(reason.is_some(), refunded > 0, "{payment:?}");
        let missing = server.request(Method::GET, &format!("/payments/{}", payment.id)).send().await.unwrap();
        assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    }
    let unknown = server.request(Method::POST, &format!("/webhooks/{id}/test")).json(&json!({"event": "payment.lost"}));
    assert_eq!(unknown.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    assert_eq!((server.get("/payments").await["total"].clone(), receiver.received().len()), (json!(0), 4));
    server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_of_a_payout_has_an_example_payout() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let (document, schema) = (document::closed(), json!({"$ref": "#/components/schemas/Payout"}));
    let kinds: Vec<_> = EventKind::KNOWN.iter().filter(|kind| kind.as_str().starts_with("payout.")).collect();
    for (nth, kind) in kinds.iter().enumerate() {
        server.client().webhooks().test_event(&id, (*kind).clone()).await.unwrap().unwrap();
        let event: Value = serde_json::from_slice(&receiver.received()[nth].body).unwrap();
        document::fits(&document, &schema, &event["data"]).unwrap();
        let status = kind.as_str().replace("payout.", "").replace("created", "requested");
        assert_eq!((&event["event"], &event["data"]["status"]), (&json!(kind.as_str()), &json!(status)));
    }
    assert_eq!(kinds.len(), 6);
    assert_eq!(server.get("/payouts").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn signature_verification_needs_no_key_and_reports_each_reason() {
    let server = Server::start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let sign = |time| Signer::new(Secret::new("whsec_a").unwrap()).sign_at(b"{}", time).as_str().to_owned();
    let verify = |payload: &str, signature: &str, secret: &str, tolerance: Option<u64>| {
        let mut body = json!({"payload": payload, "signature": signature, "secret": secret});
        if let Some(tolerance) = tolerance {
            body["tolerance"] = tolerance.into();
        }
        let request = server.keyless(Method::POST, "/api/v1/webhooks/verify").json(&body);
        async move {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            answer.json::<Value>().await.unwrap()
        }
    };
    assert_eq!(verify("{}", &sign(now), "whsec_a", None).await, json!({"valid": true, "timestamp": now}));
    assert_eq!(verify("{}", &sign(5), "whsec_a", Some(0)).await, json!({"valid": true, "timestamp": 5}));
    for (payload, signature, secret, reason) in [
        ("{}", "nonsense", "", "missing_secret"),
        ("{}", "nonsense", "whsec_a", "malformed_header"),
        ("[]", &sign(5), "whsec_a", "timestamp_outside_tolerance"),
        ("[]", &sign(now), "whsec_a", "signature_mismatch"),
        ("{}", &sign(now), "whsec_b", "signature_mismatch"),
    ] {
        assert_eq!(verify(payload, signature, secret, None).await, json!({"valid": false, "reason": reason}));
    }
    let bad = server.keyless(Method::POST, "/api/v1/webhooks/verify").json(&json!({"payload": 1, "tolerance": -1}));
    let bad: Value = bad.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        bad["message"],
        json!([
            "payload must be a string",
            "signature must be given",
            "secret must be given",
            "tolerance must be a whole number of seconds, 0 or more"
        ])
    );
}
