//! Handling each event once, although it may arrive twice.
//!
//! The platform may deliver the same event more than once, and whoever captured a request can send it again while its
//! signature is young enough. Both carry the same event id inside the signed body, so that id is what is claimed before
//! the work is done. (The id in `X-Service-Delivery` is not signed; never decide by it.)
//!
//! ```
//! use webhook_verify::{Secret, Signer, Tolerance, Verified, Verifier};
//! use webhook_verify::replay::{Claim, MemoryClaims, ReplayGuard};
//!
//! /// The event's id, out of the verified body. A real handler reads it with its JSON library.
//! fn event_id<'b>(body: &&'b [u8]) -> Option<&'b str> {
//!     std::str::from_utf8(body).ok()?.split('"').find(|part| part.starts_with("evt_"))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let body = br#"{"id":"evt_1"}"#;
//! # let header = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//! let guard = ReplayGuard::new(MemoryClaims::new(Tolerance::default(), 10_000));
//!
//! let verified = verifier.verify(&header, body)?;
//! match guard.claim(&verified, event_id)? {
//!     Claim::New(claimed) => {
//!         // Do the work. If it fails, dropping `claimed` gives the event back, and it may be delivered again.
//!         claimed.commit()?;
//!     }
//!     Claim::InProgress => { /* Another request is at it: answer 409 and let it finish. */ }
//!     Claim::Done => { /* Handled before: answer 200 and do nothing. */ }
//! }
//! assert!(matches!(guard.claim(&verified, event_id)?, Claim::Done));
//! # Ok(())
//! # }
//! ```
//!
//! [`MemoryClaims`] serves one process; with the feature `sled` a `SledClaims` survives its restart. Several processes
//! need a place they share: implement [`ClaimStore`] on the database where the order is, and commit the claim in the
//! order's own transaction.

mod memory;
#[cfg(feature = "sled")]
mod sled;

use core::fmt;

#[cfg(feature = "sled")]
pub use self::sled::{SledClaims, SledClaimsError};
pub use memory::{MemoryClaims, MemoryClaimsFull};

use crate::{Tolerance, Verified};

/// Where claims are kept. Each call is atomic.
pub trait ClaimStore: Send + Sync {
    /// Why the place cannot answer.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Claims an id at a time in seconds since 1970, unless someone has it.
    ///
    /// # Errors
    /// When the store cannot answer. Nothing is claimed then: refuse the request.
    fn claim(&self, id: &str, now_unix_seconds: u64) -> Result<Held, Self::Error>;

    /// Makes a claim final: the event is handled. Does nothing if the claim is no longer `ticket`'s.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn commit(&self, id: &str, ticket: Ticket, now_unix_seconds: u64) -> Result<(), Self::Error>;

    /// Gives a claim back: the event was not handled. Does nothing if the claim is no longer `ticket`'s.
    ///
    /// # Errors
    /// When the store cannot answer; the claim then runs out by itself.
    fn release(&self, id: &str, ticket: Ticket) -> Result<(), Self::Error>;
}

/// Tells one claim of an id from a later one, so that whoever was too slow cannot end somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// Who has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The caller, since just now.
    ByYou(Ticket),
    /// Somebody who is at work.
    InProgress,
    /// Nobody needs it any more: it was handled.
    Done,
}

/// For how long claims count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lifetimes {
    /// How long a handled event is remembered; `None` for ever.
    done_seconds: Option<u64>,
}

impl Lifetimes {
    /// A handler that is silent for so long has died; its claim is free again.
    const IN_PROGRESS_SECONDS: u64 = 60;

    /// A signature is taken from one tolerance before its time to one after, so a request can come again for twice the
    /// tolerance. Without an age check it can come again for ever.
    fn for_tolerance(tolerance: Tolerance) -> Self {
        Self { done_seconds: tolerance.as_seconds().map(|seconds| seconds.saturating_mul(2)) }
    }

    fn in_progress_until(now: u64) -> u64 {
        now.saturating_add(Self::IN_PROGRESS_SECONDS)
    }

    fn done_until(self, now: u64) -> u64 {
        self.done_seconds.map_or(u64::MAX, |seconds| now.saturating_add(seconds))
    }
}

/// Lets each event be handled once.
#[derive(Debug)]
pub struct ReplayGuard<S> {
    store: S,
}

impl<S: ClaimStore> ReplayGuard<S> {
    /// A guard that keeps its claims in a store.
    pub const fn new(store: S) -> Self {
        Self { store }
    }

    /// Claims a verified event by the id that `id` reads out of its body.
    ///
    /// # Errors
    /// [`ReplayError::NoId`] if the body has none, [`ReplayError::Store`] if the store cannot answer. In both cases
    /// refuse the request: what cannot be claimed cannot be handled once.
    pub fn claim<'g, 'v, B>(
        &'g self,
        verified: &'v Verified<B>,
        id: impl FnOnce(&'v B) -> Option<&'v str>,
    ) -> Result<Claim<'g, S>, ReplayError<S::Error>> {
        self.claim_at(verified, id, crate::unix_seconds())
    }

    /// Claims a verified event as of a time in seconds since 1970.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn claim_at<'g, 'v, B>(
        &'g self,
        verified: &'v Verified<B>,
        id: impl FnOnce(&'v B) -> Option<&'v str>,
        now_unix_seconds: u64,
    ) -> Result<Claim<'g, S>, ReplayError<S::Error>> {
        let id = id(verified.body()).filter(|id| !id.is_empty()).ok_or(ReplayError::NoId)?;
        Ok(match self.store.claim(id, now_unix_seconds).map_err(ReplayError::Store)? {
            Held::ByYou(ticket) => {
                Claim::New(Claimed { store: &self.store, id: Some(id.into()), ticket, now_unix_seconds })
            }
            Held::InProgress => Claim::InProgress,
            Held::Done => Claim::Done,
        })
    }
}

/// What came of a claim.
#[derive(Debug)]
#[must_use = "an event that is not claimed by you must not be handled"]
pub enum Claim<'g, S: ClaimStore> {
    /// The event is yours: handle it, then [`commit`](Claimed::commit).
    New(Claimed<'g, S>),
    /// Another request is handling it now.
    InProgress,
    /// It was handled before.
    Done,
}

/// An event that is yours to handle. Dropped without [`commit`](Self::commit), as when a handler fails or panics, it
/// gives the event back.
#[must_use = "dropping it gives the event back"]
pub struct Claimed<'g, S: ClaimStore> {
    store: &'g S,
    /// `None` once it was committed.
    id: Option<std::boxed::Box<str>>,
    ticket: Ticket,
    now_unix_seconds: u64,
}

impl<S: ClaimStore> Claimed<'_, S> {
    /// The event is handled: whoever brings it again is told that it is done.
    ///
    /// # Errors
    /// When the store cannot answer. The event may then be handled once more.
    pub fn commit(mut self) -> Result<(), S::Error> {
        match self.id.take() {
            Some(id) => self.store.commit(&id, self.ticket, self.now_unix_seconds),
            None => Ok(()),
        }
    }
}

impl<S: ClaimStore> Drop for Claimed<'_, S> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // Where this fails the claim runs out by itself.
            let _ = self.store.release(&id, self.ticket);
        }
    }
}

impl<S: ClaimStore> fmt::Debug for Claimed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("id", &self.id).field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// An event could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<E> {
    /// The verified body has no event id.
    #[error("the verified body has no event id")]
    NoId,
    /// The store of claims cannot answer.
    #[error("the claim could not be made: {0}")]
    Store(#[source] E),
}
