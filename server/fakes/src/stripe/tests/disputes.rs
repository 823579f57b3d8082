//! Disputes.

use super::*;

const CREATED: &str = "charge.dispute.created";
const UPDATED: &str = "charge.dispute.updated";
const CLOSED: &str = "charge.dispute.closed";
const WITHDRAWN: &str = "charge.dispute.funds_withdrawn";
const REINSTATED: &str = "charge.dispute.funds_reinstated";

/// A dispute of a payment of 1,000, whose events are taken.
fn disputed(merchant: &Merchant, minor: u64, is_inquiry: bool) -> (Payment, String) {
    let payment = merchant.paid("pay_1", 1_000);
    merchant.events();
    let order = json!({"of": payment.session, "minor": minor, "reason": "fraudulent", "inquiry": is_inquiry});
    let dispute = merchant.control("open_dispute", &order)["id"].as_str().unwrap().to_owned();
    assert!(dispute.starts_with("du_"));
    (payment, dispute)
}

/// The categories, amounts and fees of a dispute's balance transactions.
fn rows(dispute: &Value) -> Vec<Value> {
    let rows = dispute["balance_transactions"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["type"] == "adjustment" && row["source"] == dispute["id"]), "{dispute}");
    rows.iter().map(|row| json!([row["reporting_category"], row["amount"], row["fee"]])).collect()
}

fn withdrawal(minor: i64) -> Value {
    json!(["dispute", -minor, 1_500])
}

fn reversal(minor: i64) -> Value {
    json!(["dispute_reversal", minor, 0])
}

#[test]
fn a_chargeback_withdraws_its_money_and_a_fee_at_once() {
    let merchant = Merchant::new();
    let (payment, id) = disputed(&merchant, 600, false);
    assert_eq!(merchant.event_types(), [CREATED, WITHDRAWN]);
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!(rows(&dispute), [withdrawal(600)]);
    assert_eq!(dispute["balance_transactions"][0]["net"], -2_100);
    assert_eq!(dispute["balance_transactions"][0]["fee_details"][0]["description"], "Dispute fee");
    for (name, value) in [
        ("amount", json!(600)),
        ("currency", json!("usd")),
        ("charge", json!(payment.charge)),
        ("payment_intent", json!(payment.intent)),
        ("reason", json!("fraudulent")),
        ("status", json!("needs_response")),
        ("metadata", json!({})),
    ] {
        assert_eq!(dispute[name], value, "{name}");
    }
    assert!(dispute["evidence_details"]["due_by"].as_u64() > dispute["created"].as_u64());
    assert_eq!(dispute["payment_method_details"]["card"]["case_type"], "chargeback");
    assert_eq!(merchant.get(&format!("charges/{}", payment.charge))["disputed"], true);
    let books = merchant.stripe.books();
    assert_eq!((books[0].disputed_minor, books[0].refunded_minor, books[0].taken), (600, 0, 1));
    let later = dispute["evidence_details"]["due_by"].as_u64().unwrap() + 1;
    let later = crate::at(later, || merchant.get(&format!("disputes/{id}")));
    assert_eq!(later["evidence_details"]["past_due"], true);
}

#[test]
fn a_won_dispute_gives_the_money_back_and_keeps_the_fee() {
    let merchant = Merchant::new();
    let (_, id) = disputed(&merchant, 1_000, false);
    assert!(merchant.stripe.answer_dispute(&id));
    assert!(!merchant.stripe.answer_dispute(&id), "it is under review");
    merchant.stripe.reverse_events(true);
    assert!(merchant.stripe.close_dispute(&id, true));
    assert_eq!(merchant.event_types(), [CREATED, WITHDRAWN, UPDATED, REINSTATED, CLOSED]);
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!((rows(&dispute), &dispute["status"]), (vec![withdrawal(1_000), reversal(1_000)], &json!("won")));
    assert_eq!(dispute["evidence_details"]["submission_count"], 1);
    assert_eq!(merchant.stripe.books()[0].disputed_minor, 0);
    for did in [
        merchant.stripe.close_dispute(&id, true),
        merchant.stripe.withdraw(&id),
        merchant.stripe.reinstate(&id),
        merchant.stripe.escalate(&id),
    ] {
        assert!(!did, "it is closed");
    }
    assert!(merchant.event_types().is_empty());
}

#[test]
fn a_lost_dispute_keeps_the_money() {
    let merchant = Merchant::new();
    let (_, id) = disputed(&merchant, 0, false);
    merchant.control("close_dispute", &json!({"dispute": id, "won": false}));
    assert_eq!(merchant.event_types(), [CREATED, WITHDRAWN, CLOSED]);
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!((rows(&dispute), &dispute["status"]), (vec![withdrawal(1_000)], &json!("lost")));
    assert_eq!(merchant.stripe.books()[0].disputed_minor, 1_000);
}

