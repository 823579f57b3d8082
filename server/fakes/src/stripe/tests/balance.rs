//! Balance transactions.

use super::*;

#[test]
fn each_movement_of_money_has_a_balance_transaction() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    let refund = merchant.stripe.refund_part_by_hand("pay_1", 400).unwrap();
    merchant.stripe.fail_refund(&refund);
    let dispute = merchant.stripe.open_dispute("pay_1", 0, "general", false).unwrap();
    merchant.stripe.close_dispute(&dispute, true);
    let list = merchant.get("balance_transactions?expand[]=data.source");
    let rows: Vec<Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!(row["net"].as_i64(), Some(row["amount"].as_i64().unwrap() - row["fee"].as_i64().unwrap()));
            assert_eq!((&row["currency"], &row["exchange_rate"]), (&json!("usd"), &Value::Null));
            json!([row["type"], row["reporting_category"], row["net"], row["source"]["id"]])
        })
        .collect();
    let expected = [
        json!(["adjustment", "dispute_reversal", 1_000, dispute]),
        json!(["adjustment", "dispute", -2_500, dispute]),
        json!(["refund_failure", "refund_failure", 400, refund]),
        json!(["refund", "refund", -400, refund]),
        json!(["charge", "charge", 941, payment.charge]),
    ];
    assert_eq!(rows, expected);
    for (query, count) in [
        (format!("source={dispute}"), 2),
        (format!("source={refund}&type=refund"), 1),
        ("type=adjustment".into(), 2),
        ("currency=bdt".into(), 0),
        ("limit=2".into(), 2),
    ] {
        let list = merchant.get(&format!("balance_transactions?{query}"));
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(error(&merchant.get("balance_transactions?reporting_category=fee")).0, "parameter_unknown");
}

#[test]
fn a_late_fee_becomes_known_by_an_update_of_the_charge() {
    let merchant = Merchant::new();
    merchant.control("delay_fees", &json!({}));
    let payment = merchant.paid("pay_1", 1_000);
    let path = format!("payment_intents/{}?expand[]=latest_charge.balance_transaction", payment.intent);
    assert_eq!(merchant.get(&path)["latest_charge"]["balance_transaction"], Value::Null);
    merchant.events();
    merchant.control("make_fee_known", &json!({"of": payment.session}));
    let events = merchant.events();
    assert_eq!((events.len(), events[0].0.as_str()), (1, "charge.updated"));
    assert_eq!(merchant.row(&events[0].1["balance_transaction"]), json!(["charge", "charge", 1_000, 59, 941]));
    assert!(!merchant.stripe.make_fee_known(&payment.intent), "it is known");
    assert!(!merchant.stripe.make_fee_known("pay_2"));
    merchant.control("delay_fees", &json!({"late": false}));
    let payment = merchant.paid("pay_2", 1_000);
    assert!(merchant.get(&format!("charges/{}", payment.charge))["balance_transaction"].is_string());
}
