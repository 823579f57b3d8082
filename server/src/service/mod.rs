//! The use cases, one function each. They ask the core what may happen and the store to remember it; they know neither
//! HTTP nor the store's engine.

mod account;
mod admin;
mod canonical;
mod checkout;
mod claims;
mod confirm;
mod expiry;
mod idempotency;
mod keys;
mod manual_settlement;
mod pay;
mod payments;
mod reconcile;
mod refund;
mod retry;
mod sandbox;
mod tidying;
mod webhooks;

use std::{sync::Arc, time::Duration};

use payments_core::{Currency, FeeRate, Invalid, Refusal};
use tokio_util::task::TaskTracker;

use crate::{
    ambient::Ambient,
    delivery::Bell,
    delivery::{Sender, TargetPolicy},
    gateway::{EventFault, GatewayError, Gateways},
    store::{Change, CommitError, Conflict, ServerId, Store, StoreError, Write},
};

pub(crate) use admin::{AdminReply, AdminRequest};
pub(crate) use checkout::CheckoutView;
pub(crate) use claims::Claims;
pub(crate) use confirm::Hint;
pub(crate) use idempotency::{Answer, IdempotentRequest};
pub(crate) use keys::Caller;
pub(crate) use manual_settlement::Ending;
pub(crate) use pay::Paying;
use retry::retry_on_conflict;
pub(crate) use sandbox::SANDBOX_KEY;
pub(crate) use webhooks::{SignatureCheck, verify_signature};

/// What the operator decided.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Where customers reach this server, without a slash at its end.
    pub(crate) base_url: String,
    /// How long a checkout session lives, in seconds.
    pub(crate) session_ttl_seconds: u32,
    /// After how many days a delivery's bodies are forgotten.
    pub(crate) delivery_body_days: Option<u16>,
    /// The platform's share of each payment.
    pub(crate) fee_rate: FeeRate,
    /// How long one call to a gateway takes at most.
    pub(crate) gateway_timeout: Duration,
    /// Which addresses webhooks may be sent to.
    pub(crate) targets: TargetPolicy,
    /// Whether the public sandbox key and demo sessions can be used.
    pub(crate) has_sandbox: bool,
    /// How many webhook endpoints a developer may have in an environment.
    pub(crate) max_webhook_endpoints: usize,
}

/// The server apart from its door and its disk.
pub(crate) struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) sender: Arc<Sender>,
    pub(crate) gateways: Gateways,
    pub(crate) claims: Claims,
    /// Rings when there is a new event.
    pub(crate) fan_out: Arc<Bell>,
    /// Whose claims on work are this process's.
    pub(crate) server: ServerId,
    /// The tasks that outlive the request that began them. The server waits for them before it closes the store.
    pub(crate) tasks: TaskTracker,
    pub(crate) settings: Settings,
}

impl Service {
    /// Commits a change, and has its event fanned out at once.
    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let mut payments = change.writes.iter().filter_map(Write::payment);
        let is_event = payments.any(|write| write.event.as_ref().is_some_and(|event| event.is_pending));
        self.store.commit(change).await?;
        if is_event {
            self.fan_out.ring();
        }
        Ok(())
    }
}

/// Why a use case did not do what was asked. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// The request does not validate.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// There is no such thing, or it belongs to someone else, which is the same to the caller.
    #[error("no {what} has this id")]
    NotFound {
        /// What was looked for.
        what: &'static str,
    },
    /// The state of the payment forbids it.
    #[error(transparent)]
    Payment(#[from] Refusal),
    /// Nobody can use the sandbox here.
    #[error("the sandbox is {0}")]
    NoSandbox(&'static str),
    /// The idempotency key belongs to another request.
    #[error(
        "this Idempotency-Key was used with another request; repeat that request exactly, or use a new key for this one"
    )]
    IdempotencyKeyReused,
    /// Nobody could take the customer's money.
    #[error("this server has no gateway for live {0} payments; use a test key, or ask its operator")]
    NoGateway(Currency),
    /// The gateway did not do its part.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// A gateway's event is not genuine, or cannot be judged here.
    #[error(transparent)]
    Event(#[from] EventFault),
    /// The gateway has not yet answered an earlier request for the same refund.
    #[error("a refund of this payment is under way; the server sees it through, read the payment again in a moment")]
    RefundUnderWay,
    /// The developer has as many endpoints as the operator allows.
    #[error("webhook endpoint limit reached ({at_most} per developer and environment); delete one first")]
    TooManyEndpoints {
        /// How many a developer may have.
        at_most: usize,
    },
    /// Another request with the same key has not been answered for longer than its effect may take.
    #[error("a request with this Idempotency-Key is still under way; send it again in a moment, under the same key")]
    KeyUnderWay,
    /// So many effects outside the store are under way that none more is begun.
    #[error(
        "this server has {} test pings and refunds under way, its limit; nothing was done, try again in a moment",
        claims::AT_ONCE
    )]
    TooManyEffects,
    /// Someone else moved the payment first. Use cases decide anew; no caller sees this.
    #[error("the payment has moved meanwhile; try again")]
    Moved,
    /// The store cannot answer now.
    #[error("the server cannot reach its store; try again in a moment")]
    Unavailable(#[source] StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error)
    }
}

/// The server could not write its own JSON.
impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Self::Unavailable(StoreError::unavailable(error))
    }
}

impl From<CommitError> for Refused {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::Unavailable(error),
            CommitError::Conflict(Conflict::IdempotencyKeyUsed(_)) => Self::IdempotencyKeyReused,
            CommitError::Conflict(Conflict::KeyClaimed(_) | Conflict::ClaimLost) => Self::KeyUnderWay,
            CommitError::Conflict(Conflict::Stale | Conflict::WorkLost) => Self::Moved,
            CommitError::Conflict(Conflict::TooManyEndpoints { at_most }) => Self::TooManyEndpoints { at_most },
        }
    }
}
