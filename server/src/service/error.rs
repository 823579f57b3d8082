//! Why a use case refuses or fails, and the API's code for it.

use std::fmt;

use payments_core::{Amount, Currency, ErrorCode, Invalid, PayoutRefusal, Refusal};

use crate::{
    domain::LimitReached,
    gateway::{GatewayError, NoticeError, Rejection},
    store::{CommitError, Conflict, StoreError},
};

/// The result of a use case.
pub type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// For a payment that does not exist or that the caller may not see.
pub(super) const NO_PAYMENT: ServiceError = ServiceError::NotFound { what: Record::Payment };

/// Why a use case refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("this API key has expired; create a new one")]
    KeyExpired,
    /// The record does not exist or belongs to someone else. The caller cannot tell which.
    #[error("no {what} has this id")]
    NotFound { what: Record },
    #[error(transparent)]
    Payment(#[from] Refusal),
    #[error("the sandbox is {0}")]
    NoSandbox(&'static str),
    #[error("this sandbox stays as it is: {0}")]
    NotOwnSandbox(&'static str),
    #[error(
        "this Idempotency-Key was used with another request; repeat that request exactly, or use a new key for this one"
    )]
    IdempotencyKeyReused,
    #[error("this server has no gateway for live {0} payments; use a test key, or ask its operator")]
    NoGateway(Currency),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Notice(#[from] NoticeError),
    #[error("a refund of this payment is in progress; the server will finish it, read the payment again in a moment")]
    RefundInProgress,
    #[error(
        "the merchant's balance and its overdraft limit do not cover this refund; wait for payments, or ask the operator"
    )]
    RefundOverdraws,
    #[error("your role refunds at most {cap} of a payment; ask a colleague whose role has no cap")]
    RefundCapExceeded { cap: Amount },
    #[error("there are {at_most} sessions of people; revoke some, or sign in later")]
    TooManySessions { at_most: usize },
    #[error("another payment has this merchantTransactionId; list the payments with it to find the first")]
    ReferenceUsed,
    #[error(transparent)]
    Payout(#[from] PayoutRefusal),
    #[error("this server makes no payouts; its operator has set no key for the numbers of accounts")]
    NoPayouts,
    #[error("no account or wallet is set for payouts in {0}; set one first")]
    NoDestination(Currency),
    #[error("who asked for a payout, or set its destination, cannot approve it; somebody else must")]
    MayNotApprove,
    #[error("the merchant's workspace is not active; cancel the payout, or activate the workspace")]
    NotActive,
    #[error("the payout's destination was set within the last 24 hours; send it later, or cancel it")]
    DestinationTooNew,
    #[error("{available} is available for a payout; ask for at most that, or leave the amount out")]
    NotAvailable { available: Amount },
    #[error("another payout in this currency is not finished; wait for it, or cancel it")]
    PayoutOpen,
    #[error("the merchant's balance is negative since the payout was requested; cancel the payout, or wait for money")]
    Overdrawn,
    /// Other requests may succeed, or this one later.
    #[error(transparent)]
    LimitReached(LimitReached),
    #[error(
        "API key limit reached ({at_most} that work per workspace); revoke one first, or raise the limit with workspaces limits"
    )]
    TooManyKeys { at_most: u32 },
    #[error("webhook endpoint limit reached ({at_most} per developer and environment); delete one first")]
    TooManyEndpoints { at_most: usize },
    #[error("this delivery cannot be sent again: {0}")]
    NotResent(&'static str),
    /// Another request with the same key is still in progress after its time limit.
    #[error("a request with this Idempotency-Key is still in progress; send it again in a moment, with the same key")]
    KeyInProgress,
    #[error(
        "you have as many test pings or refunds in progress as this server allows: half of {at_most}, or less while others need \
         them; nothing was done, try again in a moment"
    )]
    TooManyEffects { at_most: i64 },
    #[error(
        "the endpoint has {at_most} deliveries pending or more; nothing was sent again, try again when it has taken them"
    )]
    TooManyPending { at_most: usize },
    /// A concurrent change was committed first. Use cases retry, so callers do not see this.
    #[error("the payment has changed meanwhile; try again")]
    Conflict,
    #[error("the server lost its database while it saved this; send the request again, with the same Idempotency-Key")]
    OutcomeUnknown,
    #[error("{}", .0.for_callers())]
    Unavailable(#[from] StoreError),
}

/// The server could not serialize its own JSON.
impl From<serde_json::Error> for ServiceError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unavailable(StoreError::unavailable(error))
    }
}

