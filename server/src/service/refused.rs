//! The API's code for each refusal.

use std::fmt;

use payments_core::ErrorCode;

use super::Refused;
use crate::gateway::EventFault;

/// A kind of record that requests name by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Payment,
    WebhookEndpoint,
    Delivery,
    Event,
    App,
    Workspace,
    ApiKey,
}

impl Record {
    fn not_found(self) -> ErrorCode {
        match self {
            Self::Payment => ErrorCode::PaymentNotFound,
            Self::WebhookEndpoint => ErrorCode::WebhookEndpointNotFound,
            Self::Delivery => ErrorCode::DeliveryNotFound,
            Self::Event => ErrorCode::EventNotFound,
            Self::App => ErrorCode::AppNotFound,
            // Only the command line names API keys.
            Self::Workspace | Self::ApiKey => ErrorCode::WorkspaceNotFound,
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Payment => "payment",
            Self::WebhookEndpoint => "webhook endpoint",
            Self::Delivery => "webhook delivery",
            Self::Event => "event",
            Self::App => "developer app",
            Self::Workspace => "workspace",
            Self::ApiKey => "API key",
        })
    }
}

impl Refused {
    /// The code, which also decides the HTTP status.
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(invalid) => invalid.code(),
            Self::KeyExpired => ErrorCode::ApiKeyExpired,
            Self::NotFound { what } => what.not_found(),
            Self::Payment(refusal) => refusal.code(),
            Self::NotOwnSandbox(_) => ErrorCode::OwnSandboxRequired,
            Self::NoSandbox(_) => ErrorCode::SandboxNotAvailable,
            Self::IdempotencyKeyReused => ErrorCode::IdempotencyKeyReused,
            Self::NoGateway(_) => ErrorCode::CurrencyNotAvailable,
            Self::Rejected(_) => ErrorCode::GatewayRefused,
            Self::Gateway(_) => ErrorCode::GatewayUnavailable,
            Self::Event(EventFault::NoProcessor) => ErrorCode::GatewayNotConfigured,
            Self::Event(EventFault::Signature(_)) => ErrorCode::SignatureInvalid,
            Self::RefundInProgress => ErrorCode::RefundInProgress,
            Self::ReferenceUsed => ErrorCode::MerchantTransactionIdUsed,
            Self::TooManyEndpoints { .. } => ErrorCode::WebhookEndpointLimitReached,
            Self::NotResent(_) => ErrorCode::DeliveryNotResendable,
            Self::KeyInProgress => ErrorCode::IdempotencyKeyInProgress,
            Self::TooManyEffects { .. } | Self::TooManyPending { .. } => ErrorCode::TooManyInProgress,
            Self::Conflict => ErrorCode::ConcurrentChange,
            Self::OutcomeUnknown => ErrorCode::OutcomeUnknown,
            Self::Unavailable(_) => ErrorCode::ServiceUnavailable,
        }
    }
}
