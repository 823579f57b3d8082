//! Payments, their notices, validations and queries.

use super::*;
use crate::{Back, Does, Fake, sslcommerz::signed};

fn page(session: &str) -> String {
    format!("https://gateway.example{PAGE}?Q=PAY&SESSIONKEY={session}")
}

/// Checks a notice's signature.
fn assert_signed(notice: &Form) {
    let names: Vec<&str> = notice["verify_key"].split(',').collect();
    let again = signed(form(names.iter().map(|name| (*name, notice[*name].as_str()))), STORE_PASSWORD);
    assert_eq!(again, *notice);
}

#[test]
fn a_customer_goes_back_by_post_with_the_fields_of_the_notice() {
    let merchant = Merchant::new();
    for (does, status, target) in [
        (Does::Pays, "VALID", "paid"),
        (Does::HasNoMoney, "FAILED", "failed"),
        (Does::Cancels, "CANCELLED", "cancelled"),
    ] {
        let session = merchant.session(&[]);
        let Back { method, url, form } = merchant.fake.visit(&page(&session), does).unwrap();
        assert_eq!((method, url), (Method::POST, format!("https://shop.example/{target}")));
        let notices = merchant.fake.take_notices();
        assert_eq!((notices.len(), notices[0].url.as_str(), &notices[0].form), (1, "https://shop.example/ipn", &form));
        assert_eq!(form["status"], status);
        assert_eq!((form["tran_id"].as_str(), form["value_a"].as_str()), ("order-1", "pay_1"));
        assert!(!form.contains_key("sessionkey"));
        assert_eq!(form.get("val_id").is_some_and(|id| !id.is_empty()), does == Does::Pays);
        assert_signed(&form);
        assert_eq!(merchant.fake.visit(&page(&session), Does::Pays), None, "the page is closed");
        assert!(!merchant.fake.leave(&session) && !merchant.fake.expire(&session));
    }
    let taken: Vec<_> = merchant.fake.books().iter().map(|entry| (entry.taken, entry.is_refused)).collect();
    assert_eq!(taken, [(1, false), (0, true), (0, true)]);
    assert_eq!(merchant.fake.visit("https://gateway.example/elsewhere", Does::Pays), None);
}

#[test]
fn a_session_ends_without_the_customer() {
    let merchant = Merchant::new();
    for (name, status) in [("leave", "UNATTEMPTED"), ("expire", "EXPIRED")] {
        let session = merchant.session(&[]);
        merchant.control(name, &json!({"session": session}));
        let form = merchant.fake.take_notices().remove(0).form;
        assert_eq!(parts(&json!(*form), &["status", "val_id", "bank_tran_id"]), [status, "", ""]);
        assert_signed(&form);
        assert_eq!(merchant.get(TRANSACTION, &[("sessionkey", &session)])["status"], "FAILED");
        assert_eq!(merchant.fake.pay(&session), None);
    }
}

#[test]
fn a_payment_is_valid_at_the_first_validation_and_validated_later() {
    let merchant = Merchant::new();
    let (val_id, bank_tran_id) = merchant.paid(&[("total_amount", "145.5")]);
    assert_eq!(merchant.query("order-1")["element"][0]["status"], "VALID");
    let validated = crate::at(1_578_243_501, || merchant.validate(&val_id));
    assert_eq!(
        parts(&validated, &["APIConnect", "status", "amount", "currency_amount", "store_amount", "discount_amount"]),
        [json!("DONE"), json!("VALID"), json!("145.50"), json!("145.5"), json!("141.86"), json!(0)]
    );
    assert_eq!(
        parts(&validated, &["tran_id", "val_id", "bank_tran_id", "validated_on", "risk_level", "currency_type"]),
        ["order-1", &val_id, &bank_tran_id, "2020-01-05 22:58:21", "0", "BDT"]
    );
    assert_eq!(merchant.validate(&val_id)["status"], "VALIDATED");
    let row = &merchant.query("order-1")["element"][0];
    assert_eq!(parts(row, &["status", "amount", "currency_amount"]), ["VALIDATED", "145.5", "145.50"]);
    assert!(row["bank_gw"].is_string());
    assert_eq!(merchant.fake.books()[0].kept_minor, 364);
}

