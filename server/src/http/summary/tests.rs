use payments_core::{Payment, RANDOM_BYTES, RefundId, Slot, SummaryTopic::Next};
use serde_json::{Value as Json, json};

use super::*;
use crate::domain::{GatewayName, ManualReview, PendingRefund, Session, new_attempt, new_session};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000).unwrap()
}

/// A payment of ৳100.00 whose page closes at 00:01 UTC, 06:01 in Dhaka, on 1 January 1970, and a change of it.
fn session(change: impl FnOnce(&mut Session)) -> Session {
    let mut session = new_session();
    change(&mut session);
    session
}

/// The payment with fields of its JSON replaced.
fn with(session: &mut Session, fields: Json) {
    let mut payment = serde_json::to_value(&session.payment).unwrap();
    fields.as_object().unwrap().iter().for_each(|(name, value)| payment[name] = value.clone());
    session.payment = serde_json::from_value::<Payment>(payment).unwrap();
}

fn tried(session: &mut Session, failure: Option<&str>) {
    session.record(at(5), TimelineKind::SentToGateway, "sent");
    session.attempt = Some(GatewayAttempt { failure: failure.map(str::to_owned), ..new_attempt("a") });
}

fn paid(session: &mut Session) {
    tried(session, None);
    session.attempt.as_mut().unwrap().transaction = Some("TRX9".into());
    with(session, json!({"status": "completed", "rawStatus": "paid", "paid_at": at(20)}));
}

fn refund(amount: u32, status: &str) -> Json {
    json!({"id": format!("ref_{amount}"), "amount": amount, "currency": "BDT", "reason": null, "status": status,
        "requiresManualSettlement": true, "createdAt": at(40), "settledAt": null, "failureReason": "no such wallet"})
}

fn dispute(status: &str) -> Json {
    json!({"id": "dsp_1", "amount": 100, "currency": "BDT", "status": status, "reason": "fraudulent",
        "evidenceDueBy": at(86_400), "openedAt": at(50), "amountWithdrawn": 0, "amountReinstated": 0})
}

fn delivery(status: &str, answer: Json, next: Option<i64>) -> Outgoing {
    let error = json!({"code": "timeout", "message": "no answer"});
    let delivery = json!({"id": "del_1", "webhookId": "wh_1", "developerId": "dev_1", "event": "payment.completed",
        "payload": {}, "responseStatus": answer, "responseBody": null, "durationMs": 1,
        "error": if answer.is_null() { error } else { Json::Null }, "attempts": 2, "status": status,
        "deliveredAt": null, "createdAt": at(21), "nextAttemptAt": next.map(at)});
    serde_json::from_value(json!({"environment": "live", "delivery": delivery})).unwrap()
}

fn told(session: Session, deliveries: Vec<Outgoing>, now: i64) -> Vec<SummaryLine> {
    summary(&Told { session, deliveries, now: at(now), refund_days: 3 }, |_| "bKash")
}

