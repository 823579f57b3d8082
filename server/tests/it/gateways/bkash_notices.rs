//! Notices of bKash, signed by Amazon's message service.

use gateway_fakes::{
    Fault,
    bkash::{self, CERTIFICATE_PATH, NOTICE_TOPIC},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::live::Live;

async fn live(settings: &str) -> (Live, String) {
    let live =
        Live::start_by(bkash::Bkash::new(), crate::engine::Engine::Directory, "gateway-timeout = 1", settings, &[]);
    let live = live.await;
    live.bkash.program().set_certificate_url(&format!("{}{CERTIFICATE_PATH}", live.bkash.url()));
    let address = format!("{}/gateways/bkash/webhook", live.server.url);
    (live, address)
}

async fn send(live: &Live, body: String) -> (StatusCode, Value) {
    let request = live.server.keyless(Method::POST, "/gateways/bkash/webhook").body(body);
    let answer = request.header("content-type", "text/plain; charset=UTF-8").send().await.unwrap();
    let status = answer.status();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_of_the_topic_pays_a_payment_whose_customer_does_not_come_back() {
    let (live, address) = live(&format!("notice_topic = '{NOTICE_TOPIC}'")).await;
    live.bkash.program().send_notices_to(&address, 2);
    let id = live.create(20.0, "BDT").await;
    let (_, attempt) = live.pay(&id).await;
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    // The money moves, and every answer that would tell it is lost.
    live.bkash.faults().next("execute", Fault::DropAfter);
    live.bkash.faults().next("status", Fault::DropBefore);
    live.come_back(&back).await;
    live.becomes(&id, "paid").await;
    let notice = live.bkash.program().notice(&attempt).unwrap();
    assert_eq!(send(&live, notice.clone()).await.0, StatusCode::OK, "again");

    let mut other: Value = serde_json::from_str(&notice).unwrap();
    for (field, value, why) in [
        ("TopicArn", "arn:aws:sns:ap-southeast-1:1:other", "another topic"),
        ("MessageId", "1", "does not fit"),
        ("SigningCertURL", "https://sns.evil.example/a.pem", "not at Amazon"),
        ("Type", "UnsubscribeConfirmation", "does not fit"),
    ] {
        let true_value = std::mem::replace(&mut other[field], json!(value));
        let (status, answer) = send(&live, other.to_string()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {answer}");
        assert!(answer["message"].to_string().contains(why), "{field}: {answer}");
        other[field] = true_value;
    }
    assert_eq!(send(&live, "{}".into()).await.0, StatusCode::BAD_REQUEST);
    assert!(live.server.log().contains("what=\"certificate\""));
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_topic_no_notice_counts() {
    let (live, _) = live("").await;
    let id = live.create(20.0, "BDT").await;
    let (_, attempt) = live.pay(&id).await;
    live.bkash.program().take(&attempt);
    let (status, answer) = send(&live, live.bkash.program().notice(&attempt).unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer["message"].to_string().contains("PAYMENTS_BKASH_NOTICE_TOPIC is not set"), "{answer}");
}
