//! Events: what a webhook carries.
//!
//! The sending side writes an [`Envelope`]. The receiving side gets an [`Event`], and there is only one way to one:
//! out of bytes whose signature was verified.

use serde::{Deserialize, Serialize};
use webhook_verify::Verified;

use crate::{EventId, Payment, RawJson, Timestamp, open_enum::open_enum};

open_enum! {
    /// What happened (API specification, "Event kinds").
    pub enum EventKind {
        /// A checkout session was created.
        PaymentCreated = "payment.created",
        /// The approval of a payment is confirmed.
        PaymentCompleted = "payment.completed",
        /// A completed payment was refunded.
        PaymentRefunded = "payment.refunded",
        /// The test route of a webhook was called.
        TestPing = "test.ping",
    }
}

/// An event as it is sent: the body of a webhook request.
#[derive(Debug, Clone, Serialize)]
pub struct Envelope<'e> {
    /// Identifier of the event, the same on every delivery of it.
    pub id: &'e EventId,
    /// What happened.
    pub event: EventKind,
    /// When it happened.
    pub created_at: Timestamp,
    /// The payment exactly as the API returns it, or what the kind says instead.
    pub data: &'e RawJson,
}

/// An event as it was received. It can be made only from a body that was verified:
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
/// Bytes that were not verified do not compile:
///
/// ```compile_fail
/// use payments_core::Event;
///
/// let event = Event::from_verified(br#"{"id":"evt_1"}"#);
/// ```
///
/// nor does reading one as JSON past the verification:
///
/// ```compile_fail
/// use payments_core::Event;
///
/// let event: Event = serde_json::from_str(r#"{"id":"evt_1"}"#).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    id: EventId,
    kind: EventKind,
    created_at: Timestamp,
    data: RawJson,
}

/// The event while it is read. Not public: deserializing is not verifying.
#[derive(Deserialize)]
struct Received {
    id: EventId,
    event: EventKind,
    created_at: Timestamp,
    data: RawJson,
}

impl Event {
    /// Reads an event out of a verified body.
    ///
    /// # Errors
    /// A body that is genuine and yet not an event.
    pub fn from_verified<B: AsRef<[u8]>>(verified: Verified<B>) -> Result<Self, EventParseError> {
        Self::parse(verified.body().as_ref())
    }

    /// The event's id as it stands in a body. For the guard against replays, which asks for it of verified bodies only:
    ///
    /// ```
    /// use payments_core::Event;
    /// use webhook_verify::{Secret, Signer, Verifier, replay::{Claim, MemoryClaims, ReplayGuard}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = br#"{"id":"evt_1","event":"test.ping","created_at":"2026-03-01T03:30:00.000Z","data":{}}"#;
    /// # let signature = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
    /// # let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
    /// let guard = ReplayGuard::new(MemoryClaims::new(10_000));
    /// let verified = verifier.verify(&signature, body)?;
    /// if let Claim::New(claimed) = guard.claim(&verified, Event::id_in)? {
    ///     let event = Event::from_verified(verified)?;
    ///     claimed.commit()?;
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

    /// Reads an event out of bytes that nobody verified. For tests of a handler, and for nothing else: whoever can
    /// reach an endpoint that does this can tell a shop that it was paid.
    ///
    /// # Errors
    /// A body that is not an event.
    pub fn from_unverified_for_tests(body: &[u8]) -> Result<Self, EventParseError> {
        Self::parse(body)
    }

    fn parse(body: &[u8]) -> Result<Self, EventParseError> {
        let Received { id, event, created_at, data } = serde_json::from_slice(body).map_err(EventParseError)?;
        Ok(Self { id, kind: event, created_at, data })
    }

    /// Identifier of the event. Handle each one once: the same event can arrive again.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &EventKind {
        &self.kind
    }

    /// When it happened.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// What the event carries, as it was sent.
    #[must_use]
    pub fn data(&self) -> &RawJson {
        &self.data
    }

    /// The payment that the event is about. Sessions made in the dashboard's simulator wrap it as
    /// `{event, payment}`; both forms are read.
    ///
    /// # Errors
    /// An event whose data is no payment, such as `test.ping`.
    pub fn payment(&self) -> Result<Payment, EventParseError> {
        #[derive(Deserialize)]
        struct Wrapped {
            payment: Payment,
        }
        self.data
            .parse::<Payment>()
            .or_else(|error| self.data.parse::<Wrapped>().map(|wrapped| wrapped.payment).map_err(|_| error))
            .map_err(EventParseError)
    }
}

/// A body that is not what it should be. It shows where, not what: the body holds a customer's data.
#[derive(Debug, thiserror::Error)]
#[error("the body is not the event it should be")]
pub struct EventParseError(#[source] serde_json::Error);
