//! Follows a payment from a request's body to its ledger, as the server does, without a server:
//!
//! ```sh
//! cargo run -p payments-core --example life_of_a_payment
//! cargo run -p payments-core --example life_of_a_payment -- '{"amount": 0, "curency": "USD"}'
//! ```
#![forbid(unsafe_code)]

use std::{env, error::Error, process::ExitCode};

use payments_core::{
    Booking, Cause, CreatePayment, DeveloperId, Environment, FeeRate, Money, NewPayment, PaymentId, RANDOM_BYTES, Slot,
    Timestamp, create, decide,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("refused: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // The body of a request, as a merchant's program serializes it.
    let params = CreatePayment::of(Money::cents(1250))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart");
    let body = env::args().nth(1).map_or_else(|| serde_json::to_string(&params), Ok)?;

    // The server parses it, and names every invalid field.
    let params = CreatePayment::from_json(body.as_bytes(), Environment::Live)
        .map_err(|invalid| invalid.into_sentences().join("; "))?;

    // The caller passes in the time and random bytes, so that tests can repeat them.
    let now = Timestamp::from_millis(1_772_335_800_000)?;
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now, [1; RANDOM_BYTES]),
        developer_id: DeveloperId::new(Slot::FIRST, now, [2; RANDOM_BYTES]),
        app_id: None,
        environment: Environment::Live,
        checkout_url: "https://pay.example/checkout".into(),
        fee_rate: FeeRate::from_basis_points(500)?,
        now,
    };
    let payment = create(params, new).payment;
    println!("{}: {}", payment.raw_status, payment.money());

    // Only the gateway's confirmation completes a live payment.
    let decision = decide(&payment, Cause::GatewayConfirmed, now)?;
    println!("{}: fee {}, net {}", decision.payment.raw_status, payment.platform_fee_amount, payment.net_amount);
    for posting in decision.booking.into_iter().flat_map(Booking::postings) {
        println!("  {:?} {:+}", posting.account, posting.minor);
    }
    Ok(())
}
