//! What a payment is: the API's resources as they stand on the wire, exact money, and the rules by which a payment
//! moves. Pure: nothing here does I/O, reads a clock or makes up a random number; whoever calls passes them in.
//!
//! ```
//! use payments_core::{Amount, CreatePayment, Currency};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let params = CreatePayment::new("37.50".parse()?, "https://shop.example/paid", "https://shop.example/cart")
//!     .currency(Currency::Usd)
//!     .description("Two cups");
//! assert_eq!(params.amount, Amount::from_minor(3750));
//! assert_eq!(serde_json::to_value(&params)?["amount"], 37.5);
//! # Ok(())
//! # }
//! ```
//!
//! Where to find what:
//!
//! - [`Payment`], [`Refund`], [`WebhookEndpoint`], [`Delivery`], [`CheckoutSession`]: the resources. Each is written
//!   by [`aliased_resource!`](mod@aliased), the one place that knows a field may have several names.
//! - [`Amount`], [`Currency`], [`FeeRate`]: money in whole paisa and cents, never in floating point.
//! - [`decide`]: the table of states. Everything that moves a payment asks it.
//! - [`Posting`]: what a move writes to the ledger.
//! - [`Event`]: what a webhook carries, readable only from bytes whose signature was verified.
#![forbid(unsafe_code)]

mod account;
pub mod aliased;
mod amount;
mod checkout;
mod create_payment;
mod currency;
mod customer;
mod decide;
mod environment;
mod error_body;
mod event;
mod fee_rate;
mod hundredths;
mod id;
mod json_fault;
mod ledger;
mod mobile_number;
mod near_miss;
mod open_enum;
mod page;
mod payment;
mod raw_json;
mod refund;
mod status;
mod timestamp;
mod transition;
mod validation;
mod web_url;
mod webhook;

pub use account::{Account, AccountBalance, Balance, Balances, DeveloperApp, Volume, WorkspaceProfile};
pub use amount::Amount;
pub use checkout::{
    CheckoutSession, DemoCheckout, DemoSession, Pay, Simulate, SimulateOutcome, Simulation, redirect_target,
    redirect_url,
};
pub use create_payment::CreatePayment;
pub use currency::{Currency, UnknownCurrency};
pub use customer::Customer;
pub use decide::{Decision, NewPayment, create, decide, settle_refund};
pub use environment::Environment;
pub use error_body::{ErrorBody, Message};
pub use event::{Envelope, Event, EventKind, EventParseError};
pub use fee_rate::FeeRate;
pub use hundredths::AmountError;
pub use id::{
    AppId, DeliveryId, DeveloperId, EventId, IdError, KeyId, PaymentId, RANDOM_BYTES, RefundId, WebhookId, WorkspaceId,
};
pub use ledger::{LedgerAccount, Posting};
pub use mobile_number::{MobileNumber, MobileNumberError};
pub use page::{Page, PageRequest};
pub use payment::{Payment, PaymentMethod};
pub use raw_json::{Metadata, MetadataError, RawJson};
pub use refund::{CreateRefund, Refund, RefundStatus};
pub use status::{RawStatus, Status};
pub use timestamp::{Timestamp, TimestampError};
pub use transition::{Cause, Refusal, transition};
pub use validation::{Fields, Invalid};
pub use webhook::{
    CreateWebhook, Delivery, DeliveryError, DeliveryErrorCode, DeliveryStatus, SigningSecret, Subscription,
    WebhookEndpoint,
};