#[test]
fn an_inquiry_moves_no_money_and_closes_or_becomes_a_chargeback() {
    let merchant = Merchant::new();
    let (_, id) = disputed(&merchant, 1_000, true);
    assert!(!merchant.stripe.withdraw(&id));
    assert!(merchant.stripe.answer_dispute(&id));
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!((rows(&dispute), &dispute["status"]), (vec![], &json!("warning_under_review")));
    assert_eq!(dispute["payment_method_details"]["card"]["case_type"], "inquiry");
    assert!(merchant.stripe.escalate(&id));
    assert_eq!(merchant.event_types(), [CREATED, UPDATED, UPDATED, WITHDRAWN]);
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!((rows(&dispute), &dispute["status"]), (vec![withdrawal(1_000)], &json!("needs_response")));

    let (_, id) = disputed(&merchant, 1_000, true);
    assert!(merchant.stripe.close_dispute(&id, false));
    assert_eq!(merchant.event_types(), [CREATED, CLOSED]);
    let dispute = merchant.get(&format!("disputes/{id}"));
    assert_eq!((rows(&dispute), &dispute["status"]), (vec![], &json!("warning_closed")));
    assert!(!merchant.stripe.escalate(&id));
}

#[test]
fn a_held_withdrawal_comes_later_and_the_money_may_come_back_early() {
    let merchant = Merchant::new();
    merchant.control("hold_withdrawals", &json!({}));
    let (_, id) = disputed(&merchant, 1_000, false);
    assert!(!merchant.stripe.reinstate(&id), "nothing is withdrawn");
    assert_eq!(merchant.event_types(), [CREATED]);
    merchant.control("withdraw", &json!({"dispute": id}));
    assert!(!merchant.stripe.withdraw(&id));
    merchant.control("reinstate", &json!({"dispute": id}));
    assert!(!merchant.stripe.close_dispute(&id, false));
    assert!(merchant.stripe.close_dispute(&id, true));
    assert_eq!(merchant.event_types(), [WITHDRAWN, REINSTATED, CLOSED]);
    assert_eq!(rows(&merchant.get(&format!("disputes/{id}"))), [withdrawal(1_000), reversal(1_000)]);
    let (_, id) = disputed(&merchant, 1_000, false);
    assert!(merchant.stripe.close_dispute(&id, false));
    assert_eq!(merchant.event_types(), [CREATED, WITHDRAWN, CLOSED]);
    let (_, id) = disputed(&merchant, 1_000, false);
    assert!(merchant.stripe.close_dispute(&id, true));
    assert_eq!(merchant.event_types(), [CREATED, CLOSED]);
}

#[test]
fn a_charge_is_refundable_during_an_inquiry_and_after_a_won_dispute_only() {
    let merchant = Merchant::new();
    let (payment, id) = disputed(&merchant, 500, true);
    let refund = || merchant.post("refunds", &format!("payment_intent={}&amount=10", payment.intent));
    let is_refundable = || {
        let is_refundable = merchant.get(&format!("disputes/{id}"))["is_charge_refundable"] == true;
        match refund()["status"] == "succeeded" {
            true => assert!(is_refundable),
            false => assert_eq!((error(&refund()), is_refundable), (("charge_disputed", ""), false)),
        }
        is_refundable
    };
    assert!(is_refundable());
    merchant.stripe.escalate(&id);
    assert!(!is_refundable());
    assert_eq!(merchant.stripe.refund_part_by_hand("pay_1", 10), None);
    merchant.stripe.close_dispute(&id, true);
    assert!(is_refundable());
    // A second dispute of the same charge.
    let second = merchant.stripe.open_dispute(&payment.charge, 300, "duplicate", false).unwrap();
    assert!(error(&refund()).0 == "charge_disputed" && second != id);
    assert_eq!(merchant.stripe.books()[0].disputed_minor, 300);
}

#[test]
fn a_dispute_is_of_what_is_not_refunded_unless_an_amount_is_given() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    merchant.stripe.refund_part_by_hand("pay_1", 300).unwrap();
    let id = merchant.stripe.open_dispute("pay_1", 0, "general", true).unwrap();
    assert_eq!(merchant.get(&format!("disputes/{id}"))["amount"], 700);
    for (of, reason) in [(&*payment.intent, "anger"), ("pay_2", "general")] {
        assert_eq!(merchant.stripe.open_dispute(of, 100, reason, false), None, "{of} {reason}");
    }
    assert!(merchant.control("open_dispute", &json!({"of": "pay_2"}))["error"].is_string());
    assert!(merchant.control("close_dispute", &json!({"dispute": "du_x"}))["error"].is_string());
}

#[test]
fn the_disputes_of_a_charge_are_listed() {
    let merchant = Merchant::new();
    let (payment, first) = disputed(&merchant, 400, false);
    let second = merchant.stripe.open_dispute(&payment.intent, 200, "general", false).unwrap();
    let other = merchant.paid("pay_2", 900);
    let third = merchant.stripe.open_dispute(&other.session, 0, "general", true).unwrap();
    let ids = |query: &str| {
        let list = merchant.get(&format!("disputes?{query}"));
        assert_eq!(list["url"], "/v1/disputes", "{list}");
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), [&*third, &second, &first]);
    assert_eq!(ids(&format!("payment_intent={}", payment.intent)), [&*second, &first]);
    assert_eq!(ids(&format!("charge={}&created[gte]=1", other.charge)), [&*third]);
    assert_eq!(ids(&format!("limit=1&starting_after={third}")), [&*second]);
    let expanded = merchant.get("disputes?expand[]=data.payment_intent&limit=1");
    assert_eq!(expanded["data"][0]["payment_intent"]["id"], other.intent.as_str());
    assert_eq!(error(&merchant.get("disputes?reason=general")), ("parameter_unknown", "reason"));
}
