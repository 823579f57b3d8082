//! Handles each event once, even if it arrives twice.
//!
//! The platform may deliver an event more than once, and an attacker can replay a captured request within the
//! tolerance. Both have the same event id in the signed body, so claim that id before you handle the event. Never use
//! the id in `X-Service-Delivery`, which is not signed.
//!
//! ```
//! use webhook_verify::{Secret, Signer, Verifier};
//! use webhook_verify::replay::{Claim, MemoryClaims, ReplayGuard};
//!
//! /// The event's id in the verified body. Use your JSON library here.
//! fn event_id(body: &[u8]) -> Option<&str> {
//!     std::str::from_utf8(body).ok()?.split('"').find(|part| part.starts_with("evt_"))
//! }
//!
//! # async fn handle() -> Result<(), Box<dyn std::error::Error>> {
//! # let body = br#"{"id":"evt_1"}"#;
//! # let header = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(body);
//! let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
//! let guard = ReplayGuard::new(MemoryClaims::new(10_000));
//!
//! let verified = verifier.verify(&header, body)?;
//! match guard.claim(&verified, event_id).await? {
//!     Claim::New(claimed) => {
//!         // Handle the event. If that fails, dropping `claimed` releases it for the next delivery.
//!         claimed.commit().await?;
//!     }
//!     Claim::InProgress => { /* Another request is handling it: respond with 409. */ }
//!     Claim::Done => { /* Handled before: respond with 200. */ }
//! }
//! assert!(matches!(guard.claim(&verified, event_id).await?, Claim::Done));
//! # Ok(())
//! # }
//! # let handled = core::pin::pin!(handle()).poll(&mut core::task::Context::from_waker(core::task::Waker::noop()));
//! # assert!(matches!(handled, core::task::Poll::Ready(Ok(()))), "memory never waits");
//! ```
//!
//! The id can only come from the verified body. An id from elsewhere, such as a header, does not compile:
//!
//! ```compile_fail
//! # use webhook_verify::{Verified, replay::{MemoryClaims, ReplayGuard}};
//! fn by_an_unsigned_header(guard: &ReplayGuard<MemoryClaims>, verified: &Verified<&[u8]>, header: &str) {
//!     let _ = guard.claim(verified, |_body| Some(header));
//! }
//! ```
//!
//! [`MemoryClaims`] works within one process. `SledClaims` (feature `sled`) survives a restart. To share claims between
//! processes, implement [`ClaimStore`] on the database that holds your orders. [`ReplayGuard::claim_in`] then claims the event
//! in the order's transaction, and [`Claimed::commit_in`] commits with it.

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

/// How long a claim lasts if it is neither committed nor released, in seconds. The platform waits only 8 seconds for a
/// response, so a handler that takes longer has crashed.
pub const CLAIM_SECONDS: u64 = 60;

/// The maximum length of an event id, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// Lets each event be handled only once.
#[derive(Debug)]
pub struct ReplayGuard<S> {
    store: S,
    remember_seconds: u64,
}

impl<S: ClaimStore> ReplayGuard<S> {
    /// Creates a guard on a store. It remembers a handled event for as long as its request can be replayed: twice the
    /// tolerance, or forever if the timestamp check is off.
    pub const fn new(store: S) -> Self {
        Self { store, remember_seconds: 0 }
    }

    /// Sets the minimum time to remember a handled event. The platform may deliver an event again with a new signature,
    /// after the old one can no longer be replayed.
    #[must_use]
    pub const fn remember_seconds(mut self, seconds: u64) -> Self {
        self.remember_seconds = seconds;
        self
    }

