//! Handling each event once, although it may arrive twice.
//!
//! The platform may deliver the same event more than once, and whoever captured a request can send it again while its
//! signature is young enough. Both carry the same event id inside the signed body, so that id is what is claimed before
//! the work is done. (The id in `X-Service-Delivery` is not signed; never decide by it.)
//!
//! ```
//! use webhook_verify::{Secret, Signer, Verifier};
//! use webhook_verify::replay::{Claim, MemoryClaims, ReplayGuard};
//!
//! /// The event's id, out of the verified body. A real handler reads it with its JSON library.
//! fn event_id(body: &[u8]) -> Option<&str> {
//!     std::str::from_utf8(body).ok()?.split('"').find(|part| part.starts_with("evt_"))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let body = br#"{"id":"evt_1"}"#;
//! # let header = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//! let guard = ReplayGuard::new(MemoryClaims::new(10_000));
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
//! What is claimed can only come out of the verified body: an id from anywhere else, such as a header, does not compile.
//!
//! ```compile_fail
//! # use webhook_verify::{Verified, replay::{MemoryClaims, ReplayGuard}};
//! fn by_an_unsigned_header(guard: &ReplayGuard<MemoryClaims>, verified: &Verified<&[u8]>, header: &str) {
//!     let _ = guard.claim(verified, |_body| Some(header));
//! }
//! ```
//!
//! [`MemoryClaims`] serves one process; with the feature `sled` a `SledClaims` survives its restart. Several processes
//! need a place they share: implement [`ClaimStore`] on the database where the order is, and commit the claim in the
//! order's own transaction.

mod claim_store;
mod memory;
#[cfg(feature = "sled")]
mod sled;

use core::fmt;

#[cfg(feature = "sled")]
pub use self::sled::{SledClaims, SledClaimsError};
pub use claim_store::{ClaimStore, Committed, Held, Ticket};
pub use memory::{MemoryClaims, MemoryClaimsFull};

use crate::{Tolerance, Verified};

/// How long a claim counts that is neither committed nor given back, in seconds. A handler that is silent for so long has
/// died with its process. The platform waits 8 seconds for an answer.
pub const CLAIM_SECONDS: u64 = 60;

/// The longest event id that is claimed, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// Lets each event be handled once.
#[derive(Debug)]
pub struct ReplayGuard<S> {
    store: S,
    remember_seconds: u64,
}

impl<S: ClaimStore> ReplayGuard<S> {
    /// A guard that keeps its claims in a store, and remembers what was handled for as long as the same request could be
    /// taken again: twice the tolerance that it passed, or for ever where its age was not checked.
    pub const fn new(store: S) -> Self {
        Self { store, remember_seconds: 0 }
    }

    /// Remembers what was handled for at least so many seconds. The platform may deliver an event again with a new
    /// signature, later than any replay could come.
    #[must_use]
    pub const fn remember_seconds(mut self, seconds: u64) -> Self {
        self.remember_seconds = seconds;
        self
    }

    /// Claims a verified event by the id that `id` reads out of its body: `evt_…`, at most [`MAX_ID_BYTES`].
    ///
    /// # Errors
    /// [`ReplayError::NoId`] if the body has none, [`ReplayError::Store`] if the store cannot answer. In both cases
    /// refuse the request: what cannot be claimed cannot be handled once.
    pub fn claim<B: AsRef<[u8]>>(
        &self,
        verified: &Verified<B>,
        id: impl FnOnce(&[u8]) -> Option<&str>,
    ) -> Result<Claim<'_, S>, ReplayError<S::Error>> {
        self.claim_at(verified, id, crate::unix_time::unix_seconds())
    }

    /// Claims a verified event as of a time in seconds since 1970.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn claim_at<B: AsRef<[u8]>>(
        &self,
        verified: &Verified<B>,
        id: impl FnOnce(&[u8]) -> Option<&str>,
        now_unix_seconds: u64,
    ) -> Result<Claim<'_, S>, ReplayError<S::Error>> {
        let id = id(verified.body().as_ref()).filter(|id| is_event_id(id)).ok_or(ReplayError::NoId)?;
        let until = now_unix_seconds.saturating_add(CLAIM_SECONDS);
        Ok(match self.store.claim(id, now_unix_seconds, until).map_err(ReplayError::Store)? {
            Held::ByYou(ticket) => {
                let remember_until = self.remember_until(verified.tolerance(), now_unix_seconds);
                Claim::New(Claimed { store: &self.store, id: Some(id.into()), ticket, remember_until })
            }
            Held::InProgress => Claim::InProgress,
            Held::Done => Claim::Done,
        })
    }

    /// A signature is taken from one tolerance before its time to one after, both ends included, so a request that is
    /// taken now can come again up to and with twice the tolerance from now. Without an age check it can for ever.
    fn remember_until(&self, tolerance: Tolerance, now: u64) -> u64 {
        tolerance.as_seconds().map_or(u64::MAX, |seconds| {
            let replayable_seconds = seconds.saturating_mul(2).saturating_add(1);
            now.saturating_add(replayable_seconds.max(self.remember_seconds))
        })
    }
}

fn is_event_id(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES && text.strip_prefix("evt_").is_some_and(|rest| !rest.is_empty())
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
    remember_until: u64,
}

impl<S: ClaimStore> Claimed<'_, S> {
    /// The event is handled: whoever brings it again is told that it is done.
    ///
    /// # Errors
    /// [`CommitError::TooLate`] if handling took longer than [`CLAIM_SECONDS`] and somebody else has the event by now:
    /// undo what was done, if that can be. [`CommitError::Store`] if the store cannot answer: the event may then be
    /// handled once more.
    pub fn commit(mut self) -> Result<(), CommitError<S::Error>> {
        let Some(id) = self.id.take() else { return Ok(()) };
        match self.store.commit(&id, self.ticket, self.remember_until).map_err(CommitError::Store)? {
            Committed::Finally => Ok(()),
            Committed::TooLate => Err(CommitError::TooLate),
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
#[non_exhaustive]
pub enum ReplayError<E> {
    /// The verified body has no event id. Answer 400.
    #[error("the verified body has no event id")]
    NoId,
    /// The store of claims cannot answer; the source tells why. Answer 503.
    #[error("the event could not be claimed")]
    Store(#[source] E),
}

/// A claim could not be made final.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError<E> {
    /// Handling took so long that the claim ran out and somebody else took the event.
    #[error("the claim ran out after 60 s, and the event was claimed again")]
    TooLate,
    /// The store of claims cannot answer; the source tells why.
    #[error("the claim could not be made final")]
    Store(#[source] E),
}
