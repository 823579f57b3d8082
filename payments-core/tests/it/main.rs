//! Tests of the public API, as another crate uses it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checkout;
mod customers;
mod disputes;
mod example;
mod lists;
mod money;
mod refunds;
mod status;
mod unknown_fields;
mod webhooks;

use payments_core::{
    Cause, CreatePayment, DeveloperId, Environment, FeeRate, Money, NewPayment, Payment, PaymentId, RANDOM_BYTES, Slot,
    Timestamp, create, decide,
};

/// Half past three in the morning of 1 March 2026.
pub(crate) fn now() -> Timestamp {
    "2026-03-01T03:30:00Z".parse().unwrap()
}

/// A new payment with a fee of 5 %, whose customer returns to one shop or the other.
pub(crate) fn payment(environment: Environment, money: Money) -> Payment {
    let params = CreatePayment::of(money).success_url("https://shop.example/paid").cancel_url("https://cart.example/");
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now(), [1; RANDOM_BYTES]),
        developer_id: DeveloperId::new(Slot::FIRST, now(), [2; RANDOM_BYTES]),
        app_id: None,
        environment,
        checkout_url: "https://pay.example/checkout/x".into(),
        fee_rate: FeeRate::from_basis_points(500).unwrap(),
        now: now(),
    };
    create(params, new).payment
}

/// The payment after a transition.
pub(crate) fn after(payment: &Payment, cause: Cause) -> Payment {
    decide(payment, cause, now()).unwrap().payment
}
