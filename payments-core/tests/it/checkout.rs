//! What the customer's browser sends and gets.

use payments_core::{
    Cause, Currency, DemoSession, Environment, ErrorCode, Money, Pay, PaymentMethod, SimulateOutcome, Simulation,
    redirect_url,
};

use crate::{after, payment};

fn pay(json: &str) -> Pay {
    Pay::from_json(json.as_bytes()).unwrap()
}

/// The field that a payment refuses, and why.
fn refused(json: &str, environment: Environment, money: Money) -> Option<(String, ErrorCode)> {
    let invalid = pay(json).check_against(&payment(environment, money)).err()?;
    let mut fields = invalid.fields();
    assert_eq!(fields.len(), 1, "{invalid}");
    fields.pop().map(|fault| (fault.field, fault.code))
}

#[test]
fn only_a_paid_payment_leads_the_customer_to_the_success_url() {
    let test = payment(Environment::Test, Money::taka(750));
    for (outcome, status, target) in [
        (SimulateOutcome::Completed, "completed", "https://shop.example/paid"),
        (SimulateOutcome::Failed, "failed", "https://cart.example/"),
        (SimulateOutcome::Cancelled, "cancelled", "https://cart.example/"),
    ] {
        let ended = after(&test, Cause::Simulated(outcome));
        let simulation = Simulation::of(&ended);
        assert_eq!(simulation.status, ended.raw_status);
        assert_eq!(simulation.success, outcome == SimulateOutcome::Completed);
        assert_eq!(simulation.redirect_url, format!("{target}?payment_id={}&status={status}", test.id));
        assert_eq!(simulation.redirect_url, redirect_url(&ended));
    }
}

#[test]
fn a_body_of_pay_is_read_whole_and_may_be_empty() {
    assert_eq!(pay(""), Pay::default());
    let read =
        pay(r#"{"paymentMethod":"mfs","phoneNumber":"+880 1712-345678","redirectUrl":"https://shop.example/a"}"#);
    assert_eq!(read.payment_method, Some(PaymentMethod::Mfs));
    assert_eq!(read.phone_number.as_deref(), Some("01712345678"));
    assert_eq!(read.redirect_url.as_deref(), Some("https://shop.example/a"));
    let wrong = br#"{"paymentMethod":"Cash","phoneNumber":"5","redirectUrl":"/a"}"#;
    let codes: Vec<_> = Pay::from_json(wrong).unwrap_err().fields().into_iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [ErrorCode::PaymentMethodInvalid, ErrorCode::PhoneNumberInvalid, ErrorCode::UrlInvalid]);
}

#[test]
fn a_customer_is_sent_only_to_the_origin_of_one_of_the_payments_urls() {
    for (address, fits) in [
        ("https://shop.example/thanks?order=17", true),
        ("https://cart.example/again", true),
        ("https://evil.example/paid", false),
        ("https://shop.example.evil.example/paid", false),
        ("http://shop.example/paid", false),
        ("https://shop.example:8443/paid", false),
    ] {
        let json = format!(r#"{{"redirectUrl":"{address}"}}"#);
        let fault = (!fits).then(|| ("redirectUrl".to_owned(), ErrorCode::UrlNotAllowed));
        assert_eq!(refused(&json, Environment::Live, Money::taka(750)), fault, "{address}");
    }
}

/// A demo session's URLs are empty until the server fills them in.
#[test]
fn a_customer_is_sent_nowhere_if_no_url_is_a_web_address() {
    let mut stored = payment(Environment::Live, Money::taka(750));
    (stored.success_url, stored.cancel_url) = ("mailto:a@shop.example".into(), String::new());
    let asked = Pay { redirect_url: Some("mailto:b@shop.example".into()), ..Pay::default() };
    assert!(asked.check_against(&stored).is_err());
}

#[test]
fn a_demo_session_costs_100_taka_unless_its_body_says_otherwise() {
    let params = |body: &str| DemoSession::from_json(body.as_bytes()).unwrap().params;
    for body in ["", "{}"] {
        assert_eq!((params(body).amount, params(body).currency), ("100".parse().unwrap(), Currency::Bdt));
    }
    let given = params(
        r#"{"amount":12.5,"currency":"USD","description":"A cup","customerName":"Asha","customerEmail":"a@b.example"}"#,
    );
    assert_eq!((given.amount, given.currency), ("12.5".parse().unwrap(), Currency::Usd));
    assert_eq!(given.description.as_deref(), Some("A cup"));
    let customer = given.customer.unwrap();
    assert_eq!((customer.name.as_deref(), customer.email.as_deref()), (Some("Asha"), Some("a@b.example")));
    assert!(DemoSession::from_json(br#"{"amount":0}"#).is_err());
    assert!(DemoSession::from_json(br#"{"curency":"USD"}"#).is_err(), "a misspelt field");
}
