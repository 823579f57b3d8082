//! Creates a payment, prints the URL of its checkout page, and waits until it has an outcome:
//!
//! ```sh
//! cargo run                                        # the server with its sandbox, in another terminal
//! cargo run -p payments-client --example buy
//! ```
//!
//! `PAYMENTS_URL` and `PAYMENTS_KEY` set the server and key. Default: the sandbox on this machine.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode, time::Duration};

use payments_client::{Client, CreatePayment, Error, Money, Standing};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot buy: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Error> {
    let key = env::var("PAYMENTS_KEY").unwrap_or_else(|_| "sk_test_demo".into());
    let url = env::var("PAYMENTS_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let client = Client::builder(key).base_url(url).build()?;

    let params = CreatePayment::of(Money::taka(750))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart")
        .description("A cup");
    let payment = client.payments().create(params).await?;
    println!("pay {} at {}", payment.money(), payment.checkout_url);

    // A shop's backend waits for a webhook instead.
    loop {
        let payment = client.payments().retrieve(&payment.id).await?;
        if Standing::of(&payment) != Standing::Open {
            println!("the payment is {}", payment.status);
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
