//! What one request contains, and what is stored of its response.

use bytes::Bytes;
use payments_core::{Delivery, DeliveryErrorCode, DeliveryStatus};
use tokio::time::Instant;
use webhook_verify::Verifier;

use super::*;
use crate::delivery::{send_error::Exhausted, sender::ATTEMPT_TIMEOUT};

/// Makes an attempt that an endpoint answers in this way. Also returns how long it took.
async fn attempt(to: &Endpoint, answer: Answer) -> (Result<(), Exhausted>, Delivery, Duration, Vec<Heard>) {
    let shop = Shop::new(move |_| answer.clone());
    let sender = sender_to(&shop, &virtual_time());
    let (begun, mut delivery) = (Instant::now(), ping(1, to).delivery);
    let outcome = sender.attempt(to, &mut delivery).await;
    (outcome, delivery, begun.elapsed(), shop.heard())
}

fn body(parts: &[(u64, &'static str)]) -> Answer {
    let parts =
        parts.iter().map(|(millis, part)| (Duration::from_millis(*millis), Bytes::from_static(part.as_bytes())));
    Answer::Http { after: Duration::from_millis(5), status: 202, parts: parts.collect() }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_signed_with_each_secret_and_names_its_event_and_delivery() {
    let mut to = endpoint(1);
    to.rotate_secret(serde_json::from_str("\"whsec_2\"").unwrap(), 3_600, at(0));
    let (outcome, delivery, _, heard) = attempt(&to, body(&[(1, "tha"), (1, "nks")])).await;
    outcome.unwrap();
    let [request] = heard.try_into().ok().unwrap();
    assert_eq!(request.head.uri.to_string(), "https://shop1.example/hook");
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.header("user-agent").starts_with("payments-server/"));
    assert_eq!(request.header("x-service-event"), "test.ping");
    assert_eq!(request.header("x-service-delivery"), delivery.id.as_str());
    assert_eq!(request.body, delivery.payload.as_str().as_bytes());
    let signature = request.header("x-service-signature");
    assert_eq!((signature.matches("t=").count(), signature.matches("v1=").count()), (1, 2), "{signature}");
    for secret in ["whsec_1", "whsec_2"] {
        let verifier = Verifier::from_secrets([secret]).unwrap();
        verifier.verify_at(signature.as_bytes(), &request.body, at(0).as_unix_seconds()).unwrap();
    }
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Success, 1));
    assert_eq!((delivery.response_status, delivery.response_body.as_deref()), (Some(202), Some("thanks")));
    assert_eq!((delivery.error, delivery.attempt_log), (None, None));
    assert!(delivery.delivered_at.is_some() && delivery.duration_ms.is_some_and(|took| (7..12).contains(&took)));
}

