//! A shop's backend: one thing to buy, paid through the hosted checkout.
//!
//! ```sh
//! cargo run -p examples --bin shop          # then open http://127.0.0.1:3000
//! ```
//!
//! `PAYMENTS_URL` and `PAYMENTS_KEY` name another server and key than the sandbox on this machine.
#![forbid(unsafe_code)]

use std::{env, error::Error, net::SocketAddr};

use payments_client::{Client, CreatePayment, IdempotencyKey, Metadata, PaymentId, Status};
use warp::{
    Filter,
    http::{Response, StatusCode, header},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let key = env::var("PAYMENTS_KEY").unwrap_or_else(|_| "sk_test_demo".into());
    let url = env::var("PAYMENTS_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let client = Client::builder(key).base_url(url).build()?;
    let listen: SocketAddr = env::var("SHOP_LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into()).parse()?;

    let listener = tokio::net::TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    println!("the shop is open on http://{address}");

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

/// What the checkout adds to our address. A browser brings it, so it is only a hint.
#[derive(serde::Deserialize)]
struct Returned {
    payment_id: String,
}

/// The customer buys: make a payment and send them to the checkout.
async fn buy(client: Client, shop: SocketAddr) -> Response<String> {
    let outcome: Result<_, Box<dyn Error + Send + Sync>> = async {
        // The order's number is the idempotency key: whatever is repeated, the order is paid once.
        let order =
            format!("order-{}", std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis());
        let params = CreatePayment::new("750".parse()?, format!("http://{shop}/paid"), format!("http://{shop}/"))
            .description("One cup")
            .metadata(Metadata::new(format!(r#"{{"order":"{order}"}}"#))?);
        Ok(client.payments().create(params).idempotency_key(IdempotencyKey::new(order)?).await?)
    }
    .await;
    match outcome {
        Ok(payment) => answer(StatusCode::SEE_OTHER, Some(&payment.checkout_url), String::new()),
        Err(error) => {
            eprintln!("no payment was made: {error}");
            answer(StatusCode::BAD_GATEWAY, None, "We cannot take payments just now.".into())
        }
    }
}

/// The customer is back: ask the API whether they paid.
async fn paid(client: Client, returned: Returned) -> Response<String> {
    let Ok(id) = returned.payment_id.parse::<PaymentId>() else {
        return answer(StatusCode::NOT_FOUND, None, "We do not know this payment.".into());
    };
    match client.payments().retrieve(&id).await {
        Ok(payment) if payment.status == Status::Completed => {
            answer(StatusCode::OK, None, format!("Thank you. Your cup is on its way ({}).", payment.id))
        }
        Ok(payment) => answer(StatusCode::OK, None, format!("Your payment is {}.", payment.status)),
        Err(error) if error.is_not_found() => {
            answer(StatusCode::NOT_FOUND, None, "We do not know this payment.".into())
        }
        Err(error) => {
            eprintln!("the payment cannot be read: {error}");
            answer(StatusCode::BAD_GATEWAY, None, "We are checking your payment.".into())
        }
    }
}

fn answer(status: StatusCode, location: Option<&str>, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    if let Some(location) = location.and_then(|location| location.parse().ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
