//! The typed client of the payments API, for a merchant's backend.
//!
//! ```no_run
//! use payments_client::{Client, CreatePayment};
//!
//! # async fn buy() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(std::env::var("PAYMENTS_KEY")?)?;
//! let order = CreatePayment::new("1250".parse()?, "https://shop.example/paid", "https://shop.example/cart")
//!     .description("Two cups");
//! let payment = client.payments().create(order).await?;
//! println!("send the customer to {}", payment.checkout_url);
//!
//! // Later: is it paid? Ask, rather than believe what a browser brings back.
//! let payment = client.payments().retrieve(&payment.id).await?;
//! println!("{} is {}", payment.id, payment.status);
//! # Ok(())
//! # }
//! ```
//!
//! Webhooks arrive at your own server; verify them with [`webhook`], which is the crate `webhook-verify`:
//!
//! ```
//! use payments_client::{Event, EventKind, webhook::{Secret, Verifier}};
//!
//! # fn handle(header: &str, body: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let verifier = Verifier::new(Secret::new(&std::env::var("WEBHOOK_SECRET")?)?);
//! let event = Event::from_verified(verifier.verify(header, body)?)?;
//! if event.kind() == &EventKind::PaymentCompleted {
//!     let payment = event.payment()?;
//!     println!("ship {}", payment.merchant_transaction_id);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Use it from a backend only: whoever has a secret key can act as the merchant.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod client;
mod error;
mod idempotency_key;
mod payments;
mod secret_key;
mod webhooks;

pub use client::{Client, ClientBuilder};
pub use error::{Error, Result};
pub use idempotency_key::{IdempotencyKey, IdempotencyKeyError};
pub use payments::{CreatePaymentRequest, ListPayments, Payments};
pub use payments_core::{
    Amount, CreatePayment, CreateWebhook, Currency, Customer, Environment, ErrorBody, Event, EventKind, Message,
    Metadata, Page, Payment, PaymentId, PaymentMethod, RawStatus, Refund, RefundStatus, Status, Subscription,
    Timestamp, WebhookEndpoint, WebhookId,
};
pub use secret_key::{SecretKey, SecretKeyError};
pub use webhook_verify as webhook;
pub use webhooks::{CreateWebhookRequest, Webhooks};
