#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod account;
#[cfg(feature = "blocking")]
mod blocking;
mod budget;
mod builder;
mod call;
mod checkout;
mod client;
mod clock;
mod error;
mod events;
mod idempotency_key;
pub mod inbox;
mod jitter;
mod limiter;
mod parts;
mod payments;
mod payouts;
mod platform;
mod raw_request;
mod raw_response;
mod reconcile;
mod request;
mod request_log;
mod response;
mod retry;
mod retry_after;
mod sandbox;
mod secret_key;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod webhooks;

pub use account::AccountResource;
pub use builder::ClientBuilder;
pub use checkout::{Checkout, CreateDemoSession};
pub use client::{Client, KeyHeader};
pub use error::{Error, Result};
pub use events::{Events, ListedEvent};
pub use idempotency_key::{IdempotencyKey, IdempotencyKeyError};
pub use payments::Payments;
pub use payments_core::{
    Account, AccountBalance, AccountLimits, Advanced, Amount, ApiKey, AppId, AuditActor, AuditChange, AuditEntry,
    AuditId, AuditPage, Balance, Balances, BankAccount, CheckoutSession, CreatePayment, CreatePayout, CreateWebhook,
    Currency, Customer, Delivery, DeliveryError, DeliveryErrorCode, DeliveryId, DeliveryStatus, DemoCheckout,
    DestinationKind, DeveloperApp, DisabledReason, Dispute, DisputeId, DisputeStatus, Disputes, Environment, ErrorBody,
    ErrorCode, Event, EventId, EventKind, EventPage, FieldError, InEachCurrency, LimitInEachCurrency, LineItem,
    LoggedAttempt, LoggedRequest, Message, Metadata, MetadataError, Money, MoneyError, Notice, NoticeKind, OtherWord,
    Page, Pay, PayResult, Payment, PaymentId, PaymentMethod, PaymentPage, Payout, PayoutAccount, PayoutDestination,
    PayoutId, PayoutInterval, PayoutPage, PayoutSchedule, PayoutStatus, RawJson, RawStatus, RecoverWebhook, Recovered,
    Redirect, Refund, RefundId, RefundSource, RefundStatus, Refunds, Removed, RequestPage, Retries, RotateSecret,
    SetDestination, SetPayoutSchedule, SignatureScheme, SimulateOutcome, SimulatePayment, SimulatedEvent, Simulation,
    Statement, Status, Subscription, SummaryLine, SummaryTopic, Timeline, TimelineDelivery, TimelineEntry,
    TimelineEvent, TimelineKind, Timestamp, Transaction, TransactionId, TransactionKind, TransactionPage,
    UnknownFields, UpdateWebhook, Verdict, Volume, Wallet, WebhookEndpoint, WebhookId, WithoutCancelUrl,
    WithoutSuccessUrl, WorkspaceProfile,
};
pub use payouts::Payouts;
pub use raw_request::RawRequest;
pub use raw_response::RawResponse;
pub use reconcile::{Reconciled, Standing};
pub use request::{IdempotentRequest, Request};
pub use request_log::RequestLog;
pub use reqwest::Method;
pub use response::{RateLimit, Response};
pub use sandbox::Sandbox;
pub use secret_key::{SecretKey, SecretKeyError};
pub use stream::Listed;
pub use webhook_verify as webhook;
pub use webhooks::{VerifySignature, Webhooks};
