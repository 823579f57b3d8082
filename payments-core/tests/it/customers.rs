//! A customer's data in requests and logs.

use payments_core::{CreatePayment, Customer, Environment, MobileNumber};

/// The customer of a create request with these fields, or the faults.
fn customer(fields: &str) -> Result<Option<Customer>, Vec<String>> {
    let body = format!(r#"{{"amount":1,"success_url":"https://a.example","cancel_url":"https://a.example",{fields}}}"#);
    CreatePayment::from_json(body.as_bytes(), Environment::Test)
        .map(|params| params.customer)
        .map_err(|invalid| invalid.into_sentences())
}

fn asha() -> Customer {
    Customer { name: Some("Asha".into()), ..Customer::default() }
}

#[test]
fn a_customer_is_given_as_an_object_by_flat_fields_or_not_at_all() {
    for fields in [
        r#""customer":{"name":"Asha"}"#,
        r#""customerName":"Asha""#,
        r#""customer":{},"customerName":"Asha""#,
        r#""customer":{"name":"Asha"},"customerName":"Asha""#,
    ] {
        assert_eq!(customer(fields), Ok(Some(asha())), "{fields}");
    }
    assert_eq!(customer(r#""customer":{}"#), Ok(Some(Customer::default())));
    assert_eq!(customer(r#""description":"A cup""#), Ok(None));
}

#[test]
fn two_names_for_one_customer_are_refused() {
    let sentences = customer(r#""customer":{"name":"Asha"},"customerName":"Rahim""#).unwrap_err();
    let expected = "customerName and customer.name disagree; give one of them, or the same in both";
    assert_eq!(sentences, [expected]);
}

#[test]
fn a_log_shows_which_fields_a_customer_has_and_no_value() {
    let shown = format!("{:?}", asha());
    assert!(shown.starts_with("Customer { name: Some(\"given\"), email: None, phone: None"), "{shown}");
    let number: MobileNumber = "01712345678".parse().unwrap();
    assert_eq!(format!("{number:?}"), "MobileNumber(..)");
}
