//! Webhook events. The sender serializes an [`Envelope`]; the receiver parses an [`Event`] from a verified body.

use serde::{Deserialize, Serialize};
use webhook_verify::Verified;

use crate::{
    EventId, Payment, RawJson, Timestamp,
    aliased::{UnknownFields, aliased_resource},
    open_enum::open_enum,
};

open_enum! {
    /// The kind of an event (API specification, "Event kinds").
    pub enum EventKind {
        /// A payment was created.
        PaymentCreated = "payment.created",
        /// A payment was confirmed as paid.
        PaymentCompleted = "payment.completed",
        /// A part of a completed payment was refunded.
        PaymentPartiallyRefunded = "payment.partially_refunded",
        /// A completed payment was refunded as a whole, at once or by its last part.
        PaymentRefunded = "payment.refunded",
        /// A refund that the gateway had accepted failed. The payment is completed again.
        PaymentRefundFailed = "payment.refund_failed",
        /// A payment is disputed, or an inquiry about it has become a chargeback.
        PaymentDisputed = "payment.disputed",
        /// A dispute was won or lost, or an inquiry was closed.
        PaymentDisputeClosed = "payment.dispute_closed",
        /// A merchant requested a payout.
        PayoutCreated = "payout.created",
        /// A payout was approved.
        PayoutApproved = "payout.approved",
        /// The bank paid a payout.
        PayoutPaid = "payout.paid",
        /// The bank did not pay a payout.
        PayoutFailed = "payout.failed",
        /// A payout was cancelled before it was sent.
        PayoutCancelled = "payout.cancelled",
        /// The bank sent a payout back.
        PayoutReturned = "payout.returned",
        /// The developer called the test route of an endpoint.
        TestPing = "test.ping",
    }
}

/// The body of a webhook request, as the platform sends it.
#[derive(Debug, Clone, Serialize)]
pub struct Envelope<'e> {
    /// The event's id, the same in each of its deliveries.
    pub id: &'e EventId,
    /// The event's kind.
    pub event: EventKind,
    /// When the event happened.
    pub created_at: Timestamp,
    /// The payment as the API returns it. Events of other kinds have other data.
    pub data: &'e RawJson,
}

/// An event from a verified webhook:
///
/// ```
/// use payments_core::{Event, EventKind};
/// use webhook_verify::{Secret, Signer, Verifier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = br#"{"id":"evt_1","event":"test.ping","created_at":"2026-03-01T03:30:00.000Z","data":{}}"#;
/// # let signature = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
/// let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
/// let event = Event::from_verified(verifier.verify(&signature, body)?)?;
/// assert_eq!(event.kind(), &EventKind::TestPing);
/// # Ok(())
/// # }
/// ```
///
/// Unverified bytes do not compile:
///
/// ```compile_fail
/// use payments_core::Event;
///
/// let event = Event::from_verified(br#"{"id":"evt_1"}"#);
/// ```
///
/// nor does deserializing without verification:
///
/// ```compile_fail
/// use payments_core::Event;
///
/// let event: Event = serde_json::from_str(r#"{"id":"evt_1"}"#).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event(Received);

aliased_resource! {
    /// The wire format of an event. Private, because deserializing does not verify.
    #[derive(Debug)]
    #[allow(unreachable_pub)]
    pub struct Received {
        id: EventId = "id",
        event: EventKind = "event",
        created_at: Timestamp = "created_at",
        data: RawJson = "data",
    }
}

impl Event {
    /// Parses an event from a verified body.
    ///
    /// # Errors
    /// If the body is not an event.
    pub fn from_verified<B: AsRef<[u8]>>(verified: Verified<B>) -> Result<Self, EventParseError> {
        Self::parse(verified.body().as_ref())
    }

    /// The event's id in a body. Pass this function to a replay guard, which applies it to verified bodies only:
    ///
    /// ```
    /// use payments_core::Event;
    /// use webhook_verify::{Secret, Signer, Verifier, replay::{Claim, MemoryClaims, ReplayGuard}};
    ///
    /// # async fn handle() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = br#"{"id":"evt_1","event":"test.ping","created_at":"2026-03-01T03:30:00.000Z","data":{}}"#;
    /// # let signature = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
    /// # let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
    /// let guard = ReplayGuard::new(MemoryClaims::new(10_000));
    /// let verified = verifier.verify(&signature, body)?;
    /// if let Claim::New(claimed) = guard.claim(&verified, Event::id_in).await? {
    ///     let event = Event::from_verified(verified)?;
    ///     claimed.commit().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn id_in(body: &[u8]) -> Option<&str> {
        #[derive(Deserialize)]
        struct Identified<'b> {
            id: &'b str,
        }
        serde_json::from_slice::<Identified<'_>>(body).ok().map(|event| event.id)
    }

    /// Parses an event of the API's list of events. It has no signature: the connection to the API authenticates it.
    ///
    /// # Errors
    /// If the text is not an event.
    pub fn from_list(listed: &RawJson) -> Result<Self, EventParseError> {
        Self::parse(listed.as_str().as_bytes())
    }

    /// Parses an event from unverified bytes. Use this only to test a handler: if an endpoint does this, anyone can
    /// fake a payment.
    ///
    /// # Errors
    /// If the body is not an event.
    pub fn from_unverified_for_tests(body: &[u8]) -> Result<Self, EventParseError> {
        Self::parse(body)
    }

    fn parse(body: &[u8]) -> Result<Self, EventParseError> {
        serde_json::from_slice(body).map(Self).map_err(EventParseError)
    }

    /// The event's id. Handle each id once, because an event can arrive again.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.0.id
    }

    /// The event's kind.
    #[must_use]
    pub fn kind(&self) -> &EventKind {
        &self.0.event
    }

    /// When the event happened.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.0.created_at
    }

    /// The event's data as sent.
    #[must_use]
    pub fn data(&self) -> &RawJson {
        &self.0.data
    }

    /// Fields beside the event's data that this version does not know.
    #[must_use]
    pub fn unknown(&self) -> &UnknownFields {
        &self.0.unknown
    }

    /// The event's payment. Also reads the form `{event, payment}`, which the dashboard's simulator sends.
    ///
    /// # Errors
    /// If the data is not a payment, as in `test.ping`.
    pub fn payment(&self) -> Result<Payment, EventParseError> {
        #[derive(Deserialize)]
        struct Wrapped {
            payment: Payment,
        }
        self.0
            .data
            .parse::<Payment>()
            .or_else(|error| self.0.data.parse::<Wrapped>().map(|wrapped| wrapped.payment).map_err(|_| error))
            .map_err(EventParseError)
    }
}

/// The body is not an event, or its data is not a payment. The source has the position, not the content, which is
/// customer data.
#[derive(Debug, thiserror::Error)]
#[error("the body is not the expected event")]
pub struct EventParseError(#[source] serde_json::Error);