    /// Claims a verified event in a transaction of the store's database. Roll it back if you do not commit the claim.
    ///
    /// # Errors
    /// Those of [`claim`](Self::claim).
    pub async fn claim_in<B: AsRef<[u8]>>(
        &self,
        tx: &mut S::Tx,
        verified: &Verified<B>,
        id: impl FnOnce(&[u8]) -> Option<&str>,
    ) -> Result<Claim<'_, S>, ReplayError<S::Error>> {
        self.claim_at(tx, verified, id, crate::unix_time::unix_seconds()).await
    }

    /// Claims a verified event as of a given Unix time.
    ///
    /// # Errors
    /// Those of [`claim`](Self::claim).
    pub async fn claim_at<B: AsRef<[u8]>>(
        &self,
        tx: &mut S::Tx,
        verified: &Verified<B>,
        id: impl FnOnce(&[u8]) -> Option<&str>,
        now_unix_seconds: u64,
    ) -> Result<Claim<'_, S>, ReplayError<S::Error>> {
        let id = id(verified.body().as_ref()).filter(|id| is_event_id(id)).ok_or(ReplayError::NoId)?;
        let until = now_unix_seconds.saturating_add(CLAIM_SECONDS);
        Ok(match self.store.claim(tx, id, now_unix_seconds, until).await.map_err(ReplayError::Store)? {
            Held::ByYou(ticket) => {
                let remember_until = self.remember_until(verified.tolerance(), now_unix_seconds);
                Claim::New(Claimed { store: &self.store, id: Some(id.into()), ticket, remember_until })
            }
            Held::InProgress => Claim::InProgress,
            Held::Done => Claim::Done,
        })
    }

    /// A signature is valid from one tolerance before its timestamp to one after it, inclusive. So a request that is
    /// valid now can be replayed for up to twice the tolerance, or forever if the timestamp check is off.
    fn remember_until(&self, tolerance: Tolerance, now: u64) -> u64 {
        tolerance.as_seconds().map_or(u64::MAX, |seconds| {
            let replayable_seconds = seconds.saturating_mul(2).saturating_add(1);
            now.saturating_add(replayable_seconds.max(self.remember_seconds))
        })
    }
}

impl<S: ClaimStore<Tx = ()>> ReplayGuard<S> {
    /// Claims a verified event. `id` returns the event's id in the body: `evt_…`, at most [`MAX_ID_BYTES`].
    ///
    /// # Errors
    /// [`ReplayError::NoId`] if the body has no event id, [`ReplayError::Store`] if the store fails. Reject the request
    /// in both cases.
    pub async fn claim<B: AsRef<[u8]>>(
        &self,
        verified: &Verified<B>,
        id: impl FnOnce(&[u8]) -> Option<&str>,
    ) -> Result<Claim<'_, S>, ReplayError<S::Error>> {
        self.claim_in(&mut (), verified, id).await
    }
}

fn is_event_id(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES && text.strip_prefix("evt_").is_some_and(|rest| !rest.is_empty())
}

/// The result of a claim.
#[derive(Debug)]
#[must_use = "handle the event only if the claim is `New`"]
pub enum Claim<'g, S: ClaimStore> {
    /// You hold the claim: handle the event, then [`commit`](Claimed::commit).
    New(Claimed<'g, S>),
    /// Another request is handling the event.
    InProgress,
    /// The event was handled before.
    Done,
}

/// A claim on an event. Dropping it without [`commit`](Self::commit), for example when a handler fails or panics,
/// releases the claim.
#[must_use = "dropping it releases the claim"]
pub struct Claimed<'g, S: ClaimStore> {
    store: &'g S,
    /// `None` after the commit.
    id: Option<std::boxed::Box<str>>,
    ticket: Ticket,
    remember_until: u64,
}

impl<S: ClaimStore> Claimed<'_, S> {
    /// Commits the claim in the transaction in which it was made. It counts once you have committed that.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit). Roll the transaction back.
    pub async fn commit_in(mut self, tx: &mut S::Tx) -> Result<(), CommitError<S::Error>> {
        let Some(id) = self.id.take() else { return Ok(()) };
        match self.store.commit(tx, &id, self.ticket, self.remember_until).await.map_err(CommitError::Store)? {
            Committed::Finally => Ok(()),
            Committed::TooLate => Err(CommitError::TooLate),
        }
    }
}

impl<S: ClaimStore<Tx = ()>> Claimed<'_, S> {
    /// Commits the claim: later claims of this event return [`Claim::Done`].
    ///
    /// # Errors
    /// [`CommitError::TooLate`] if handling took longer than [`CLAIM_SECONDS`] and another request has claimed the
    /// event since: undo your work if you can. [`CommitError::Store`] if the store fails: the event may then be handled
    /// again.
    pub async fn commit(self) -> Result<(), CommitError<S::Error>> {
        self.commit_in(&mut ()).await
    }
}

impl<S: ClaimStore> Drop for Claimed<'_, S> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.store.release(&id, self.ticket);
        }
    }
}

impl<S: ClaimStore> fmt::Debug for Claimed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("id", &self.id).field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// Why an event could not be claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError<E> {
    /// The verified body has no event id. Respond with 400.
    #[error("the verified body has no event id")]
    NoId,
    /// The claim store failed; see the source. Respond with 503.
    #[error("the claim store could not claim the event")]
    Store(#[source] E),
}

/// Why a claim could not be committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError<E> {
    /// The claim expired and another request claimed the event.
    #[error("the claim expired after 60 s and another request claimed the event")]
    TooLate,
    /// The claim store failed; see the source.
    #[error("the claim store could not commit the claim")]
    Store(#[source] E),
}
