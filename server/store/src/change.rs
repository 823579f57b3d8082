//! One atomic commit and its conditions.

use std::borrow::Cow;

use payments_core::{
    Amount, Booking, DeveloperId, EventId, EventKind, RawJson, Slot, Timestamp, TransactionId, WebhookId,
};

use super::{claim::Claim, migration::Migration};
use crate::domain::{
    ApiKey, App, AuditRecord, BooksEntry, ClaimToken, Coverage, Destination, Endpoint, ErasePolicy, GatewayPause,
    IdempotencyKey, KeyClaim, KeyHash, LimitReached, LogPart, Lookup, Notices, Outgoing, PayoutCondition, PayoutRecord,
    PersonSession, PlatformKey, Scope, Session, SettledRow, StoredResponse, StoredToken, Workspace,
};

/// Writes that become durable together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Stores a response under an idempotency key. The key must be unused; else [`Conflict::IdempotencyKeyUsed`].
    pub idempotency: Option<NewResponse>,
    /// The claims on work under which the change is made. Each must still count; else [`Conflict::WorkLost`].
    pub under: Vec<Claim>,
    pub writes: Vec<Write>,
    /// Who makes the change. The same commit stores it, with the fields that the writes change.
    pub audit: Option<Box<AuditRecord>>,
}

impl Change {
    pub fn of(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }

    /// The slot of everything that the change writes and needs.
    pub fn home(&self) -> Slot {
        self.slots().next().unwrap_or(Slot::FIRST)
    }

    /// Whether everything that the change writes and needs is in one slot, and so in one cell.
    pub fn has_one_home(&self) -> bool {
        let mut slots = self.slots();
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        let response = self.idempotency.iter().map(|response| response.key.scope.developer_id.slot());
        let claims = self.under.iter().map(|claim| claim.work.slot());
        let audit = self.audit.iter().map(|audit| audit.entry.id.slot());
        self.writes.iter().map(Write::slot).chain(response).chain(claims).chain(audit)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Whether an event became pending, so that the fan-out has work.
    pub has_pending_event: bool,
}

#[derive(Debug, Clone)]
pub struct NewResponse {
    pub key: IdempotencyKey,
    /// See [`StoredResponse::fingerprint`].
    pub fingerprint: String,
    /// When the request was answered. The response counts for 24 hours.
    pub created_at: Timestamp,
    pub body: RawJson,
    pub claim: ClaimEnd,
}

/// How storing a response ends the claim on its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The key has no claim, because the request has no effect outside the store.
    NotClaimed,
    /// Ends this claim. If another request has taken the key over: [`Conflict::ClaimLost`].
    Held(ClaimToken),
    /// Ends any claim. Another condition decides who was first, such as the payment's version.
    Any,
}