#[tokio::test(start_paused = true)]
async fn a_status_other_than_2xx_is_stored_as_a_failure() {
    let (success, failed) = (DeliveryStatus::Success, DeliveryStatus::Failed);
    for (status, expected) in [(200, &success), (299, &success), (300, &failed), (404, &failed), (500, &failed)] {
        let (outcome, delivery, ..) = attempt(&endpoint(1), Answer::status(status, 1)).await;
        outcome.unwrap();
        assert_eq!((&delivery.status, delivery.response_status), (expected, Some(status)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_with_retries_has_a_log_of_its_attempts() {
    let shop = Shop::new(|_| Answer::status(500, 30));
    let (to, sender) = (with_retries(1), sender_to(&shop, &virtual_time()));
    let mut delivery = ping(1, &to).delivery;
    for attempts in 1..=3 {
        sender.attempt(&to, &mut delivery).await.unwrap();
        assert_eq!(delivery.attempts, attempts);
    }
    // The log goes on even if the endpoint no longer wants retries.
    sender.attempt(&endpoint(1), &mut delivery).await.unwrap();
    let log = delivery.attempt_log.unwrap();
    assert_eq!(log.len(), 4);
    assert!(log.windows(2).all(|two| two[0].attempted_at < two[1].attempted_at));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_does_not_answer_within_8_seconds_has_failed() {
    let (outcome, delivery, took, heard) = attempt(&endpoint(1), Answer::Silence).await;
    outcome.unwrap();
    assert!(ATTEMPT_TIMEOUT <= took && took < ATTEMPT_TIMEOUT + Duration::from_millis(50), "{took:?}");
    assert_eq!((delivery.status, heard.len()), (DeliveryStatus::Failed, 1));
    assert_eq!((delivery.error.unwrap().code, delivery.response_status), (DeliveryErrorCode::Timeout, None));
    assert_eq!(delivery.delivered_at, None);
    let (outcome, delivery, took, _) = attempt(&endpoint(1), Answer::status(200, 7_900)).await;
    outcome.unwrap();
    assert_eq!(delivery.status, DeliveryStatus::Success);
    assert!(took < ATTEMPT_TIMEOUT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_response_with_an_endless_body_counts_and_its_first_kilobyte_is_stored() {
    let (outcome, delivery, took, _) = attempt(&endpoint(1), body(&[(1, "begun"), (60_000, "too late")])).await;
    outcome.unwrap();
    assert!(ATTEMPT_TIMEOUT <= took && took < ATTEMPT_TIMEOUT + Duration::from_millis(50), "{took:?}");
    assert_eq!((delivery.status, delivery.response_body.as_deref()), (DeliveryStatus::Success, Some("begun")));
    const FULL: [&str; 2] = ["0123456789abcdef", "fedcba9876543210"];
    let parts: Vec<_> = (0..64).map(|nth| (1, FULL[nth % 2])).chain([(60_000, "too late")]).collect();
    let (outcome, delivery, took, _) = attempt(&endpoint(1), body(&parts)).await;
    outcome.unwrap();
    assert_eq!(delivery.response_body.unwrap(), FULL.concat().repeat(32));
    assert!(took < Duration::from_secs(1), "nobody waits for the rest: {took:?}");
    let parts: Vec<_> =
        (0..63).map(|nth| (1, FULL[nth % 2])).chain([(1, "0123456789abcdefgh"), (60_000, "too late")]).collect();
    let (outcome, delivery, ..) = attempt(&endpoint(1), body(&parts)).await;
    outcome.unwrap();
    assert_eq!(delivery.response_body.unwrap().len(), 1_024);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_attempts_outcome_is_replaced() {
    let to = endpoint(1);
    let answers = [Answer::status(200, 1), Answer::Closes];
    let next = AtomicU64::new(0);
    let shop = Shop::new(move |_| answers[usize::try_from(next.fetch_add(1, Ordering::SeqCst)).unwrap()].clone());
    let (sender, mut delivery) = (sender_to(&shop, &virtual_time()), ping(1, &to).delivery);
    sender.attempt(&to, &mut delivery).await.unwrap();
    sender.attempt(&to, &mut delivery).await.unwrap();
    assert_eq!((delivery.response_status, &delivery.response_body, delivery.delivered_at), (None, &None, None));
    assert_eq!((delivery.error.unwrap().code, delivery.attempts), (DeliveryErrorCode::ConnectionClosed, 2));
}

#[tokio::test(start_paused = true)]
async fn an_address_of_this_machine_gets_no_request() {
    let mut local = endpoint(1);
    local.endpoint.url = "https://127.0.0.1/hook".parse().unwrap();
    let (outcome, delivery, _, heard) = attempt(&local, Answer::status(200, 1)).await;
    outcome.unwrap();
    assert_eq!((delivery.error.unwrap().code, heard.len()), (DeliveryErrorCode::AddressNotAllowed, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_this_server_cannot_send_is_no_attempt() {
    let (outcome, delivery, _, heard) = attempt(&with_retries(1), Answer::NotSent).await;
    assert_eq!(outcome.unwrap_err().to_string(), "this server is out of file descriptors and cannot send webhooks");
    assert_eq!((delivery.status, delivery.attempts, heard.len()), (DeliveryStatus::Pending, 0, 0));
    assert_eq!(delivery.attempt_log, None);
}

#[tokio::test(start_paused = true)]
async fn a_test_ping_waits_two_seconds_for_a_permit() {
    let shop = Shop::new(|_| Answer::status(200, 3_000));
    let sender = sender_to(&shop, &virtual_time());
    let (to, begun) = (endpoint(1), Instant::now());
    let (mut first, mut second) = (ping(1, &to).delivery, ping(2, &to).delivery);
    let (first_sent, second_sent) = tokio::join!(sender.ping(&to, &mut first), async {
        after_millis(10).await;
        let outcome = sender.ping(&to, &mut second).await;
        (outcome, begun.elapsed())
    });
    first_sent.unwrap();
    let (outcome, took) = second_sent;
    assert_eq!(outcome.unwrap_err().to_string(), "this server is out of slots for test pings and cannot send webhooks");
    assert!((2_000..2_100).contains(&took.as_millis()), "{took:?}");
    assert_eq!((first.status, shop.heard().len()), (DeliveryStatus::Success, 1));
    sender.ping(&to, &mut second).await.unwrap();
    assert_eq!(second.status, DeliveryStatus::Success, "the permit is free again");
}
