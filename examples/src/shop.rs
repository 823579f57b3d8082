//! A shop's backend that sells one product through the hosted checkout.
//!
//! ```sh
//! cargo run -p examples --bin shop          # then open http://127.0.0.1:3000
//! ```
//!
//! `PAYMENTS_URL` and `PAYMENTS_KEY` set the server and key. Default: the sandbox on this machine.
#![forbid(unsafe_code)]

use std::{env, error::Error, net::SocketAddr, process::ExitCode};

use payments_client::{Client, CreatePayment, Metadata, Money, PaymentId, Status};
use serde_json::json;
use warp::{
    Filter,
    http::{Response, StatusCode, header},
};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the shop ended: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let key = env::var("PAYMENTS_KEY").unwrap_or_else(|_| "sk_test_demo".into());
    let url = env::var("PAYMENTS_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let client = Client::builder(key).base_url(url).build()?;
    let listen = env::var("SHOP_LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = tokio::net::TcpListener::bind(&listen).await;
    let listener = listener.map_err(|error| format!("cannot listen on SHOP_LISTEN={listen}: {error}"))?;
    let address = listener.local_addr()?;
    println!("the shop listens on http://{address}");

    let front = warp::path::end().and(warp::get()).map(|| warp::reply::html(FRONT));
    let buying = client.clone();
    let buy = warp::path!("buy").and(warp::post()).then(move || buy(buying.clone(), address));
    let paid = warp::path!("paid")
        .and(warp::get())
        .and(warp::query::<Returned>())
        .then(move |returned: Returned| paid(client.clone(), returned));
    warp::serve(front.or(buy).or(paid)).incoming(listener).run().await;
    Ok(())
}

const FRONT: &str = r#"<!doctype html><title>Shop</title><h1>Cups</h1>
<form method="post" action="/buy"><button>Buy one for ৳750</button></form>"#;

/// The query that the checkout appends to our URL. Do not trust it, since it comes from the browser.
#[derive(serde::Deserialize)]
struct Returned {
    payment_id: String,
}

/// Creates a payment and redirects the customer to the checkout.
async fn buy(client: Client, shop: SocketAddr) -> Response<String> {
    let outcome: Result<_, Box<dyn Error + Send + Sync>> = async {
        // With the order number as the idempotency key, retries do not create a second payment.
        let order =
            format!("order-{}", std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis());
        let params = CreatePayment::of(Money::taka(750))
            .success_url(format!("http://{shop}/paid"))
            .cancel_url(format!("http://{shop}/"))
            .description("One cup")
            .metadata(Metadata::of(json!({ "order": order }))?);
        Ok(client.payments().create(params).idempotency_key(order).await?)
    }
    .await;
    match outcome {
        Ok(payment) => respond(StatusCode::SEE_OTHER, Some(&payment.checkout_url), String::new()),
        Err(error) => {
            eprintln!("cannot create the payment: {error}");
            respond(StatusCode::BAD_GATEWAY, None, "We cannot take payments at the moment.".into())
        }
    }
}

/// Asks the API whether the customer paid.
async fn paid(client: Client, returned: Returned) -> Response<String> {
    let Ok(id) = returned.payment_id.parse::<PaymentId>() else {
        return respond(StatusCode::NOT_FOUND, None, "We do not know this payment.".into());
    };
    match client.payments().retrieve(&id).await {
        Ok(payment) if payment.status == Status::Completed => {
            respond(StatusCode::OK, None, format!("Thank you. Your cup is on its way ({}).", payment.id))
        }
        Ok(payment) => respond(StatusCode::OK, None, format!("Your payment is {}.", payment.status)),
        Err(error) if error.is_not_found() => {
            respond(StatusCode::NOT_FOUND, None, "We do not know this payment.".into())
        }
        Err(error) => {
            eprintln!("cannot retrieve the payment: {error}");
            respond(StatusCode::BAD_GATEWAY, None, "We are checking your payment.".into())
        }
    }
}

fn respond(status: StatusCode, location: Option<&str>, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    if let Some(location) = location.and_then(|location| location.parse().ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
