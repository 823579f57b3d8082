//! Types and rules of the payments API: its resources in their wire format, exact money, and payment state transitions.
//! The crate does no I/O; callers pass in the time and random bytes.
//!
//! ```
//! use payments_core::{CreatePayment, Money};
//!
//! let params = CreatePayment::of(Money::cents(3750))
//!     .success_url("https://shop.example/paid")
//!     .cancel_url("https://shop.example/cart")
//!     .description("Two cups");
//! let json = serde_json::to_value(&params)?;
//! assert_eq!((json["amount"].as_f64(), json["currency"].as_str()), (Some(37.5), Some("USD")));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! The main items:
//!
//! - [`Payment`], [`Refund`], [`Dispute`], [`WebhookEndpoint`], [`Delivery`], [`CheckoutSession`]: the resources.
//!   [`aliased_resource!`](mod@aliased) defines them and handles fields with several names.
//! - [`Money`], [`Amount`], [`Currency`], [`FeeRate`]: money in whole paisa and cents, never in floating point.
//! - [`decide`]: applies a state transition to a payment. [`decide_dispute`]: applies a report of a dispute.
//! - [`Booking`]: a change of the double-entry [`ledger`], with its postings.
//! - [`Event`]: a webhook's body, which parses only from a verified body.
//! - [`ErrorCode`]: every code of the API's errors, with its status and meaning.
#![forbid(unsafe_code)]

mod account;
mod activity;
pub mod aliased;
mod amount;
mod api_key;
mod audit;
mod checkout;
mod create_payment;
mod currency;
mod customer;
mod day;
mod decide;
mod decide_dispute;
mod decide_payout;
mod dispute;
mod environment;
mod error_body;
mod error_code;
mod event;
mod event_page;
mod fee_rate;
mod field_name;
mod hundredths;
mod id;
mod invalid;
mod json_error;
pub mod ledger;
mod line_item;
mod mobile_number;
mod money;
mod name_case;
mod near_miss;
mod notice;
mod one_or_many;
mod open_enum;
mod page;
mod pay;
mod pay_result;
mod payment;
mod payment_page;
mod payment_urls;
mod payout;
mod payout_params;
mod payout_schedule;
mod query;
mod raw_json;
mod recover;
mod refund;
mod removed;
mod request_log;
mod sandbox;
#[cfg(feature = "schema")]
mod schema;
mod short_word;
mod simulate_payment;
mod status;
pub mod text;
mod timeline;
mod timestamp;
mod transaction;
mod transition;
mod unknown_fields;
mod validation;
mod verdict;
mod way_to_pay;
mod web_url;
mod webhook;
mod webhook_params;

pub use account::{
    Account, AccountBalance, AccountLimits, Balance, Balances, DeveloperApp, InEachCurrency, LimitInEachCurrency,
    Volume, WorkspaceProfile,
};
pub use activity::{Activity, ActivityQuery, CurrencyActivity, DayActivity};
pub use amount::Amount;
pub use api_key::ApiKey;
pub use audit::{AuditActor, AuditChange, AuditEntry, AuditPage, AuditQuery};
pub use checkout::{
    CheckoutSession, DemoCheckout, DemoSession, Simulate, SimulateOutcome, Simulation, redirect_target, redirect_url,
};
pub use create_payment::CreatePayment;
pub use currency::{Currency, UnknownCurrency};
pub use customer::Customer;
pub use day::{Day, DayError};
pub use decide::{Decision, NewPayment, create, decide, settle_refund};
pub use decide_dispute::{DisputeReport, decide_dispute};
pub use decide_payout::{NewPayout, PayoutDecision, PayoutRefusal, PayoutStep, decide_payout, request_payout};
pub use dispute::{Dispute, DisputeStatus, Disputes, MAX_DISPUTES};
pub use environment::Environment;
pub use error_body::{ErrorBody, FieldError, Message};
pub use error_code::ErrorCode;
pub use event::{Envelope, Event, EventKind, EventParseError};
pub use event_page::{EventPage, EventQuery};
pub use fee_rate::FeeRate;
pub use hundredths::AmountError;
pub use id::{
    AppId, AuditId, DeliveryId, DeveloperId, DisputeId, EventId, IdError, KeyId, PaymentId, PayoutId, RANDOM_BYTES,
    RefundId, Slot, TransactionId, WebhookId, WorkspaceId,
};
pub use ledger::{Booking, BookingKind, LedgerAccount, Posting};
pub use line_item::LineItem;
pub use mobile_number::{MobileNumber, MobileNumberError};
pub use money::{Money, MoneyError};
pub use name_case::is_same_field;
pub use notice::{Notice, NoticeKind};
pub use page::{Page, PageRequest};
pub use pay::Pay;
pub use pay_result::{PayResult, Redirect};
pub use payment::{Payment, PaymentMethod};
pub use payment_page::{PaymentPage, PaymentQuery};
pub use payment_urls::{WithoutCancelUrl, WithoutSuccessUrl};
pub use payout::{DestinationKind, Payout, PayoutDestination, PayoutPage, PayoutQuery, PayoutStatus, Statement};
pub use payout_params::{BankAccount, CreatePayout, SetDestination, Wallet, provider_title};
pub use payout_schedule::{PayoutAccount, PayoutInterval, PayoutSchedule, SetPayoutSchedule};
pub use raw_json::{Metadata, MetadataError, RawJson};
pub use recover::{RecoverWebhook, Recovered};
pub use refund::{CreateRefund, MAX_REFUNDS, NewRefund, Refund, RefundSource, RefundStatus, Refunds};
pub use removed::Removed;
pub use request_log::{LoggedRequest, RequestPage, RequestQuery};
pub use sandbox::{AdvanceSandbox, Advanced};
pub use short_word::OtherWord;
pub use simulate_payment::{SimulatePayment, SimulatedEvent};
pub use status::{RawStatus, Status};
pub use timeline::{SummaryLine, SummaryTopic, Timeline, TimelineDelivery, TimelineEntry, TimelineEvent, TimelineKind};
pub use timestamp::{Timestamp, TimestampError};
pub use transaction::{Transaction, TransactionKind, TransactionPage, TransactionQuery};
pub use transition::{Cause, Refusal, transition};
pub use unknown_fields::UnknownFields;
pub use validation::{Fields, Invalid, whole_number};
pub use verdict::Verdict;
pub use way_to_pay::WayToPay;
pub use webhook::{
    Delivery, DeliveryError, DeliveryErrorCode, DeliveryStatus, DisabledReason, LoggedAttempt, Retries,
    SignatureScheme, SigningSecret, Subscription, WebhookEndpoint,
};
pub use webhook_params::{CreateWebhook, RotateSecret, TestWebhook, UpdateWebhook};

/// Tests the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