/// The sentences about a topic, in English.
fn about(topic: SummaryTopic, lines: &[SummaryLine]) -> String {
    lines.iter().filter(|it| it.topic == topic).map(|it| it.en.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_state_of_a_payment_says_what_the_customer_did_what_the_gateway_said_and_what_to_do_now() {
    let review = |it: &mut Session| {
        paid(it);
        it.review = Some(ManualReview { what: "another amount".into(), found_at: at(30), resolved: None });
    };
    let failed_twice = |it: &mut Session| {
        tried(it, Some("Insufficient Balance"));
        it.end_attempt(at(6));
        tried(it, Some("Wrong PIN"));
        it.end_attempt(at(9));
        with(it, json!({"rawStatus": "pending"}));
    };
    type Case<'c> = (&'c str, Session, i64, [&'c str; 3]);
    let cases: Vec<Case<'_>> = vec![
        ("new", session(|_| ()), 1, ["has not chosen a way to pay yet", "", "can still pay on the payment page"]),
        (
            "expired untried",
            session(|it| with(it, json!({"status": "expired", "rawStatus": "expired"}))),
            99,
            [
                "chose no way to pay before the payment page closed on 1 January 1970, 06:01 (Dhaka time)",
                "",
                "make a new payment",
            ],
        ),
        (
            "left",
            session(|it| with(it, json!({"status": "cancelled", "rawStatus": "cancelled"}))),
            9,
            ["went back to the shop without paying", "", "make a new payment"],
        ),
        (
            "sent",
            session(|it| {
                tried(it, None);
                it.check_at = Some(at(40));
                with(it, json!({"rawStatus": "processing"}));
            }),
            9,
            [
                "chose bKash and was sent there",
                "has not confirmed any money yet",
                "we ask bKash again on 1 January 1970, 06:00",
            ],
        ),
        (
            "silent",
            session(|it| {
                tried(it, None);
                it.attempt.as_mut().unwrap().silent_since = Some(at(8));
                with(it, json!({"rawStatus": "processing"}));
            }),
            9,
            ["chose bKash", "has not answered our questions since", "we are asking bKash now"],
        ),
        (
            "failed, open",
            session(failed_twice),
            20,
            [
                "tried 2 times, last at bKash",
                "bKash refused the payment: “Wrong PIN”.",
                "try again on the same payment page",
            ],
        ),
        (
            "failed, over",
            session(|it| {
                failed_twice(it);
                with(it, json!({"status": "failed", "rawStatus": "failed"}));
            }),
            99,
            ["tried 2 times", "refused the payment: “Wrong PIN”. We ask bKash again on", "make a new payment"],
        ),
        (
            "cancelled there",
            session(|it| {
                tried(it, None);
                with(it, json!({"status": "cancelled", "rawStatus": "cancelled"}));
            }),
            9,
            ["chose bKash", "cancelled, and bKash took no money", "make a new payment"],
        ),
        (
            "paid",
            session(paid),
            30,
            [
                "chose bKash",
                "confirmed ৳100.00 on 1 January 1970, 06:00 (Dhaka time): transaction TRX9",
                "Deliver the order",
            ],
        ),
        (
            "review",
            session(review),
            31,
            ["chose bKash", "does not fit this payment: “another amount”", "counts as paid"],
        ),
    ];
    for (state, session, now, [customer, gateway, next]) in cases {
        let lines = told(session, vec![], now);
        for (topic, expected) in [(Customer, customer), (Gateway, gateway), (Next, next)] {
            let said = about(topic.clone(), &lines);
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{state}, {topic}: {said}");
        }
        assert_eq!(lines.iter().filter(|it| it.topic == Next).count(), 1, "{state}: one thing to do");
        for SummaryLine { en, bn, .. } in &lines {
            assert!(!format!("{en}{bn}").contains(['{', '}']), "{state}: {en} {bn}");
            assert!(bn.chars().any(|it| ('\u{980}'..='\u{9ff}').contains(&it)), "{state}: {bn}");
        }
    }
}

#[test]
fn refunds_and_disputes_say_what_is_left_where_the_money_is_and_what_to_do() {
    let pending = |it: &mut Session| {
        let id = RefundId::new(Slot::FIRST, at(45), [1; RANDOM_BYTES]);
        it.pending_refund = Some(PendingRefund {
            id,
            amount: None,
            reason: None,
            request: None,
            tries: 0,
            is_unsent: false,
            reference: None,
        });
    };
    for (fields, money, next) in [
        (
            json!({"refunds": [refund(30, "succeeded")]}),
            "৳30.00 of ৳100.00 went into refunds; ৳70.00 can still be refunded. The refund of ৳30.00 was sent on",
            "Deliver the order",
        ),
        (
            json!({"refunds": [refund(30, "pending_settlement")]}),
            "by hand. It was asked for on 1 January 1970, 06:00 (Dhaka time), and is due by 4 January",
            "on its way back to the customer since 1 January",
        ),
        (
            json!({"refunds": [refund(30, "pending")]}),
            "bKash has been sending the refund of ৳30.00 since",
            "on its way back",
        ),
        (
            json!({"refunds": [refund(30, "failed")]}),
            "The refund of ৳30.00 failed on 1 January 1970, 06:00 (Dhaka time): “no such wallet”.",
            "Refund ৳30.00 once more",
        ),
        (
            json!({"refunds": [refund(100, "succeeded")], "status": "refunded", "rawStatus": "refunded"}),
            "৳0.00 can still be refunded",
            "the whole amount went back",
        ),
        (
            json!({"disputes": [dispute("needs_response")]}),
            "told the bank that ৳100.00 should not have been charged (“fraudulent”)",
            "by 2 January 1970, 06:00",
        ),
        (json!({"disputes": [dispute("under_review")]}), "told the bank", "the bank decides"),
        (json!({"disputes": [dispute("won")]}), "decided for the shop", "Deliver the order"),
        (json!({"disputes": [dispute("lost")]}), "decided for the customer", "the bank gave the money back"),
    ] {
        let lines = told(
            session(|it| {
                paid(it);
                with(it, fields.clone());
            }),
            vec![],
            60,
        );
        let (said, to_do) = (about(Money, &lines), about(Next, &lines));
        assert!(said.contains(money) && to_do.contains(next), "{fields}: {said} {to_do}");
    }
    let lines = told(session(|it| (paid(it), pending(it)).0), vec![], 60);
    assert!(
        about(Money, &lines).contains("asked bKash for a refund") && about(Next, &lines).contains("on its way back")
    );
}

#[test]
fn the_shops_server_is_quoted_and_a_failing_endpoint_is_to_be_fixed() {
    for (deliveries, shop, next) in [
        (vec![], "We sent the shop's server nothing", "Deliver the order"),
        (vec![delivery("success", json!(200), None)], "payment.completed, and it answered 200 on", "Deliver the order"),
        (
            vec![delivery("failed", json!(500), None)],
            "answered 500 (attempts: 2). We do not try again",
            "which answered 500, then send payment.completed again",
        ),
        (
            vec![delivery("pending", Json::Null, Some(90))],
            "answered timeout (attempts: 2). We try again on 1 January 1970, 06:01",
            "Fix your endpoint, which answered timeout",
        ),
    ] {
        let lines = told(session(paid), deliveries, 30);
        let (said, to_do) = (about(Shop, &lines), about(Next, &lines));
        assert!(said.contains(shop) && to_do.contains(next), "{said} {to_do}");
    }
    // A later success at the same endpoint ends it; a failure at another does not.
    let mut again = delivery("success", json!(200), None);
    again.delivery.id = "del_2".parse().unwrap();
    let failed = delivery("failed", json!(500), None);
    let lines = told(session(paid), vec![failed.clone(), again.clone()], 30);
    assert!(about(Next, &lines).contains("Deliver the order"));
    again.delivery.webhook_id = "wh_2".parse().unwrap();
    assert!(about(Next, &told(session(paid), vec![failed, again], 30)).contains("Fix your endpoint"));
}

#[test]
fn the_summary_of_a_test_says_so() {
    let lines = told(session(|it| with(it, json!({"isSimulated": true}))), vec![], 1);
    assert!(about(Customer, &lines).starts_with("This is a test"));
}

#[test]
fn a_refusal_whose_code_is_known_is_explained_in_bangla_too() {
    let words = Some("Insufficient Balance".to_owned());
    let attempt = GatewayAttempt { failure: words, failure_code: Some("2023".into()), ..new_attempt("a") };
    let attempt = GatewayAttempt { gateway: GatewayName::of("bkash"), ..attempt };
    let [english, bangla] = meaning(&attempt).unwrap();
    assert_eq!(english, "“Insufficient Balance”");
    assert_eq!(bangla, "অ্যাকাউন্টে যথেষ্ট টাকা ছিল না। “Insufficient Balance”");
    let unknown = GatewayAttempt { failure_code: Some("0".into()), ..attempt };
    assert_eq!(meaning(&unknown).unwrap(), ["“Insufficient Balance”"; 2]);
}
