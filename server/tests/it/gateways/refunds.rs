//! Refunds through a gateway happen exactly once.

use gateway_fakes::Fault;
use reqwest::Method;
use serde_json::json;

use super::live;

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_succeeds_if_stripe_accepts_it_and_else_returns_422() {
    let live = live().await;
    for (status, is_made) in
        [("succeeded", true), ("pending", true), ("requires_action", true), ("failed", false), ("canceled", false)]
    {
        let id = live.paid(30.0, "USD").await;
        let refund = || async {
            let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r");
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        };
        live.stripe.program().next_refund_is(status);
        let (answered, text) = refund().await;
        assert_eq!(answered, if is_made { 200 } else { 422 }, "{status}: {text}");
        let expected = if is_made { "refunded" } else { "paid" };
        assert_eq!(live.payment(&id).await["rawStatus"], expected, "{status}");
        let is_back =
            || live.stripe.program().books().into_iter().find(|entry| entry.reference == id).unwrap().refunded;
        assert_eq!(is_back(), u32::from(is_made), "{status}");
        if !is_made {
            assert!(text.contains(status), "{text}");
            // A retry with the same key makes another refund.
            assert_eq!(refund().await.0, 200, "{status}");
            assert_eq!((is_back(), &live.payment(&id).await["rawStatus"]), (1, &json!("refunded")), "{status}");
        }
    }
    assert_eq!(live.server.run(&["reviews", "list"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_with_a_lost_gateway_answer_happens_once_and_its_key_replays_it() {
    let live = live().await;
    let id = live.paid(30.0, "USD").await;
    let refund = async |reason: &str| {
        let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r-1");
        request.json(&json!({"reason": reason})).send().await.unwrap()
    };
    live.stripe.faults().next("refund", Fault::DropAfter);
    let lost = refund("damaged").await;
    assert_eq!(lost.status(), 503);
    assert!(lost.headers().contains_key("retry-after"));
    let keyless = live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    assert_eq!(keyless.status(), 409, "another request while the refund is pending");
    let found = refund("damaged").await;
    assert_eq!(found.status(), 200);
    let text = found.text().await.unwrap();
    let replayed = refund("damaged").await;
    assert_eq!(replayed.headers()["idempotent-replayed"], "true");
    assert_eq!(replayed.text().await.unwrap(), text);
    assert_eq!(live.stripe.program().refunds().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_concurrent_refunds_with_one_key_make_one_refund_and_share_its_response() {
    let live = live().await;
    for currency in ["USD", "BDT"] {
        let id = live.paid(30.0, currency).await;
        let refund = || async {
            let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r");
            let answer = request.json(&json!({"reason": "damaged"})).send().await.unwrap();
            let replayed = answer.headers().contains_key("idempotent-replayed");
            (answer.status().as_u16(), replayed, answer.text().await.unwrap())
        };
        let answers = futures_util::future::join_all((0..30).map(|_| refund())).await;
        for (status, _, text) in &answers {
            assert_eq!((*status, text), (200, &answers[0].2), "{currency}");
        }
        assert_eq!(answers.iter().filter(|(_, replayed, _)| !replayed).count(), 1, "{currency}");
    }
    assert_eq!(live.stripe.faults().calls_of("refund"), 1, "Stripe got one refund request");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_refund_the_next_request_with_its_key_retries() {
    let live = live().await;
    let id = live.paid(30.0, "USD").await;
    live.stripe.faults().next("refund", Fault::DropBefore);
    let refund = || async {
        let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r");
        request.send().await.unwrap().status().as_u16()
    };
    let mut answers = futures_util::future::join_all((0..6).map(|_| refund())).await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 200, 200, 200, 200, 503], "one request fails, the next one retries");
    assert_eq!(live.stripe.program().books()[0].refunded, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_finishes_a_refund_after_a_crash() {
    let mut live = live().await;
    let id = live.paid(30.0, "USD").await;
    live.stripe.faults().next("refund", Fault::DropBefore);
    let lost = live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    assert_eq!(lost.status(), 503);
    live.server.crash_and_restart();
    let refunded = live.becomes(&id, "refunded").await;
    assert_eq!(refunded["refund"]["status"], "succeeded");
    assert_eq!(live.stripe.program().books()[0].refunded, 1);
}