/// One write. If the record has a version: a new record has version 0 and must not exist, a changed record has the version after
/// the stored one, and a removed record has the stored version. Else [`Conflict::Stale`].
#[derive(Debug, Clone)]
pub enum Write {
    Workspace(Workspace),
    /// An API key's record, new or changed, under its hash.
    ApiKey(KeyHash, Box<ApiKey>),
    /// A payment with its effects, bookings and event.
    Payment(Box<PaymentWrite>),
    /// A payout with its booking and event.
    Payout(Box<PayoutWrite>),
    /// A new delivery: one for the outbox, or a ping that was already attempted.
    Delivery(Box<Outgoing>),
    /// A new webhook endpoint. Its scope must have fewer than `at_most`; else [`Conflict::TooManyEndpoints`].
    EndpointAdded {
        endpoint: Box<Endpoint>,
        at_most: usize,
    },
    /// A changed webhook endpoint. Its id and scope stay.
    EndpointChanged(Box<Endpoint>),
    /// Removes a webhook endpoint. Its pending deliveries fail when the dispatcher reaches them.
    EndpointRemoved(Box<Endpoint>),
    App(Box<App>),
    /// Where a scope's payouts go.
    Destination(Box<Destination>),
    /// A gateway's token and the times of the requests for it.
    GatewayToken(Cow<'static, str>, StoredToken),
    /// Claims an idempotency key before an effect outside the store. The key must be unused and unclaimed; else
    /// [`Conflict::IdempotencyKeyUsed`] or [`Conflict::KeyClaimed`]. A claim whose lease has ended is taken over.
    KeyClaimed(Box<(IdempotencyKey, KeyClaim)>),
    /// Releases a claim without a response, so that another request may claim the key. Does nothing if the claim no longer
    /// counts.
    KeyReleased(IdempotencyKey, ClaimToken),
    /// Records the progress of an event's fan-out. The same change writes the deliveries.
    FannedOut {
        scope: Scope,
        event: EventId,
        /// The last endpoint that was handled; `None` if the event has all its deliveries.
        after: Option<WebhookId>,
    },
    /// A changed delivery. After an attempt it leaves the outbox: it has ended, or it waits in
    /// [`Queue::Retries`](super::Queue::Retries) for its next attempt. When that is due it returns to the outbox. Until then the
    /// time of the attempt may change.
    DeliveryChanged(Box<Outgoing>),
    /// An ended delivery that now names the delivery that sends it again.
    DeliveryResent(Box<Outgoing>),
    /// A part of a log of requests, new or changed.
    LogPart(Box<LogPart>),
    /// A row of a gateway's statement, new or resolved.
    SettledRow(Box<SettledRow>),
    /// A new change of the platform's own accounts. Fees are taken only if the developer's account has them; else
    /// [`Conflict::Overdrawn`].
    Books(Box<BooksEntry>),
    /// The coverage of a day. It is never changed.
    Coverage(Box<Coverage>),
    GatewayPause(Box<GatewayPause>),
    PlatformKey(Box<PlatformKey>),
    /// The open notices, and the closed ones whose end is not told.
    Notices(Box<Notices>),
    /// A person's session of the console, new or changed.
    PersonSession(Box<PersonSession>),
    /// Removes a session that has ended.
    PersonSessionRemoved(Box<PersonSession>),
    /// The progress of a migration into this store.
    Migration(Box<Migration>),
}

impl Write {
    /// The slot of the record: its developer's, or the first one if it belongs to no developer.
    fn slot(&self) -> Slot {
        match self {
            Self::ApiKey(hash, _) => hash.slot,
            it => it.developer().map_or(Slot::FIRST, DeveloperId::slot),
        }
    }

    /// The developer to whom the record belongs.
    pub fn developer(&self) -> Option<&DeveloperId> {
        Some(match self {
            Self::Workspace(it) => &it.developer_id,
            Self::ApiKey(_, it) => &it.scope.developer_id,
            Self::Payment(it) => &it.session.payment.developer_id,
            Self::Payout(it) => &it.record.scope.developer_id,
            Self::Delivery(it) | Self::DeliveryChanged(it) | Self::DeliveryResent(it) => &it.delivery.developer_id,
            Self::EndpointAdded { endpoint, .. }
            | Self::EndpointChanged(endpoint)
            | Self::EndpointRemoved(endpoint) => &endpoint.endpoint.developer_id,
            Self::App(it) => &it.app.developer_id,
            Self::Destination(it) => &it.scope.developer_id,
            Self::KeyClaimed(it) => &it.0.scope.developer_id,
            Self::KeyReleased(key, _) => &key.scope.developer_id,
            Self::FannedOut { scope, .. } => &scope.developer_id,
            Self::LogPart(it) => &it.scope.developer_id,
            Self::Books(it) => return it.developer_id.as_ref(),
            Self::GatewayToken(..)
            | Self::GatewayPause(_)
            | Self::PlatformKey(_)
            | Self::Notices(_)
            | Self::PersonSession(_)
            | Self::PersonSessionRemoved(_)
            | Self::SettledRow(_)
            | Self::Coverage(_)
            | Self::Migration(_) => return None,
        })
    }
}

#[derive(Debug, Clone)]
pub struct PaymentWrite {
    pub session: Session,
    /// The session's payment as the API serves it. Stores compare and copy this text.
    pub json: RawJson,
    pub event: Option<EventWrite>,
    /// The booking of the event.
    pub booking: Option<Booking>,
    /// The bookings without an event.
    pub without_event: Vec<BookingWrite>,
    /// A value of this new payment that no other payment of its scope may have. Else [`Conflict::LookupUsed`].
    pub unique: Option<Lookup>,
    /// How far below zero the merchant's balance, less the refunds under way, may be after it. Else
    /// [`Conflict::OverdraftExceeded`].
    pub overdraft: Option<Amount>,
    /// The session is its stored version without the customer's data, which the same commit erases in the events.
    pub erases: Option<ErasePolicy>,
}

impl PaymentWrite {
    /// A change of a session. `json` is its payment.
    pub fn new(session: Session, json: RawJson, booking: Option<Booking>, event: Option<EventWrite>) -> Self {
        Self { session, json, event, booking, without_event: Vec::new(), unique: None, overdraft: None, erases: None }
    }
}

#[derive(Debug, Clone)]
pub struct PayoutWrite {
    pub record: PayoutRecord,
    pub event: Option<EventWrite>,
    pub booking: Option<BookingWrite>,
    pub condition: PayoutCondition,
}

/// A booking without an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookingWrite {
    pub id: TransactionId,
    pub created_at: Timestamp,
    pub booking: Booking,
}

