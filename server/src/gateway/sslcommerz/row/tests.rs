//! What each report means.

use payments_core::Amount;
use serde_json::json;

use super::*;
use crate::domain::{new_attempt, new_session};

const AMOUNT: &str = "100.00";

fn attempt() -> GatewayAttempt {
    GatewayAttempt { invoice: "T1".into(), ..new_attempt("a") }
}

fn row(change: Value) -> Row {
    let mut row = json!({"status": "VALID", "tran_id": "T1", "val_id": "V1", "bank_tran_id": "B1",
        "tran_date": "2026-11-02 10:00:00", "amount": AMOUNT, "store_amount": "97.5", "currency": "BDT",
        "currency_type": "BDT", "currency_amount": 100, "risk_level": "0", "risk_title": "Safe"});
    row.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    Row::read(&row)
}

fn state(row: &Row, validated: Option<&Row>) -> AttemptState {
    let mut payment = new_session().payment;
    payment.amount = Amount::from_major(100);
    row.state(validated, &[], &payment, &attempt())
}

#[test]
fn money_pays_only_if_ids_amounts_and_currencies_fit_in_the_validation_or_else_in_the_row() {
    let fits = row(json!({"status": "VALIDATED", "amount": "100", "currency_amount": "100.0"}));
    let cost = CostRow { id: "V1".into(), minor: 250, currency: Some(Currency::Bdt) };
    let receipt = Receipt { transaction: "B1".into(), cost: Some(cost), surplus: None };
    for validated in [None, Some(&fits)] {
        assert_eq!(state(&row(json!({})), validated), AttemptState::Paid(receipt.clone()));
    }
    for change in [
        json!({"amount": "99.99"}),
        json!({"amount": "1,00"}),
        json!({"amount": null}),
        json!({"currency": "USD"}),
        json!({"currency_type": "USD"}),
        json!({"currency_amount": "99.50"}),
        json!({"tran_id": "T2"}),
        json!({"val_id": "V2"}),
        json!({"val_id": ""}),
        json!({"bank_tran_id": "B2"}),
        json!({"status": "INVALID_TRANSACTION"}),
    ] {
        let AttemptState::Discrepancy { what, transaction } = state(&row(json!({})), Some(&row(change.clone()))) else {
            panic!("{change}")
        };
        assert!(what.contains("and validates") && transaction.as_deref() == Some("B1"), "{what}");
    }
    for lack in ["val_id", "bank_tran_id", "currency_type", "currency_amount"] {
        assert!(matches!(state(&row(json!({lack: ""})), None), AttemptState::Discrepancy { .. }), "{lack}");
    }
}

#[test]
fn only_safe_money_pays_without_a_person() {
    for level in [json!("1"), json!(1), json!(""), json!(null), json!("2")] {
        let risky = row(json!({"risk_level": level, "risk_title": "Not Safe"}));
        let AttemptState::Discrepancy { what, transaction } = state(&row(json!({})), Some(&risky)) else {
            panic!("{level}")
        };
        assert!(what.contains("\"Not Safe\"") && transaction.as_deref() == Some("B1"), "{what}");
    }
    assert!(matches!(state(&row(json!({"risk_level": 0})), None), AttemptState::Paid(_)));
}

#[test]
fn the_first_of_several_paid_transactions_pays_and_a_person_sends_the_others_back() {
    let (second, first, failed) = (
        row(json!({"bank_tran_id": "B2", "tran_date": "2026-11-02 10:00:01"})),
        row(json!({"status": "VALIDATED"})),
        row(json!({"status": "FAILED", "bank_tran_id": "B0"})),
    );
    let rows = [failed, second, first.clone(), first];
    let of = |known| paid(&rows, known).map(|(row, others)| (&*row.bank_tran_id, others.len()));
    assert_eq!((of(None), of(Some("B2")), of(Some("B9"))), (Some(("B1", 1)), Some(("B2", 2)), Some(("B1", 1))));
    let (row, others) = paid(&rows, None).unwrap();
    let mut payment = new_session().payment;
    payment.amount = Amount::from_major(100);
    let AttemptState::Paid(Receipt { transaction, surplus, .. }) = row.state(None, &others, &payment, &attempt())
    else {
        panic!()
    };
    let surplus = surplus.unwrap();
    assert!(
        transaction == "B1" && surplus.contains("T1 more than once, also 100.00 BDT in transaction B2"),
        "{surplus}"
    );
    assert_eq!(paid(&rows[..1], None), None);
}

#[test]
fn each_status_without_money_is_open_failed_cancelled_or_not_decided() {
    let declined = |why: &str, code: &str| AttemptState::Failed { why: Some(why.into()), code: Some(code.into()) };
    let failed = |word: &str| declined(word, word);
    for (words, expected) in [
        (&[][..], AttemptState::Open),
        (&["PENDING"], AttemptState::Open),
        (&["FAILED", "PENDING"], AttemptState::Open),
        (&["FAILED"], failed("FAILED")),
        (&["CANCELLED", "FAILED"], failed("FAILED")),
        (&["EXPIRED"], failed("EXPIRED")),
        (&["UNATTEMPTED"], failed("UNATTEMPTED")),
        (&["CANCELLED"], AttemptState::Cancelled),
        (&["failed"], AttemptState::Pending),
        (&["FAILED", "ON_HOLD"], AttemptState::Pending),
        (&["PENDING", ""], AttemptState::Pending),
    ] {
        let rows: Vec<_> = words.iter().map(|word| row(json!({"status": word}))).collect();
        assert_eq!(unpaid(&rows), expected, "{words:?}");
    }
    let row = row(json!({"status": "FAILED", "error": "Declined by the bank"}));
    assert_eq!(unpaid(&[row]), declined("Declined by the bank", "FAILED"));
}
