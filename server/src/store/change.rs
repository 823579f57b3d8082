//! One atomic commit and the conditions under which it may happen.

use payments_core::{EventId, EventKind, Posting, RawJson, Timestamp, WebhookId};

use super::Claim;
use crate::domain::{
    ApiKey, App, ClaimToken, Effects, Endpoint, IdempotencyKey, KeptResponse, KeptToken, KeyClaim, KeyHash, Outgoing,
    Scope, Session, Workspace, effects,
};

/// What is to become durable together, or not at all.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Keeps a response under an idempotency key. The key must be unused; else [`Conflict::IdempotencyKeyUsed`].
    pub(crate) idempotency: Option<Keep>,
    /// The claims under which it is made. Each must still count; else [`Conflict::WorkLost`].
    pub(crate) under: Vec<Claim>,
    /// What is written.
    pub(crate) writes: Vec<Write>,
}

impl Change {
    /// A change of one record.
    pub(crate) fn of(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }
}

/// A response that is to be kept.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) key: IdempotencyKey,
    /// As [`KeptResponse::fingerprint`].
    pub(crate) fingerprint: String,
    /// When it was given; it counts for 24 hours.
    pub(crate) created_at: Timestamp,
    pub(crate) body: RawJson,
    /// What becomes of the claim on the key.
    pub(crate) claim: ClaimEnd,
}

/// What keeping a response does about the claim on its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimEnd {
    /// Nobody claims such a key: the effect is the change itself.
    NotClaimed,
    /// It ends this claim. Nobody else may have claimed the key since; else [`Conflict::ClaimLost`].
    Held(ClaimToken),
    /// It ends any claim. Something else says who was first, such as the payment's version.
    Any,
}

/// One thing to write. Of what has a version, a new record has version 0 and must not be there; a changed one has the version
/// after the one that is there, and a removed one the very version. Else [`Conflict::Stale`].
#[derive(Debug)]
pub(crate) enum Write {
    /// A workspace, new or changed.
    Workspace(Workspace),
    /// An API key's record, new or changed, under its hash.
    ApiKey(KeyHash, ApiKey),
    /// A payment, with what its move posts to the ledger and the event it is told by.
    Payment(Box<PaymentWrite>),
    /// A delivery that was made before it is logged.
    Delivery(Box<Outgoing>),
    /// A new webhook endpoint. Its scope must have fewer than `at_most`; else [`Conflict::TooManyEndpoints`].
    EndpointAdded {
        /// The endpoint.
        endpoint: Box<Endpoint>,
        /// How many endpoints its scope may have.
        at_most: usize,
    },
    /// A webhook endpoint is no more. What it is still owed is given up when its turn comes.
    EndpointRemoved(Box<Endpoint>),
    /// A developer's app, new or changed.
    App(Box<App>),
    /// A gateway's token, and when tokens were asked for.
    GatewayToken(&'static str, KeptToken),
    /// A request claims its idempotency key before its effect outside the store. The key must be unused and not
    /// claimed; else [`Conflict::IdempotencyKeyUsed`] or [`Conflict::KeyClaimed`]. A lease that has ended is taken over.
    KeyClaimed(Box<(IdempotencyKey, KeyClaim)>),
    /// A claim ends without a response: the key may try again. Nothing happens if the claim is not held any more.
    KeyReleased(IdempotencyKey, ClaimToken),
    /// More endpoints were looked at for an event, up to this one; `None` where it has all its deliveries. They are written
    /// in the same change.
    FannedOut {
        /// Whose event it is.
        scope: Scope,
        /// The event.
        event: EventId,
        /// The last endpoint that was looked at.
        after: Option<WebhookId>,
    },
    /// A delivery is over: the attempt is logged and leaves the outbox at one stroke.
    DeliveryEnded(Box<Outgoing>),
}

impl Write {
    /// The payment that it writes.
    pub(crate) fn payment(&self) -> Option<&PaymentWrite> {
        if let Self::Payment(write) = self { Some(write) } else { None }
    }
}

/// A payment, new or changed.
#[derive(Debug)]
pub(crate) struct PaymentWrite {
    /// The session as it is to be. A changed one must still be at the version before `session.version`, and a new one must
    /// not be there; else [`Conflict::Stale`].
    pub(crate) session: Session,
    /// What else changes.
    pub(crate) effects: Effects,
    /// What the ledger gets; sums to zero.
    pub(crate) postings: Vec<Posting>,
    /// What tells of the change.
    pub(crate) event: Option<EventWrite>,
}

impl PaymentWrite {
    /// The change of a session from what was read; `before` is `None` for a new one.
    pub(crate) fn new(
        before: Option<&Session>,
        session: Session,
        postings: Vec<Posting>,
        event: Option<EventWrite>,
    ) -> Self {
        Self { effects: effects(before, &session, &postings), session, postings, event }
    }
}

/// An event of a payment.
#[derive(Debug)]
pub(crate) struct EventWrite {
    pub(crate) id: EventId,
    pub(crate) kind: EventKind,
    pub(crate) created_at: Timestamp,
    pub(crate) data: RawJson,
    /// Whether its deliveries are to be made: it waits in [`Queue::FanOut`](super::Queue::FanOut) from now on.
    pub(crate) is_pending: bool,
}

/// A condition of a change did not hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Conflict {
    /// Another request with this key was first. Its response is the answer to this one too, if it was the same request.
    #[error("the idempotency key was used")]
    IdempotencyKeyUsed(Box<KeptResponse>),
    /// Another request with this key is under way, under this claim.
    #[error("the idempotency key is claimed")]
    KeyClaimed(Box<KeyClaim>),
    /// The lease of this claim ended, and another request has taken the key over.
    #[error("the claim on the idempotency key was taken over")]
    ClaimLost,
    /// Another server has taken over the work that this change is a part of.
    #[error("the claim on this work was taken over")]
    WorkLost,
    /// A record has changed since this change was decided. Read it again and decide again.
    #[error("the record has changed meanwhile")]
    Stale,
    /// The scope has as many webhook endpoints as it may have.
    #[error("the webhook endpoint limit of {at_most} is reached")]
    TooManyEndpoints {
        /// How many it may have.
        at_most: usize,
    },
}