impl From<CommitError> for ServiceError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(StoreError::Unknown) => Self::OutcomeUnknown,
            CommitError::Store(error) => Self::Unavailable(error),
            CommitError::Conflict(Conflict::IdempotencyKeyUsed(_)) => Self::IdempotencyKeyReused,
            CommitError::Conflict(Conflict::KeyClaimed(_) | Conflict::ClaimLost) => Self::KeyInProgress,
            CommitError::Conflict(Conflict::Stale | Conflict::WorkLost) => Self::Conflict,
            CommitError::Conflict(Conflict::LookupUsed) => Self::ReferenceUsed,
            CommitError::Conflict(Conflict::NotAvailable { available }) => Self::NotAvailable { available },
            CommitError::Conflict(Conflict::PayoutOpen) => Self::PayoutOpen,
            CommitError::Conflict(Conflict::Overdrawn { .. }) => Self::Overdrawn,
            CommitError::Conflict(Conflict::OverdraftExceeded) => Self::RefundOverdraws,
            CommitError::Conflict(Conflict::LimitReached(reached)) => Self::LimitReached(reached),
            CommitError::Conflict(Conflict::TooManyEndpoints { at_most }) => Self::TooManyEndpoints { at_most },
        }
    }
}

/// A kind of record that requests name by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Payment,
    Payout,
    WebhookEndpoint,
    Delivery,
    Event,
    /// The event after which a part of a list begins.
    Cursor,
    App,
    Workspace,
    ApiKey,
    PlatformKey,
}

impl Record {
    /// The record's name, and the code if no record has the id.
    fn name_and_code(self) -> (&'static str, ErrorCode) {
        match self {
            Self::Payment => ("payment", ErrorCode::PaymentNotFound),
            Self::Payout => ("payout", ErrorCode::PayoutNotFound),
            Self::WebhookEndpoint => ("webhook endpoint", ErrorCode::WebhookEndpointNotFound),
            Self::Delivery => ("webhook delivery", ErrorCode::DeliveryNotFound),
            Self::Event => ("event", ErrorCode::EventNotFound),
            Self::Cursor => ("event of yours", ErrorCode::CursorUnknown),
            Self::App => ("developer app", ErrorCode::AppNotFound),
            Self::Workspace => ("workspace", ErrorCode::WorkspaceNotFound),
            // Only the command line names API keys.
            Self::ApiKey => ("API key", ErrorCode::WorkspaceNotFound),
            Self::PlatformKey => ("platform key", ErrorCode::WorkspaceNotFound),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name_and_code().0)
    }
}

impl ServiceError {
    /// The code, which also decides the HTTP status.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(invalid) => invalid.code(),
            Self::KeyExpired => ErrorCode::ApiKeyExpired,
            Self::NotFound { what } => what.name_and_code().1,
            Self::Payment(refusal) => refusal.code(),
            Self::NotOwnSandbox(_) => ErrorCode::OwnSandboxRequired,
            Self::NoSandbox(_) => ErrorCode::SandboxNotAvailable,
            Self::IdempotencyKeyReused => ErrorCode::IdempotencyKeyReused,
            Self::NoGateway(_) => ErrorCode::CurrencyNotAvailable,
            Self::Rejected(_) => ErrorCode::GatewayRefused,
            Self::Gateway(_) => ErrorCode::GatewayUnavailable,
            Self::Notice(NoticeError::NotConfigured(_)) => ErrorCode::GatewayNotConfigured,
            Self::Notice(_) => ErrorCode::SignatureInvalid,
            Self::RefundInProgress => ErrorCode::RefundInProgress,
            Self::RefundOverdraws => ErrorCode::RefundOverdrawsBalance,
            Self::RefundCapExceeded { .. } => ErrorCode::RefundCapExceeded,
            Self::ReferenceUsed => ErrorCode::MerchantTransactionIdUsed,
            Self::NotAvailable { .. } | Self::Payout(PayoutRefusal::MoreThanIsAvailable { .. }) => {
                ErrorCode::PayoutNotAvailable
            }
            Self::Payout(_) | Self::MayNotApprove | Self::NotActive | Self::DestinationTooNew => {
                ErrorCode::PayoutNotAllowed
            }
            Self::NoPayouts => ErrorCode::PayoutsNotConfigured,
            Self::NoDestination(_) => ErrorCode::PayoutDestinationMissing,
            Self::PayoutOpen => ErrorCode::PayoutInProgress,
            Self::Overdrawn => ErrorCode::PayoutNotAllowed,
            Self::LimitReached(LimitReached::Payment { .. }) => ErrorCode::PaymentLimitExceeded,
            Self::LimitReached(LimitReached::Day { .. }) => ErrorCode::DayLimitExceeded,
            Self::LimitReached(LimitReached::Minute { .. }) => ErrorCode::PaymentRateExceeded,
            Self::TooManyKeys { .. } => ErrorCode::ApiKeyLimitReached,
            Self::TooManyEndpoints { .. } => ErrorCode::WebhookEndpointLimitReached,
            Self::NotResent(_) => ErrorCode::DeliveryNotResendable,
            Self::KeyInProgress => ErrorCode::IdempotencyKeyInProgress,
            Self::TooManyEffects { .. } | Self::TooManyPending { .. } | Self::TooManySessions { .. } => {
                ErrorCode::TooManyInProgress
            }
            Self::Conflict => ErrorCode::ConcurrentChange,
            Self::OutcomeUnknown => ErrorCode::OutcomeUnknown,
            Self::Unavailable(_) => ErrorCode::ServiceUnavailable,
        }
    }
}
