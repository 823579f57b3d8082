//! Payment intents, charges and their fees.

use super::*;
use crate::{Back, Does, Fake as _};

#[test]
fn a_payment_intent_and_its_charge_carry_the_metadata_of_the_session_and_the_session_does_not() {
    let merchant = Merchant::new();
    let session = merchant.session("pay_1", 1_250, "&metadata[a]=1&payment_intent_data[metadata][payment_id]=pay_1");
    assert_eq!(merchant.get(&format!("checkout/sessions/{session}"))["metadata"], json!({"a": "1"}));
    merchant.stripe.pay(&session, SLOW_CARD).unwrap();
    let shown = merchant.get(&format!("checkout/sessions/{session}"));
    let intent = merchant.get(&format!("payment_intents/{}", shown["payment_intent"].as_str().unwrap()));
    assert_eq!((&intent["latest_charge"], &intent["amount_received"]), (&Value::Null, &json!(0)), "it is processing");
    merchant.stripe.finish(&session, true);

    let payment = merchant.payment(session);
    let intent = merchant.get(&format!("payment_intents/{}", payment.intent));
    assert_eq!((&intent["metadata"], &intent["amount_received"]), (&json!({"payment_id": "pay_1"}), &json!(1_250)));
    let charge = merchant.get(&format!("charges/{}", payment.charge));
    assert!(payment.charge.starts_with("ch_"));
    assert_eq!(charge["metadata"], json!({"payment_id": "pay_1"}));
    assert_eq!(charge["payment_intent"], payment.intent.as_str());
    for (name, value) in [
        ("amount", json!(1_250)),
        ("amount_refunded", json!(0)),
        ("refunded", false.into()),
        ("disputed", false.into()),
    ] {
        assert_eq!(charge[name], value, "{name}");
    }
}

#[test]
fn metadata_has_limits() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    let refund = |metadata: &str| {
        let answer = merchant.post("refunds", &format!("payment_intent={}&amount=1&{metadata}", payment.intent));
        answer["error"]["param"].as_str().map(str::to_owned)
    };
    let long = "k".repeat(41);
    assert_eq!(refund(&format!("metadata[{long}]=1")), Some(format!("metadata[{long}]")));
    assert_eq!(refund(&format!("metadata[k]={}", "v".repeat(501))), Some("metadata[k]".into()));
    assert_eq!(refund(&format!("metadata[k]={}", "v".repeat(500))), None);
    let many: Vec<String> = (0..51).map(|number| format!("metadata[k{number}]=1")).collect();
    assert_eq!(refund(&many.join("&")), Some("metadata".into()));
    let colour = merchant.post("checkout/sessions", "payment_intent_data[capture_method]=manual");
    assert_eq!(error(&colour), ("parameter_unknown", "payment_intent_data[capture_method]"));
}

#[test]
fn a_charge_costs_a_share_rounded_half_up_and_a_fixed_fee() {
    let merchant = Merchant::new();
    for (minor, fee) in [(1_000, 59), (50, 31), (51, 31), (52, 32), (1_250, 66), (99_999_999, 2_900_030)] {
        let payment = merchant.paid("pay_1", minor);
        let path = format!("payment_intents/{}?expand[]=latest_charge.balance_transaction", payment.intent);
        let intent = merchant.get(&path);
        let row = &intent["latest_charge"]["balance_transaction"];
        assert_eq!((&row["fee"], &row["net"]), (&json!(fee), &json!(minor - fee)), "{minor}");
        assert_eq!(row["fee_details"][0]["amount"], fee);
        assert_eq!((&row["status"], &row["source"]), (&json!("pending"), &json!(payment.charge)));
        assert_eq!(crate::stripe::charge_fee(minor), fee);
        let charge = merchant.get(&format!("charges/{}", payment.charge));
        assert_eq!(merchant.row(&charge["balance_transaction"]), json!(["charge", "charge", minor, fee, minor - fee]));
        let later = row["available_on"].as_u64().unwrap();
        let row = crate::at(later, || merchant.get(&format!("balance_transactions/{}", row["id"].as_str().unwrap())));
        assert_eq!(row["status"], "available");
    }
}

#[test]
fn a_declined_customer_stays_on_the_page_and_another_goes_back() {
    let merchant = Merchant::new();
    let session = merchant.session("pay_1", 1_000, "&cancel_url=https://shop.example/no");
    let visit = |does| merchant.stripe.visit(&format!("https://stripe.example/pay/{session}"), does);
    let back = |url: &str| Some(Back { method: Method::GET, url: url.into(), form: Form::default() });
    assert_eq!(visit(Does::HasNoMoney), None);
    assert_eq!(visit(Does::Cancels), back("https://shop.example/no"));
    assert_eq!(visit(Does::Pays), back("https://shop.example"));
    assert_eq!((visit(Does::Cancels), visit(Does::Pays)), (None, None), "the page is closed");
}
