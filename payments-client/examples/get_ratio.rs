//! Measures the client's overhead over plain reqwest and serde_json, with alternating GETs on keep-alive connections.
//!
//! ```sh
//! cargo run --release -p payments-client --example get_ratio -- http://127.0.0.1:8080
//! ```
//!
//! Run the server with `--rate-limit 0`. Set `TOKIO_WORKER_THREADS=1` for a runtime with one worker.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use payments_client::{Client, CreatePayment, Money, Payment};

const ROUNDS: usize = 20_000;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".into());
    let client = Client::builder("sk_test_demo").base_url(&url).build().unwrap();
    let params =
        CreatePayment::of(Money::taka(750)).success_url("https://shop.example/a").cancel_url("https://shop.example/b");
    let id = client.payments().create(params).await.unwrap().id;
    let bare = reqwest::Client::new();
    let address = format!("{url}/api/v1/payments/{id}");

    // If a request's timeout is the runtime's next timer, setting it can wake the driver with a system call. Pass `alone`
    // as the second argument to measure without this other timer.
    if std::env::args().nth(2).as_deref() != Some("alone") {
        tokio::spawn(async {
            let mut ticks = tokio::time::interval(Duration::from_secs(1));
            loop {
                ticks.tick().await;
            }
        });
    }

    let (mut with_client, mut with_bare) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        client.payments().retrieve(&id).await.unwrap();
        with_client.push(begun.elapsed());

        let begun = Instant::now();
        let response = bare.get(&address).bearer_auth("sk_test_demo").send().await.unwrap();
        let _: Payment = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        with_bare.push(begun.elapsed());
    }
    let (client, bare) = (median(with_client), median(with_bare));
    println!("client {client:?}, bare {bare:?}, ratio {:.3}", client.as_secs_f64() / bare.as_secs_f64());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
