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

mod account;
#[cfg(feature = "blocking")]
mod blocking;
mod budget;
mod checkout;
mod client;
mod error;
mod idempotency_key;
mod jitter;
mod payments;
mod reconcile;
mod request;
mod response;
mod retry;
mod retry_after;
mod secret_key;
mod stream;
mod webhooks;

pub use account::AccountResource;
pub use checkout::{Checkout, CreateDemoSession, PayResult};
pub use client::{Client, ClientBuilder, KeyHeader};
pub use error::{Error, Result};
pub use idempotency_key::{IdempotencyKey, IdempotencyKeyError};
pub use payments::Payments;
pub use payments_core::{
    Account, AccountBalance, Amount, AppId, Balance, Balances, CheckoutSession, CreatePayment, CreateWebhook, Currency,
    Customer, Delivery, DeliveryStatus, DemoCheckout, DeveloperApp, Environment, ErrorBody, Event, EventKind, Message,
    Metadata, Page, Pay, Payment, PaymentId, PaymentMethod, RawStatus, Refund, RefundStatus, SimulateOutcome,
    Simulation, Status, Subscription, Timestamp, Volume, WebhookEndpoint, WebhookId, WorkspaceProfile,
};
pub use reconcile::{Reconciled, Standing};
pub use request::{IdempotentRequest, Request};
pub use response::{RateLimit, Response};
pub use secret_key::{SecretKey, SecretKeyError};
pub use stream::Listed;
pub use webhook_verify as webhook;
pub use webhooks::{Removed, Verdict, VerifySignature, Webhooks};
