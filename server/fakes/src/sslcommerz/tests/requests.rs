//! What the fake refuses.

use super::*;

#[test]
fn a_session_needs_each_mandatory_field_within_its_length() {
    let merchant = Merchant::new();
    for name in ORDER.map(|(name, _)| name) {
        let begun = merchant.begin(&[(name, "")]);
        let is_optional = ["ipn_url", "value_a"].contains(&name);
        assert_eq!(begun["status"], if is_optional { "SUCCESS" } else { "FAILED" }, "{name}");
        let reason = begun["failedreason"].as_str().unwrap();
        match name {
            "store_id" | "store_passwd" => assert_eq!(reason, "Store Credential Error Or Store is De-active"),
            _ if is_optional => assert_eq!(reason, ""),
            _ => assert_eq!(reason, format!("Invalid Information! '{name}' is missing or empty.")),
        }
        let begun = merchant.begin(&[(name, &format!("https://shop.example/{}", "x".repeat(236)))]);
        assert_eq!(begun["status"], "FAILED", "{name}");
    }
    let begun = merchant.begin(&[]);
    assert_eq!(begun["status"], "SUCCESS");
    let page = begun["GatewayPageURL"].as_str().unwrap();
    assert!(page.starts_with("https://gateway.example/gwprocess/v4/gw.php?Q=PAY&SESSIONKEY="), "{page}");
}

#[test]
fn a_session_with_a_wrong_value_does_not_begin() {
    let merchant = Merchant::new();
    for (name, value) in [
        ("total_amount", "9.99"),
        ("total_amount", "500000.01"),
        ("total_amount", "12.345"),
        ("total_amount", "-20"),
        ("currency", "XXX"),
        ("currency", "bdt"),
        ("success_url", "/paid"),
        ("ipn_url", "ftp://shop.example"),
        ("num_of_item", "two"),
        ("shipping_method", "Drone"),
        ("shipping_method", "YES"),
        ("shipping_method", "SSLCOMMERZ_LOGISTIC"),
        ("product_profile", "service"),
        ("product_profile", "airline-tickets"),
        ("product_profile", "travel-vertical"),
        ("product_profile", "telecom-vertical"),
        ("emi_option", "2"),
        ("emi_max_inst_option", "12"),
        ("discount_amount", "ten"),
        ("store_passwd", "wrong"),
    ] {
        assert_eq!(merchant.begin(&[(name, value)])["status"], "FAILED", "{name} {value}");
    }
    for (name, value) in [("total_amount", "10"), ("total_amount", "500000.00"), ("tran_id", "order-1")] {
        assert_eq!(merchant.begin(&[(name, value)])["status"], "SUCCESS", "{name} {value}");
    }
    let telecom = [
        ("product_profile", "telecom-vertical"),
        ("product_type", "Prepaid"),
        ("topup_number", "1"),
        ("country_topup", "BD"),
    ];
    assert_eq!(merchant.begin(&telecom)["status"], "SUCCESS");
}

#[test]
fn a_lenient_fake_needs_the_essential_fields_and_accepts_any_profile() {
    let merchant = Merchant::new();
    merchant.control("be_strict", &json!({"strict": false}));
    assert_eq!(merchant.begin(&[("product_profile", "service"), ("num_of_item", "")])["status"], "SUCCESS");
    assert_eq!(merchant.begin(&[("cus_phone", "")])["status"], "FAILED");
    merchant.fake.be_strict(true);
    assert_eq!(merchant.begin(&[("product_profile", "service")])["status"], "FAILED");
}

#[test]
fn a_multipart_session_is_refused_until_the_fake_takes_it() {
    let merchant = Merchant::new();
    let part = |(name, value)| format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let body = format!("{}--x--\r\n", ORDER.map(part).concat());
    let begin = || {
        let kind = "multipart/form-data; boundary=x";
        let Answer { body, .. } = merchant.call(Method::POST, SESSION, Form::default(), kind, body.clone());
        serde_json::from_str::<Value>(&body).unwrap()
    };
    assert_eq!(begin()["failedreason"], "Store Credential Error Or Store is De-active");
    merchant.fake.take_multipart(true);
    assert_eq!(begin()["status"], "SUCCESS");
    assert_eq!(merchant.fake.books()[0].reference, "order-1");
}

#[test]
fn api_connect_says_why_a_call_is_refused() {
    let merchant = Merchant::new();
    for path in [VALIDATE, TRANSACTION] {
        assert_eq!(merchant.get(path, &[]), json!({"APIConnect": "INVALID_REQUEST"}));
        let known = [("val_id", "x"), ("tran_id", "x")];
        let wrong = [("store_passwd", "wrong")];
        assert_eq!(merchant.get(path, &[&known[..], &wrong].concat()), json!({"APIConnect": "FAILED"}));
        merchant.fake.deactivate_store(true);
        assert_eq!(merchant.get(path, &known), json!({"APIConnect": "INACTIVE"}));
        merchant.fake.deactivate_store(false);
        assert_eq!(merchant.get(path, &[("format", "xml"), ("val_id", "x")]), json!({"APIConnect": "INVALID_REQUEST"}));
    }
    assert_eq!(merchant.validate("unknown")["status"], "INVALID_TRANSACTION");
    assert_eq!(merchant.query("unknown"), json!({"APIConnect": "DONE", "no_of_trans_found": 0, "element": []}));
    assert_eq!(merchant.get(TRANSACTION, &[("sessionkey", "x")])["status"], "INVALID_TRANSACTION");
}

#[test]
fn post_with_a_query_works_and_a_session_by_get_does_not() {
    let merchant = Merchant::new();
    let query = form([("store_id", STORE_ID), ("store_passwd", STORE_PASSWORD), ("tran_id", "x")]);
    let answer = merchant.call(Method::POST, TRANSACTION, query.clone(), "", String::new());
    assert!(answer.body.contains("\"DONE\""), "{}", answer.body);
    assert_eq!(merchant.call(Method::GET, SESSION, query.clone(), "", String::new()).status.as_u16(), 405);
    assert_eq!(merchant.call(Method::GET, "/elsewhere", query, "", String::new()).status.as_u16(), 404);
}

#[test]
fn during_maintenance_every_call_answers_a_page_and_has_no_effect() {
    let merchant = Merchant::new();
    merchant.control("maintenance", &json!({}));
    let order = encoded(&form(ORDER));
    let kind = "application/x-www-form-urlencoded";
    let answer = merchant.call(Method::POST, SESSION, Form::default(), kind, order);
    assert_eq!((answer.status.as_u16(), answer.body.starts_with("<!doctype html>")), (200, true));
    assert!(merchant.query("order-1").is_string());
    merchant.control("maintenance", &json!({"on": false}));
    assert!(merchant.fake.books().is_empty());
}