#[test]
fn a_session_is_pending_once_its_page_was_opened() {
    let merchant = Merchant::new();
    let session = merchant.session(&[]);
    assert_eq!(merchant.query("order-1")["no_of_trans_found"], 0);
    let query = form([("SESSIONKEY", session.as_str())]);
    let shown = merchant.call(Method::GET, PAGE, query.clone(), "", String::new()).body;
    assert!(["confirm", "fail", "cancel"].iter().all(|id| shown.contains(&format!("id={id}>"))), "{shown}");
    let rows = merchant.query("order-1");
    assert_eq!(parts(&rows["element"][0], &["status", "val_id", "amount"]), ["PENDING", "", "150"]);
    let by_session = merchant.get(TRANSACTION, &[("sessionkey", &session)]);
    assert_eq!(parts(&by_session, &["status", "sessionkey", "tran_id"]), ["PENDING", &session, "order-1"]);

    let back = merchant.call(Method::POST, PAGE, query.clone(), "", "action=confirm".into()).body;
    assert!(back.contains("method=post action=\"https://shop.example/paid\"") && back.contains("submit()"), "{back}");
    assert!(back.contains("name=\"verify_sign_sha2\"") && back.contains("<button id=continue>"));
    let closed = merchant.call(Method::POST, PAGE, query, "", "action=confirm".into()).body;
    assert!(closed.contains("not open"), "{closed}");
    assert_eq!(merchant.fake.books()[0].taken, 1);
}

#[test]
fn another_currency_is_converted_to_taka() {
    let merchant = Merchant::new();
    let (val_id, _) = merchant.paid(&[("total_amount", "12.50"), ("currency", "USD")]);
    let shown = merchant.validate(&val_id);
    let names =
        ["currency", "amount", "currency_type", "currency_amount", "currency_rate", "base_fair", "store_amount"];
    assert_eq!(parts(&shown, &names), ["BDT", "1500.00", "USD", "12.5", "120.0000", "0.00", "1462.5"]);
    assert_eq!(merchant.fake.books()[0].amount_minor, 150_000);
    assert_eq!(merchant.begin(&[("total_amount", "0.08"), ("currency", "USD")])["status"], "FAILED");
}

#[test]
fn one_tran_id_has_several_transactions() {
    let merchant = Merchant::new();
    let first = merchant.session(&[]);
    let second = merchant.session(&[]);
    merchant.fake.fail(&first).unwrap();
    merchant.fake.pay(&second).unwrap();
    assert_eq!(merchant.fake.pay_again(&first), None, "it is not paid");
    let again = merchant.fake.pay_again(&second).unwrap();
    let rows = merchant.query("order-1");
    let words: Vec<_> = rows["element"].as_array().unwrap().iter().map(|row| row["status"].clone()).collect();
    assert_eq!((&rows["no_of_trans_found"], words), (&json!(3), vec!["FAILED".into(), "VALID".into(), "VALID".into()]));
    assert_eq!(rows["element"][2]["bank_tran_id"], again.as_str());
    assert_eq!(merchant.fake.take_notices().len(), 3);
    assert_eq!(merchant.fake.books()[1].taken, 2);
}

#[test]
fn money_that_is_taken_late_sends_no_notice_and_is_found_by_query() {
    let merchant = Merchant::new();
    let session = merchant.session(&[]);
    merchant.fake.fail(&session).unwrap();
    merchant.fake.take_notices();
    let fake: &dyn Fake = &merchant.fake;
    fake.take_late(&session);
    fake.take_late(&session);
    assert_eq!(merchant.query("order-1")["element"][1]["status"], "VALID");
    assert_eq!(merchant.get(TRANSACTION, &[("sessionkey", &session)])["status"], "VALID");
    assert_eq!((fake.books()[0].taken, merchant.fake.take_notices().len()), (1, 0));
}

#[test]
fn controls_change_what_the_gateway_says_and_not_the_money() {
    let merchant = Merchant::new();
    let session = merchant.session(&[]);
    merchant.control("set_risk", &json!({"session": session}));
    let (risky, again) = (merchant.fake.pay(&session).unwrap().form, merchant.fake.repeat_notice(&session));
    assert_eq!((risky["risk_level"].as_str(), risky["risk_title"].as_str()), ("1", "Not Safe"));
    assert!(again && merchant.fake.take_notices().iter().all(|notice| notice.form == risky));
    merchant.control("silence_validation", &json!({"session": session}));
    assert_eq!(merchant.validate(&risky["val_id"]), json!(""));
    assert_eq!(merchant.query("order-1")["element"][0]["status"], "VALID");
    merchant.control("silence_validation", &json!({"session": session, "silent": false}));
    merchant.control("falsify_amount", &json!({"session": session, "amount": 14_999}));
    let shown = merchant.validate(&risky["val_id"]);
    assert_eq!(parts(&shown, &["status", "amount", "currency_amount"]), ["VALID", "149.99", "149.99"]);
    let entry = &merchant.control("books", &json!({}))[0];
    assert_eq!((&entry["amountMinor"], &entry["taken"]), (&json!(15_000), &json!(1)));
}