/// An event of a payment or a payout. It waits for fan-out in [`Queue::FanOut`](super::Queue::FanOut) if its scope has an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWrite {
    pub id: EventId,
    pub kind: EventKind,
    pub created_at: Timestamp,
    pub data: RawJson,
}

/// A condition of a change that did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Conflict {
    /// Another request with this key was first. Its response answers this one too, if the requests are the same.
    #[error("the idempotency key was used")]
    IdempotencyKeyUsed(Box<StoredResponse>),
    /// Another request holds this claim on the key.
    #[error("the idempotency key is claimed")]
    KeyClaimed(Box<KeyClaim>),
    /// The claim's lease ended, and another request has taken the key over.
    #[error("the claim on the idempotency key was taken over")]
    ClaimLost,
    /// The claim on the work has ended, or another server has taken the work over.
    #[error("the claim on this work was taken over")]
    WorkLost,
    /// A record has changed since this change was decided. Read it again and decide again.
    #[error("the record has changed meanwhile")]
    Stale,
    /// A payment of the scope has a value that only one may have.
    #[error("another payment has this value, which must be unique")]
    LookupUsed,
    /// Less than the payout's amount is available.
    #[error("{available} is available for a payout")]
    NotAvailable { available: Amount },
    /// Another payout of the scope in this currency is open.
    #[error("another payout in this currency is open")]
    PayoutOpen,
    /// The merchant's balance is negative, or its account of fees would be.
    #[error("the merchant's balance is negative: {balance_minor} in minor units")]
    Overdrawn { balance_minor: i128 },
    /// The merchant's balance does not cover a refund, even with the overdraft.
    #[error("the merchant's balance and its overdraft do not cover the refund")]
    OverdraftExceeded,
    /// A new payment exceeds a limit of its workspace.
    #[error(transparent)]
    LimitReached(LimitReached),
    /// The scope's webhook endpoint limit is reached.
    #[error("the webhook endpoint limit of {at_most} is reached")]
    TooManyEndpoints { at_most: usize },
}

#[cfg(test)]
mod tests {
    use payments_core::{Environment, RANDOM_BYTES};

    use super::*;
    use crate::{Work, domain::Place};

    #[test]
    fn a_change_has_one_home_if_all_its_parts_are_in_one_slot() {
        let developer =
            |slot: u8| DeveloperId::new(Slot::of_random([0, slot]), Timestamp::UNIX_EPOCH, [slot; RANDOM_BYTES]);
        let part = |slot| {
            let scope = Scope { developer_id: developer(slot), environment: Environment::Live };
            Write::LogPart(Box::new(LogPart { place: Place::Open, ..LogPart::first(scope) }))
        };
        let claim = |slot| {
            let event = EventId::new(Slot::of_random([0, slot]), Timestamp::UNIX_EPOCH, [9; RANDOM_BYTES]);
            Claim { work: Work::FanOut(event), epoch: 1 }
        };
        for (writes, under, has_one_home) in [
            (vec![], vec![], true),
            (vec![part(1), part(1)], vec![claim(1)], true),
            (vec![part(1), part(2)], vec![], false),
            (vec![part(1)], vec![claim(2)], false),
            (vec![Write::GatewayToken("wallet".into(), StoredToken::default())], vec![], true),
        ] {
            let change = Change { writes, under, ..Change::default() };
            assert_eq!(change.has_one_home(), has_one_home, "{change:?}");
        }
    }
}
