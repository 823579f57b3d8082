//! Refunds by people: the role support has a cap.

use gateway_fakes::{Running, oidc::Oidc};
use reqwest::Method;
use serde_json::{Value, json};

use super::{GROUPS, arguments, as_person, sign_in, texts};
use crate::live::Live;

#[tokio::test(flavor = "multi_thread")]
async fn support_refunds_up_to_the_cap_of_a_payment_and_finance_without_one() {
    let provider = Running::start(Oidc::new(), "127.0.0.1:0").await.unwrap();
    let (mut arguments, _secret) = arguments(&provider, &GROUPS);
    arguments.extend(["--support-refund-cap".to_owned(), "BDT=100".to_owned()]);
    let live = Live::start_with("", &texts(&arguments)).await;
    let account = live.request(Method::GET, "/account").send().await.unwrap().json::<Value>().await.unwrap();
    let workspace = account["workspace"]["id"].as_str().unwrap();
    let mut sessions = Vec::new();
    for group in ["viewers", "helpdesk", "accounts"] {
        provider.program().be(group, &[group]);
        sessions.push(sign_in(&live.server).await);
    }
    let [viewer, support, finance] = &sessions[..] else { panic!("three people") };
    let (taka, dollars) = (live.paid(500.0, "BDT").await, live.paid(50.0, "USD").await);
    let refund = async |session: &str, payment: &str, key: &str, body: Value| -> (u16, Value) {
        let request = live.server.keyless(Method::POST, &format!("/api/v1/payments/{payment}/refund"));
        let request = as_person(request, session, workspace, "live").header("idempotency-key", key).json(&body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    for (session, payment, key, body, expected) in [
        (viewer, &taka, "1", json!({"amount": 1}), Err("permission_missing")),
        // The whole, more than the cap, and a currency without a cap.
        (support, &taka, "2", json!({}), Err("refund_cap_exceeded")),
        (support, &taka, "3", json!({"amount": 100.01}), Err("refund_cap_exceeded")),
        (support, &dollars, "4", json!({"amount": 1}), Err("refund_cap_exceeded")),
        // Parts count together.
        (support, &taka, "5", json!({"amount": 60}), Ok(1)),
        (support, &taka, "6", json!({"amount": 41}), Err("refund_cap_exceeded")),
        (support, &taka, "7", json!({"amount": 40}), Ok(2)),
        (support, &taka, "5", json!({"amount": 60}), Ok(1)),
        (support, &taka, "8", json!({"amount": 0.01}), Err("refund_cap_exceeded")),
        (finance, &dollars, "9", json!({"amount": 20}), Ok(1)),
        (finance, &taka, "10", json!({}), Ok(3)),
    ] {
        let (status, answer) = refund(session, payment, key, body.clone()).await;
        match expected {
            Ok(refunds) => assert_eq!((status, answer["refunds"].as_array().unwrap().len()), (200, refunds), "{key}"),
            Err(code) => assert_eq!((status, &answer["code"]), (403, &json!(code)), "{key}: {answer}"),
        }
    }
    assert_eq!(live.payment(&taka).await["rawStatus"], "refunded");
}
