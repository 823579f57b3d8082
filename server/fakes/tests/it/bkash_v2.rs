//! Version 2 of bKash's API, and refunds in both versions.

use std::collections::BTreeSet;

use gateway_fakes::{Fault, Running, bkash, bkash::Bkash};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Caller, V1, V2, order};

async fn start() -> (Running<Bkash>, Caller) {
    let fake = Running::start(Bkash::v2(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::new(&fake, &V2).await;
    (fake, caller)
}

fn order_v2(invoice: &str) -> Value {
    let mut order = order(invoice);
    order.as_object_mut().unwrap().remove("mode");
    order
}

impl Caller {
    /// Creates a payment of v2. Returns its id.
    async fn create(&self, invoice: &str) -> String {
        let made = self.call("/payment/create", &order_v2(invoice)).await.unwrap();
        made["paymentId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// The code with which v2 refuses a call. Checks the failure's shape.
    async fn code(&self, path: &str, body: &Value) -> String {
        let request = self.authorized(path, body, &self.token);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {body}");
        let failure: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let names: BTreeSet<_> = failure.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = BTreeSet::from(["errorMessageBn", "errorMessageEn", "externalCode", "internalCode"]);
        assert_eq!(names, expected, "{path} {body}");
        failure["externalCode"].as_str().unwrap().to_owned()
    }

    async fn execute(&self, id: &str) -> String {
        self.code("/payment/execute", &json!({"paymentId": id})).await
    }
}

/// Pays in v2. Returns the body of the payment's refund.
async fn paid(fake: &Running<Bkash>, caller: &Caller, invoice: &str) -> Value {
    let id = caller.create(invoice).await;
    fake.program().approve(&id, bkash::WALLET).unwrap();
    let done = caller.call("/payment/execute", &json!({"paymentId": id})).await.unwrap();
    assert!(done["trxId"].is_string() && done.get("statusCode").is_none(), "{done}");
    json!({"paymentId": id, "trxId": done["trxId"], "refundAmount": "5.00", "sku": "cups", "reason": "damaged"})
}

#[tokio::test]
async fn the_bkash_fake_refuses_invalid_requests_of_v2_as_the_gateway_does() {
    let (fake, caller) = start().await;
    for (field, value, code) in [
        ("amount", json!(15), "2065"),
        ("amount", json!("15"), "2006"),
        ("amount", json!("0.99"), "2006"),
        ("currency", json!("USD"), "2007"),
        ("intent", json!("authorization"), "2008"),
        ("callbackURL", json!("/back"), "2049"),
        ("payerReference", json!("x".repeat(256)), "2048"),
        ("merchantInvoiceNumber", json!("a<b"), "2031"),
        ("merchantInvoiceNumber", Value::Null, "2065"),
    ] {
        let mut wrong = order_v2("i-1");
        wrong[field] = value;
        assert_eq!(caller.code("/payment/create", &wrong).await, code, "{wrong}");
    }
    fake.program().refuse_mode(true);
    assert_eq!(caller.code("/payment/create", &order("i-1")).await, "2063");
    fake.program().refuse_mode(false);
    assert!(caller.call("/payment/create", &order("i-1")).await.unwrap()["signature"].is_string());
    assert_eq!(caller.code("/payment/create", &order_v2("i-1")).await, "2029");
    for name in ["paymentID", "trxId"] {
        assert_eq!(caller.code("/payment/execute", &json!({(name): "?"})).await, "2002");
    }
    fake.program().require_bearer(true);
    assert_eq!(caller.call("/query/payment", &json!({})).await.unwrap(), json!({"message": "Unauthorized"}));
    let bearer = format!("Bearer {}", caller.token);
    let response = caller.authorized("/query/payment", &json!({}), &bearer).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_bad_refresh_token_is_refused_and_the_credentials_still_work() {
    let fake = Running::start(Bkash::v2(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::without_token(&fake, &V2);
    let refused = caller.ask_for_token("/auth/refresh-token", json!({"refresh_token": "old"})).await;
    assert_eq!(refused["externalCode"], "9999");
    let granted = caller.ask_for_token("/auth/grant-token", json!({})).await;
    assert_eq!(granted["statusCode"], "0000", "only a token has a status code in v2");
}

#[tokio::test]
async fn an_execute_before_approval_uses_a_payment_of_v2_up_and_keeps_one_of_v1_open() {
    let (fake, caller) = start().await;
    let early = caller.create("i-1").await;
    assert_eq!(caller.execute(&early).await, "2056");
    assert_eq!(fake.program().approve(&early, bkash::WALLET), None, "the payment is used up");
    assert_eq!(caller.execute(&early).await, "2056");
    let poor = caller.create("i-2").await;
    fake.program().approve(&poor, bkash::POOR_WALLET).unwrap();
    assert_eq!([caller.execute(&poor).await, caller.execute(&poor).await], ["2023", "2056"]);

    let old = Caller { base: format!("{}{}", fake.url(), V1.base), ..caller };
    let made = old.call("/create", &order("i-3")).await.unwrap();
    let id = &made["paymentID"];
    assert_eq!(old.call("/execute", &json!({"paymentID": id})).await.unwrap()["statusCode"], "2060");
    fake.program().approve(id.as_str().unwrap(), bkash::WALLET).unwrap();
    assert_eq!(old.call("/execute", &json!({"paymentID": id})).await.unwrap()["transactionStatus"], "Completed");
    assert_eq!(old.call("/execute", &json!({"paymentID": early})).await.unwrap()["statusCode"], "2056");
    assert_eq!(fake.program().books().iter().map(|entry| entry.taken).sum::<u32>(), 1);
}

#[tokio::test]
async fn an_equal_payment_within_two_minutes_is_refused_unless_it_is_switched_off() {
    let (fake, caller) = start().await;
    paid(&fake, &caller, "i-1").await;
    let second = caller.create("i-2").await;
    fake.program().approve(&second, bkash::WALLET).unwrap();
    assert_eq!(caller.execute(&second).await, "2029");
    fake.program().refuse_equal_payments(false);
    paid(&fake, &caller, "i-3").await;
}

#[tokio::test]
async fn a_payment_is_refunded_in_parts_up_to_its_limits() {
    let (fake, caller) = start().await;
    let refund = paid(&fake, &caller, "i-1").await;
    let path = "/refund/payment/transaction";
    let with = |field: &str, value: Value| {
        let mut changed = refund.clone();
        changed[field] = value;
        changed
    };
    for (field, value, code) in [
        ("paymentId", json!("?"), "2002"),
        ("trxId", json!("?"), "2077"),
        ("refundAmount", Value::Null, "2065"),
        ("refundAmount", json!("5.0"), "2006"),
        ("refundAmount", json!("15.01"), "2072"),
        ("sku", json!(""), "2073"),
        ("sku", json!("x".repeat(256)), "2075"),
        ("reason", Value::Null, "2078"),
        ("reason", json!("x".repeat(256)), "2076"),
    ] {
        let wrong = with(field, value);
        assert_eq!(caller.code(path, &wrong).await, code, "{wrong}");
    }
    fake.program().empty_balance(true);
    assert_eq!(caller.code(path, &refund).await, "2023");
    fake.program().empty_balance(false);
    for part in 1..=10 {
        let done = caller.call(path, &with("refundAmount", json!(format!("0.{part:02}")))).await.unwrap();
        assert_eq!(done["refundTransactionStatus"], "Completed", "{done}");
        if part == 1 {
            assert_eq!(caller.code(path, &with("refundAmount", json!("0.01"))).await, "2901", "an equal refund");
        }
    }
    assert_eq!(caller.code(path, &refund).await, "2901", "an eleventh refund");
    let entry = fake.program().books().remove(0);
    assert_eq!((entry.taken, entry.refunded, entry.refunded_minor), (1, 10, 55));
    let unpaid = caller.create("i-2").await;
    assert_eq!(caller.code(path, &with("paymentId", json!(unpaid))).await, "2127");
}

#[tokio::test]
async fn refunds_of_v1_have_its_names_and_its_status_has_no_amount() {
    let (fake, caller) = start().await;
    let refund = paid(&fake, &caller, "i-1").await;
    let old = Caller { base: format!("{}{}", fake.url(), V1.base), ..caller };
    let status = json!({"paymentID": refund["paymentId"], "trxID": refund["trxId"]});
    assert_eq!(old.call("/payment/refund", &status).await.unwrap()["statusCode"], "2033");
    let mut body = status.clone();
    for (field, value) in [("amount", "15.00"), ("sku", "cups"), ("reason", "damaged")] {
        body[field] = json!(value);
    }
    let done = old.call("/payment/refund", &body).await.unwrap();
    assert_eq!((&done["statusCode"], &done["transactionStatus"]), (&json!("0000"), &json!("Completed")), "{done}");
    assert_eq!(done["originalTrxID"], refund["trxId"]);
    assert_eq!(old.call("/payment/refund", &status).await.unwrap(), done);
    assert_eq!(old.call("/payment/refund", &body).await.unwrap()["statusCode"], "2901");
    assert_eq!(fake.program().books()[0].refunded_minor, 1500);
}

#[tokio::test]
async fn a_lost_refund_reply_is_found_by_the_status_call() {
    let (fake, caller) = start().await;
    let refund = paid(&fake, &caller, "i-1").await;
    let listed = async || {
        let status = json!({"paymentId": refund["paymentId"], "trxId": refund["trxId"]});
        let answer = caller.call("/refund/payment/status", &status).await.unwrap();
        let refunds = answer["refundTransactions"].as_array().unwrap().clone();
        refunds.iter().map(|it| it["refundAmount"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    fake.faults().next("refund", Fault::DropBefore);
    assert_eq!(caller.call("/refund/payment/transaction", &refund).await, None);
    assert!(listed().await.is_empty(), "nothing happened, so the refund may be sent again");
    fake.faults().next("refund", Fault::DropAfter);
    assert_eq!(caller.call("/refund/payment/transaction", &refund).await, None);
    fake.faults().next("refund_status", Fault::Truncated);
    let status = json!({"paymentId": refund["paymentId"], "trxId": refund["trxId"]});
    assert_eq!(caller.call("/refund/payment/status", &status).await, None);
    assert_eq!(listed().await, ["5.00"]);
    let strange = json!({"paymentId": refund["paymentId"], "trxId": "?"});
    assert_eq!(caller.code("/refund/payment/status", &strange).await, "3045");
    let operations = ["token", "create", "execute", "refund", "refund_status"];
    assert_eq!(operations.map(|operation| fake.faults().calls_of(operation)), [1, 1, 1, 2, 4]);
    assert_eq!(fake.program().books()[0].refunded, 1);
}

#[tokio::test]
async fn the_settings_of_each_version_name_its_base_address() {
    for (fake, expected) in [
        (Bkash::new(), "/v1.2.0-beta\"\napp_key"),
        (Bkash::v2(), "/v2\"\nversion = \"v2\"\nrefunds = \"by_api\"\napp_key"),
    ] {
        let fake = Running::start(fake, "127.0.0.1:0").await.unwrap();
        assert!(fake.settings().starts_with(&format!("[bkash]\nbase_url = \"{}{expected}", fake.url())));
    }
}
