//! Refunds.

use super::*;

#[test]
fn a_refund_is_reported_by_events_of_the_refund_and_of_the_charge_in_either_order() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    merchant.events();
    let refund = merchant.post("refunds", &format!("payment_intent={}&amount=400&metadata[a]=1", payment.intent));
    let events = merchant.events();
    assert_eq!(events[0], ("refund.created".into(), refund.clone()));
    let (kind, charge) = &events[1];
    assert_eq!((kind.as_str(), events.len()), ("charge.refunded", 2));
    assert_eq!((&charge["object"], &charge["id"]), (&json!("charge"), &json!(payment.charge)));
    assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(400), &json!(false)));
    assert_eq!(charge["payment_intent"], payment.intent.as_str());
    assert_eq!(charge["metadata"], json!({"payment_id": "pay_1"}));
    assert!(charge.get("refunds").is_none(), "a charge has no list of refunds");

    assert_eq!((&refund["charge"], &refund["status"]), (&json!(payment.charge), &json!("succeeded")));
    assert_eq!(merchant.row(&refund["balance_transaction"]), json!(["refund", "refund", -400, 0, -400]));
    for name in ["failure_balance_transaction", "failure_reason", "pending_reason"] {
        assert!(refund.get(name).is_none(), "{name}");
    }
    merchant.control("reverse_events", &json!({}));
    merchant.post("refunds", &format!("charge={}", payment.charge));
    assert_eq!(merchant.event_types(), ["charge.refunded", "refund.created"]);
    let charge = merchant.get(&format!("charges/{}", payment.charge));
    assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(1_000), &json!(true)));
}

#[test]
fn a_refund_in_the_dashboard_has_no_metadata_and_may_be_a_part() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    let id = merchant.stripe.refund_part_by_hand("pay_1", 300).unwrap();
    let refund = merchant.get(&format!("refunds/{id}"));
    assert_eq!((&refund["amount"], &refund["metadata"]), (&json!(300), &json!({})));
    assert_eq!(refund["payment_intent"], payment.intent.as_str());
    assert_eq!(merchant.stripe.refund_part_by_hand("pay_1", 701), None, "only 700 are left");
    assert_eq!(merchant.stripe.refund_part_by_hand("pay_2", 1), None);
    let made = merchant.control("refund_by_hand", &json!({"reference": "pay_1", "minor": 100}));
    assert!(made["id"].as_str().unwrap().starts_with("re_"));
    merchant.control("refund_by_hand", &json!({"reference": "pay_1"}));
    let books = merchant.stripe.books();
    assert_eq!((books[0].refunded, books[0].refunded_minor), (3, 1_000));
}

#[test]
fn a_pending_refund_succeeds_later_and_only_then_an_update_is_sent() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    merchant.events();
    for (reason, has_row) in [("processing", true), ("charge_pending", true), ("insufficient_funds", false)] {
        merchant.control("next_refund", &json!({"status": "pending", "pending_reason": reason}));
        let refund = merchant.post("refunds", &format!("payment_intent={}&amount=100", payment.intent));
        assert_eq!((&refund["status"], &refund["pending_reason"]), (&json!("pending"), &json!(reason)));
        assert_eq!(refund["balance_transaction"].is_string(), has_row, "{reason}");
        assert_eq!(merchant.event_types(), ["refund.created", "charge.refunded"]);
        merchant.control("succeed_refund", &json!({"refund": refund["id"]}));
        let events = merchant.events();
        assert_eq!((events.len(), events[0].0.as_str()), (1, "refund.updated"));
        let refund = &events[0].1;
        assert_eq!(refund["status"], "succeeded");
        assert!(refund.get("pending_reason").is_none());
        assert_eq!(merchant.row(&refund["balance_transaction"]), json!(["refund", "refund", -100, 0, -100]));
        assert!(!merchant.stripe.succeed_refund(refund["id"].as_str().unwrap()), "it has succeeded");
    }
}

#[test]
fn a_refund_that_fails_later_restores_the_balance_and_can_be_made_again() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    let id = merchant.stripe.refund_part_by_hand("pay_1", 1_000).unwrap();
    merchant.events();
    merchant.control("fail_refund", &json!({"refund": id}));
    assert_eq!(merchant.event_types(), ["refund.updated", "refund.failed"]);
    let refund = merchant.get(&format!("refunds/{id}"));
    assert_eq!((&refund["status"], &refund["failure_reason"]), (&json!("failed"), &json!("expired_or_canceled_card")));
    let restored = merchant.row(&refund["failure_balance_transaction"]);
    assert_eq!(restored, json!(["refund_failure", "refund_failure", 1_000, 0, 1_000]));
    let charge = merchant.get(&format!("charges/{}", payment.charge));
    assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(0), &json!(false)));
    let books = merchant.stripe.books();
    assert_eq!((books[0].refunded, books[0].refunded_minor), (0, 0));
    merchant.stripe.fail_refund(&id);
    assert!(merchant.event_types().is_empty(), "it fails once");
    assert!(!merchant.stripe.succeed_refund(&id));
    assert!(merchant.stripe.refund_part_by_hand("pay_1", 1_000).is_some());
}

#[test]
fn a_refund_that_fails_at_once_moves_no_money() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    merchant.events();
    for (status, expected) in [("failed", &["refund.created", "refund.failed"][..]), ("canceled", &["refund.created"])]
    {
        merchant.stripe.next_refund_is(status);
        let refund = merchant.post("refunds", &format!("payment_intent={}", payment.intent));
        assert_eq!((&refund["status"], &refund["balance_transaction"]), (&json!(status), &Value::Null));
        assert_eq!(merchant.event_types(), expected);
        assert_eq!(merchant.stripe.books()[0].refunded_minor, 0);
    }
}

#[test]
fn a_refund_of_nothing_or_of_another_payment_is_refused() {
    let merchant = Merchant::new();
    let (one, other) = (merchant.paid("pay_1", 1_000), merchant.paid("pay_2", 1_000));
    for (body, expected) in [
        (String::new(), ("parameter_missing", "")),
        ("payment_intent=pi_x".into(), ("resource_missing", "")),
        ("charge=ch_x".into(), ("resource_missing", "")),
        (format!("payment_intent={}&colour=red", one.intent), ("parameter_unknown", "colour")),
        (
            format!("payment_intent={}&charge={}", one.intent, other.charge),
            ("The charge does not belong to the payment intent.", "charge"),
        ),
    ] {
        assert_eq!(error(&merchant.post("refunds", &body)), expected, "{body}");
    }
}
