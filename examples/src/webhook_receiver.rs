//! A webhook receiver: verifies each request and prints the event.
//!
//! ```sh
//! cargo run -p examples --bin webhook-receiver
//! ```
//!
//! It creates its own endpoint. `PAYMENTS_URL` and `PAYMENTS_KEY` set the server and key; the default is the sandbox on
//! this machine. In production, create the endpoint once and set `WEBHOOK_SECRET`.
#![forbid(unsafe_code)]

use std::{env, error::Error, process::ExitCode, sync::Arc};

use bytes::Bytes;
use payments_client::{
    Client, CreateWebhook, Event, Subscription,
    webhook::{Secret, Verifier},
};
use warp::{Filter, http::StatusCode};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the webhook receiver ended: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let listen = env::var("RECEIVER_LISTEN").unwrap_or_else(|_| "127.0.0.1:9000".into());
    let listener = tokio::net::TcpListener::bind(&listen).await;
    let listener = listener.map_err(|error| format!("cannot listen on RECEIVER_LISTEN={listen}: {error}"))?;
    let address = listener.local_addr()?;
    let secret = match env::var("WEBHOOK_SECRET") {
        Ok(secret) => Secret::new(&secret)?,
        Err(_) => subscribe(&format!("http://{address}/webhooks")).await?,
    };
    let verifier = Arc::new(Verifier::new(secret));
    println!("waiting for events on http://{address}/webhooks");

    // The signature covers the raw bytes, so do not use a JSON filter here.
    let receive = warp::path!("webhooks")
        .and(warp::post())
        .and(warp::body::content_length_limit(256 * 1024))
        .and(warp::header::<String>("x-service-signature"))
        .and(warp::body::bytes())
        .map(move |signature: String, body: Bytes| match receive(&verifier, &signature, &body) {
            Ok(()) => StatusCode::OK,
            Err(error) => {
                eprintln!("rejected: {error}");
                StatusCode::BAD_REQUEST
            }
        });
    warp::serve(receive).incoming(listener).run().await;
    Ok(())
}

/// Finds or creates this endpoint, and returns its secret.
async fn subscribe(address: &str) -> Result<Secret, Box<dyn Error>> {
    let key = env::var("PAYMENTS_KEY").unwrap_or_else(|_| "sk_test_demo".into());
    let url = env::var("PAYMENTS_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let client = Client::builder(key).base_url(url).build()?;
    let known = client.webhooks().list().await?.into_iter().find(|endpoint| endpoint.url == address);
    let endpoint = match known {
        Some(endpoint) => endpoint,
        None => client.webhooks().create(CreateWebhook::new(address, Subscription::All)).await?,
    };
    Ok(Secret::new(endpoint.secret.reveal())?)
}

/// Verifies and prints an event. A real receiver queues the event and checks its id, since it may arrive twice.
fn receive(verifier: &Verifier, signature: &str, body: &[u8]) -> Result<(), Box<dyn Error>> {
    let event = Event::from_verified(verifier.verify(signature, body)?)?;
    match event.payment() {
        Ok(payment) => {
            println!("{} {} {} {} {}", event.id(), event.kind(), payment.id, payment.amount, payment.currency)
        }
        Err(_) => println!("{} {}", event.id(), event.kind()),
    }
    Ok(())
}
