//! Disputes that an operator records for a gateway that reports none.

use gateway_fakes::Fault;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ENGINES, live};
use crate::{
    engine::Engine,
    live::Live,
    receiver::Receiver,
    server::{eventually, metric, text_of},
};

/// A command about disputes. Returns the first word of what it prints, the dispute's id.
fn dispute(live: &Live, arguments: &[&str]) -> String {
    let printed = live.server.run(&[&["disputes"], arguments].concat());
    printed.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Why a command is refused.
fn refused(live: &Live, arguments: &[&str]) -> String {
    let output = live.server.try_run(&[&["disputes"], arguments].concat());
    assert!(!output.status.success(), "{}", text_of(&output));
    text_of(&output)
}

async fn refund(live: &Live, id: &str, body: Value, key: &str) -> (StatusCode, Value) {
    let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", key);
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn get(live: &Live, path: &str) -> Value {
    live.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
}

async fn balance(live: &Live) -> Value {
    get(live, "/account").await["balance"]["bdt"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_records_a_dispute_from_its_letter_to_its_end() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let receiver = Receiver::ok().await;
        let hook = json!({"url": receiver.url(), "events": ["payment.disputed", "payment.dispute_closed"]});
        live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
        let id = live.paid(100.0, "BDT").await;
        assert_eq!(live.server.run(&["disputes", "list"]), "");

        let open = ["open", &id, "--amount", "40", "--reference", "CB-7", "--reason", "never came"];
        let open = [&open[..], &["--evidence-due", "2026-03-01"]].concat();
        let dsp = dispute(&live, &open);
        assert_eq!(dispute(&live, &open), dsp, "the same letter is the same dispute");
        assert!(refused(&live, &["open", &id, "--amount", "41", "--reference", "CB-7"]).contains("another amount"));
        assert!(
            refused(&live, &["open", &id, "--amount", "101", "--reference", "CB-8"]).contains("at most the payment's")
        );
        let unpaid = live.create(5.0, "BDT").await;
        assert!(
            refused(&live, &["open", &unpaid, "--amount", "5", "--reference", "CB-9"]).contains("cannot be disputed")
        );
        let listed = live.server.run(&["disputes", "list"]);
        let line = listed.lines().nth(1).unwrap();
        assert!(line.starts_with(&format!("2026-03-01T00:00:00.000Z {dsp} {id} needs_response 40 BDT 0 0 ")), "{line}");
        assert!(line.ends_with(" CB-7 never came"), "{line}");
        let metrics = live.server.metrics().await;
        let counts = ["payments_disputes_open", "payments_disputes_due"].map(|name| metric::<u64>(&metrics, name));
        assert_eq!(counts, [1, 1]);

        let withdraw = ["withdraw", &dsp, "--amount", "40", "--reference", "W-1"];
        assert_eq!([dispute(&live, &withdraw), dispute(&live, &withdraw)], [dsp.clone(), dsp.clone()]);
        assert!(refused(&live, &["withdraw", &id, "--amount", "4", "--reference", "W-1"]).contains("another movement"));
        assert!(
            refused(&live, &["withdraw", &id, "--amount", "4", "--reference", "W-2"]).contains("at most its amount")
        );
        assert!(refused(&live, &["reinstate", &id, "--amount", "41", "--reference", "R-1"]).contains("only what was"));
        let payment = live.payment(&id).await;
        assert_eq!((&payment["status"], &payment["dispute"]["amountWithdrawn"]), (&json!("completed"), &json!(40)));
        assert_eq!((&payment["dispute"], balance(&live).await), (&payment["disputes"][0], json!(55)));

        // An open dispute and a lost one are not refunded.
        let (status, over) = refund(&live, &id, json!({"amount": 60.01}), "over").await;
        assert_eq!((status, &over["code"]), (StatusCode::CONFLICT, &json!("refund_amount_too_large")));
        assert_eq!(over["message"], "disputes hold or took 40 of this payment, so 60 is left to refund");
        let (status, rest) = refund(&live, &id, json!({}), "rest").await;
        assert_eq!(
            (status, &rest["status"], &rest["amountRefunded"]),
            (StatusCode::OK, &json!("completed"), &json!(60))
        );
        assert_eq!(balance(&live).await, json!(-2));
        let (status, more) = refund(&live, &id, json!({}), "more").await;
        assert_eq!((status, &more["code"]), (StatusCode::CONFLICT, &json!("payment_disputed")));

        assert_eq!(dispute(&live, &["close", &id, "--as", "lost"]), dsp);
        assert_eq!(dispute(&live, &["close", &dsp, "--as", "lost"]), dsp);
        assert!(refused(&live, &["close", &dsp, "--as", "won"]).contains("is lost already"));
        assert_eq!(live.server.run(&["disputes", "list"]), "");
        assert_eq!(refund(&live, &id, json!({}), "again").await.1["code"], "payment_disputed");
        // The bank changes its mind.
        let back = ["reinstate", &id, "--amount", "40", "--reference", "R-2"];
        assert_eq!([dispute(&live, &back), dispute(&live, &back)], [dsp.clone(), dsp.clone()]);
        assert_eq!((&live.payment(&id).await["dispute"]["status"], balance(&live).await), (&json!("won"), json!(38)));
        assert!(
            refused(&live, &["withdraw", &id, "--amount", "1", "--reference", "W-3"]).contains("this dispute is won")
        );
        let (status, whole) = refund(&live, &id, json!({}), "whole").await;
        assert_eq!((status, &whole["status"], balance(&live).await), (StatusCode::OK, &json!("refunded"), json!(0)));

        let told = eventually("each event once", async || {
            let events: Vec<Value> =
                receiver.received().iter().map(|it| serde_json::from_slice(&it.body).unwrap()).collect();
            (events.len() == 3).then_some(events)
        })
        .await;
        let told: Vec<_> = told.iter().map(|it| (&it["event"], &it["data"]["dispute"]["status"])).collect();
        let [disputed, closed] = ["payment.disputed", "payment.dispute_closed"].map(|kind| json!(kind));
        let (needs, lost, won) = (json!("needs_response"), json!("lost"), json!("won"));
        assert_eq!(told, [(&disputed, &needs), (&closed, &lost), (&closed, &won)]);
        let moved = get(&live, "/account/transactions?limit=4").await;
        let moved: Vec<_> = moved["items"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
        assert_eq!(moved, ["fee_returned", "refund", "dispute_reversed", "fee_returned"]);
        let timeline = get(&live, &format!("/payments/{id}/timeline")).await;
        let entries = timeline["items"].as_array().unwrap();
        let words = |kind: &str| entries.iter().find(|it| it["kind"] == kind).unwrap()["description"].clone();
        assert_eq!(
            words("disputed"),
            "The customer disputes 40 BDT: never came. Evidence is due by 2026-03-01T00:00:00.000Z."
        );
        assert_eq!(words("dispute_closed"), "The dispute of 40 BDT was won.");
        live.server.run(&["check"]);

        // The commands work without a server, too.
        assert!(live.server.terminate().success());
        let second = dispute(&live, &["open", &id, "--amount", "10", "--reference", "CB-10", "--returns-fee"]);
        assert!(second.starts_with("dsp_") && second != dsp, "{second}");
        assert_eq!(dispute(&live, &["withdraw", &id, "--amount", "10", "--reference", "W-4"]), second);
        let listed = live.server.run(&["disputes", "list"]);
        assert!(listed.lines().nth(1).unwrap().starts_with(&format!("- {second} {id} ")), "{listed}");
        assert_eq!(dispute(&live, &["close", &second, "--as", "lost"]), second);
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_returns_fees_returns_its_part_of_the_fee() {
    let live = live().await;
    let id = live.paid(100.0, "BDT").await;
    dispute(&live, &["open", &id, "--amount", "40", "--reference", "CB-1", "--returns-fee"]);
    for (command, amount, reference, expected) in
        [("withdraw", "40", "W-1", json!(57)), ("reinstate", "10", "R-1", json!(66.5))]
    {
        dispute(&live, &[command, &id, "--amount", amount, "--reference", reference]);
        assert_eq!(balance(&live).await, expected);
    }
    assert_eq!(live.payment(&id).await["dispute"]["feeReturned"], json!(1.5));
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_the_gateway_made_counts_even_if_a_dispute_opened_before_its_answer() {
    for engine in [Engine::Directory, Engine::Postgres] {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        for body in [json!({}), json!({"amount": 9})] {
            let id = live.paid(15.0, "USD").await;
            live.stripe.faults().next("refund", Fault::DropAfter);
            let key = format!("return {id}").replace(' ', "-");
            assert_eq!(refund(&live, &id, body.clone(), &key).await.0, StatusCode::SERVICE_UNAVAILABLE);
            dispute(&live, &["open", &id, "--amount", "15", "--reference", "du_1"]);
            let (status, made) = refund(&live, &id, body.clone(), &key).await;
            assert_eq!(status, StatusCode::OK, "{made}");
            assert_eq!(made["amountRefunded"], *body.get("amount").unwrap_or(&json!(15)));
        }
        live.server.run(&["check"]);
    }
}
