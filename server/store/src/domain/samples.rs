//! Records for tests.
#![allow(clippy::unwrap_used)]

use payments_core::{CreatePayment, Environment, FeeRate, Money, NewPayment, PaymentId, RANDOM_BYTES, Slot, Timestamp};

use super::{GatewayAttempt, GatewayName, Session};

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000).unwrap()
}

pub fn session() -> Session {
    let params = CreatePayment::of(Money::taka(100)).success_url("https://a.example/").cancel_url("https://a.example/");
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, at(0), [1; RANDOM_BYTES]),
        developer_id: "dev_1".parse().unwrap(),
        app_id: None,
        environment: Environment::Live,
        fee_rate: FeeRate::from_basis_points(250).unwrap(),
        checkout_url: String::new(),
        now: at(0),
    };
    Session::new(payments_core::create(params, new).payment, at(60))
}

pub fn attempt(invoice: &str) -> GatewayAttempt {
    GatewayAttempt {
        gateway: GatewayName::of("wallet"),
        invoice: invoice.to_owned(),
        external_id: format!("TR-{invoice}"),
        customer_url: String::new(),
        capture_sent_at: None,
        transaction: None,
        failure: None,
        failure_code: None,
        paid_url: None,
        silent_since: None,
    }
}
