//! Refunds.

use super::*;

/// Starts a refund with these fields instead of or beside the mandatory ones.
fn refund(merchant: &Merchant, bank_tran_id: &str, changes: &[(&str, &str)]) -> Value {
    let fields = [
        ("bank_tran_id", bank_tran_id),
        ("refund_trans_id", "ref_1"),
        ("refund_amount", "50"),
        ("refund_remarks", "damaged"),
    ];
    merchant.get(TRANSACTION, &[&fields[..], changes].concat())
}

fn shown(merchant: &Merchant, refund: &Value) -> Value {
    merchant.get(TRANSACTION, &[("refund_ref_id", refund["refund_ref_id"].as_str().unwrap())])
}

#[test]
fn a_refund_is_under_way_until_the_gateway_ends_it() {
    let merchant = Merchant::new();
    let (_, bank) = merchant.paid(&[]);
    let begun = refund(&merchant, &bank, &[]);
    assert_eq!(
        parts(&begun, &["APIConnect", "bank_tran_id", "trans_id", "status", "errorReason"]),
        ["DONE", &bank, "order-1", "success", ""]
    );
    let waits = shown(&merchant, &begun);
    assert_eq!(
        parts(&waits, &["status", "tran_id", "trans_id", "refunded_on"]),
        ["processing", "order-1", "order-1", ""]
    );
    merchant.control("finish_refund", &json!({"refund": begun["refund_ref_id"], "status": "refunded"}));
    assert_eq!(shown(&merchant, &begun)["status"], "refunded");
    assert!(!merchant.fake.finish_refund("ref_1", false), "it has ended");

    merchant.control("next_refund", &json!({"status": "processing"}));
    let second = refund(&merchant, &bank, &[("refund_trans_id", "ref_2")]);
    assert_eq!(second["status"], "processing");
    assert_eq!((merchant.fake.books()[0].refunded, merchant.fake.books()[0].refunded_minor), (2, 10_000));
    assert!(merchant.fake.finish_refund("ref_2", false));
    assert_eq!(shown(&merchant, &second)["status"], "cancelled");
    assert_eq!((merchant.fake.books()[0].refunded, merchant.fake.books()[0].refunded_minor), (1, 5_000));
    assert_eq!(merchant.fake.refunds().len(), 2);
    assert_eq!(merchant.get(TRANSACTION, &[("refund_ref_id", "unknown")])["APIConnect"], "INVALID_REQUEST");
}

#[test]
fn partial_refunds_send_back_at_most_the_amount_each_with_an_id_of_its_own() {
    let merchant = Merchant::new();
    let (_, bank) = merchant.paid(&[]);
    let start = |id: &str, amount: &str| {
        let answer = refund(&merchant, &bank, &[("refund_trans_id", id), ("refund_amount", amount)]);
        answer["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(start("ref_1", "100.00"), "success");
    assert_eq!(start("ref_1", "1"), "failed", "the id is used");
    assert_eq!(start("ref_2", "50.01"), "failed", "it is more than is left");
    merchant.fake.next_refund_is("failed");
    assert_eq!(start("ref_2", "50"), "failed", "the bank declines");
    assert_eq!(start("ref_2", "50"), "success");
    assert_eq!(start("ref_3", "0.01"), "failed");
    assert_eq!((merchant.fake.books()[0].refunded, merchant.fake.books()[0].refunded_minor), (2, 15_000));
}

#[test]
fn a_refund_without_a_mandatory_field_is_an_invalid_request() {
    let merchant = Merchant::new();
    let (_, bank) = merchant.paid(&[]);
    let long = "x".repeat(256);
    for (name, value) in [
        ("bank_tran_id", ""),
        ("refund_trans_id", ""),
        ("refund_trans_id", &long[..31]),
        ("refund_amount", ""),
        ("refund_amount", "0"),
        ("refund_amount", "1.005"),
        ("refund_remarks", ""),
        ("refund_remarks", &long),
        ("refe_id", &long[..51]),
    ] {
        assert_eq!(refund(&merchant, &bank, &[(name, value)])["APIConnect"], "INVALID_REQUEST", "{name} {value}");
    }
    let unknown = refund(&merchant, "unknown", &[]);
    assert_eq!(parts(&unknown, &["APIConnect", "status"]), ["DONE", "failed"]);
    assert!(!unknown["errorReason"].as_str().unwrap().is_empty());
    assert_eq!(merchant.fake.books()[0].refunded, 0);
    merchant.control("take_refunds_without_id", &json!({}));
    for _ in 0..2 {
        assert_eq!(refund(&merchant, &bank, &[("refund_trans_id", "")])["status"], "success");
    }
}

#[test]
fn only_the_transaction_that_a_refund_names_sends_money_back() {
    let merchant = Merchant::new();
    let session = merchant.session(&[]);
    let first = merchant.fake.pay(&session).unwrap().form["bank_tran_id"].clone();
    let second = merchant.fake.pay_again(&session).unwrap();
    assert_eq!(refund(&merchant, &second, &[("refund_amount", "150")])["status"], "success");
    let again = [("refund_amount", "1"), ("refund_trans_id", "ref_2")];
    assert_eq!(refund(&merchant, &second, &again)["status"], "failed");
    assert_eq!(refund(&merchant, &first, &again)["status"], "success");
    let failed = merchant.fake.fail(&merchant.session(&[])).unwrap().form["bank_tran_id"].clone();
    assert_eq!(refund(&merchant, &failed, &[("refund_trans_id", "ref_3")])["status"], "failed");
}
