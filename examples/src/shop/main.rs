//! A shop's backend: a shelf, the hosted checkout, and a page that tells what became of the order.
//!
//! ```sh
//! cargo run -p examples --bin shop          # then open http://127.0.0.1:3000
//! ```
//!
//! `PAYMENTS_URL` and `PAYMENTS_KEY` set the server and key. Default: the sandbox on this machine.
#![forbid(unsafe_code)]

mod catalogue;
mod pages;

use std::{
    env,
    error::Error,
    net::SocketAddr,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use payments_client::{Client, CreatePayment, LineItem, Metadata, Payment, PaymentId};
use serde::Deserialize;
use serde_json::json;
use warp::{Filter, http::Response};

use crate::catalogue::{Product, product};

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

    let shop = Arc::new(Shop { client, address, orders: Orders::new() });
    let with_shop = warp::any().map(move || Arc::clone(&shop));
    let shelf = warp::path::end().and(warp::get()).map(pages::shelf);
    let buy = warp::path!("buy")
        .and(warp::post())
        .and(warp::body::content_length_limit(1024))
        .and(warp::body::form())
        .and(with_shop.clone())
        .then(|form: Buy, shop: Arc<Shop>| async move { shop.buy(&form).await });
    let order = warp::path!("order")
        .and(warp::get())
        .and(warp::query())
        .and(with_shop)
        .then(|returned: Returned, shop: Arc<Shop>| async move { shop.order(&returned).await });
    warp::serve(shelf.or(buy).or(order)).incoming(listener).run().await;
    Ok(())
}

/// The form below a product.
#[derive(Deserialize)]
struct Buy {
    product: String,
}

/// The query that the checkout appends to our URLs. Do not trust it, since it comes from the browser.
#[derive(Deserialize)]
struct Returned {
    payment_id: String,
}

struct Shop {
    client: Client,
    address: SocketAddr,
    orders: Orders,
}

impl Shop {
    /// Creates a payment and redirects the customer to the checkout.
    async fn buy(&self, form: &Buy) -> Response<String> {
        let Some(product) = product(&form.product) else { return pages::not_found() };
        match self.create_payment(product).await {
            Ok(payment) => pages::redirect(&payment.checkout_url),
            Err(error) => {
                eprintln!("cannot create the payment: {error}");
                pages::unavailable()
            }
        }
    }

    async fn create_payment(&self, product: &Product) -> Result<Payment, Box<dyn Error + Send + Sync>> {
        let order = self.orders.next();
        let back = format!("http://{}/order", self.address);
        let params = CreatePayment::of(product.price)
            .success_url(&back)
            .cancel_url(&back)
            .description(product.name)
            .line_items([LineItem::new(product.name).quantity(1).amount(product.price.amount)])
            // An order is paid once, however late it is tried again.
            .unique_merchant_transaction_id(&order)
            .metadata(Metadata::of(json!({ "product": product.id }))?);
        // With the order number as the idempotency key, retries do not create a second payment.
        Ok(self.client.payments().create(params).idempotency_key(order).await?)
    }

    /// Asks the API what became of the order.
    async fn order(&self, returned: &Returned) -> Response<String> {
        let Ok(id) = returned.payment_id.parse::<PaymentId>() else { return pages::not_found() };
        match self.client.payments().retrieve(&id).await {
            Ok(payment) => pages::order(&payment),
            Err(error) if error.is_not_found() => pages::not_found(),
            Err(error) => {
                eprintln!("cannot retrieve the payment: {error}");
                pages::unavailable()
            }
        }
    }
}

/// Order numbers. A real shop takes them from its database.
struct Orders {
    opened_at: u64,
    last: AtomicU64,
}

impl Orders {
    fn new() -> Self {
        let opened_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { opened_at, last: AtomicU64::new(0) }
    }

    fn next(&self) -> String {
        format!("order-{}-{}", self.opened_at, self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
