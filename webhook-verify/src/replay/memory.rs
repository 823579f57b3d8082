//! Claims in the memory of one process.

use std::{
    boxed::Box,
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::claim_store::{ClaimStore, Committed, Held, Ticket};

/// A claim store in the memory of one process, with a maximum size. A restart loses the claims.
#[derive(Debug)]
pub struct MemoryClaims {
    capacity: usize,
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    by_id: HashMap<Box<str>, Entry>,
    /// The same claims, by `until` and ticket.
    by_expiry: BTreeMap<(u64, u64), Box<str>>,
    last_ticket: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    ticket: u64,
    until: u64,
    done: bool,
}

impl MemoryClaims {
    /// Creates a store for at most `capacity` claims. Choose more than the number of events that arrive within twice
    /// the tolerance.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, claims: Mutex::default() }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        // No code that holds the lock can panic halfway.
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claims {
    fn remove_expired(&mut self, now: u64) {
        while let Some(first) = self.by_expiry.first_entry().filter(|first| first.key().0 <= now) {
            let id = first.remove();
            self.by_id.remove(&id);
        }
    }

    fn set(&mut self, id: &str, entry: Entry) {
        if let Some(before) = self.by_id.insert(id.into(), entry) {
            self.by_expiry.remove(&(before.until, before.ticket));
        }
        self.by_expiry.insert((entry.until, entry.ticket), id.into());
    }

    fn is_held_by(&self, id: &str, ticket: Ticket) -> bool {
        self.by_id.get(id).is_some_and(|entry| entry.ticket == ticket.0 && !entry.done)
    }
}

impl ClaimStore for MemoryClaims {
    type Error = MemoryClaimsFull;
    type Tx = ();

    async fn claim(&self, (): &mut (), id: &str, now: u64, until: u64) -> Result<Held, MemoryClaimsFull> {
        let mut claims = self.claims();
        claims.remove_expired(now);
        match claims.by_id.get(id) {
            Some(entry) if entry.done => return Ok(Held::Done),
            Some(_) => return Ok(Held::InProgress),
            None if claims.by_id.len() >= self.capacity => return Err(MemoryClaimsFull),
            None => {}
        }
        claims.last_ticket += 1;
        let ticket = claims.last_ticket;
        claims.set(id, Entry { ticket, until, done: false });
        Ok(Held::ByYou(Ticket(ticket)))
    }

    async fn commit(&self, (): &mut (), id: &str, ticket: Ticket, until: u64) -> Result<Committed, MemoryClaimsFull> {
        let mut claims = self.claims();
        match claims.by_id.get(id) {
            Some(entry) if entry.ticket != ticket.0 => return Ok(Committed::TooLate),
            None if claims.by_id.len() >= self.capacity => return Err(MemoryClaimsFull),
            _ => claims.set(id, Entry { ticket: ticket.0, until, done: true }),
        }
        Ok(Committed::Finally)
    }

    fn release(&self, id: &str, ticket: Ticket) {
        let mut claims = self.claims();
        if claims.is_held_by(id, ticket)
            && let Some(entry) = claims.by_id.remove(id)
        {
            claims.by_expiry.remove(&(entry.until, entry.ticket));
        }
    }
}

/// The store is full. It never evicts a valid claim, because that would allow a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the claim store is full; raise the capacity of MemoryClaims")]
pub struct MemoryClaimsFull;
