//! Claims in the memory of one process.

use std::{
    boxed::Box,
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::claim_store::{ClaimStore, Committed, Held, Ticket};

/// Claims in the memory of one process, up to a bound. They are gone when it ends.
#[derive(Debug)]
pub struct MemoryClaims {
    capacity: usize,
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    by_id: HashMap<Box<str>, Entry>,
    /// The same claims in the order in which they run out.
    by_end: BTreeMap<(u64, u64), Box<str>>,
    last_ticket: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    ticket: u64,
    until: u64,
    done: bool,
}

impl MemoryClaims {
    /// Room for so many claims at once. Take more than the number of events that come in twice the tolerance.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, claims: Mutex::default() }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        // Nothing in here panics half-way.
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claims {
    fn forget_what_ran_out(&mut self, now: u64) {
        while let Some(first) = self.by_end.first_entry().filter(|first| first.key().0 <= now) {
            let id = first.remove();
            self.by_id.remove(&id);
        }
    }

    fn set(&mut self, id: &str, entry: Entry) {
        if let Some(before) = self.by_id.insert(id.into(), entry) {
            self.by_end.remove(&(before.until, before.ticket));
        }
        self.by_end.insert((entry.until, entry.ticket), id.into());
    }

    fn is_held_by(&self, id: &str, ticket: Ticket) -> bool {
        self.by_id.get(id).is_some_and(|entry| entry.ticket == ticket.0 && !entry.done)
    }
}

impl ClaimStore for MemoryClaims {
    type Error = MemoryClaimsFull;

    fn claim(&self, id: &str, now: u64, until: u64) -> Result<Held, MemoryClaimsFull> {
        let mut claims = self.claims();
        claims.forget_what_ran_out(now);
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

    fn commit(&self, id: &str, ticket: Ticket, until: u64) -> Result<Committed, MemoryClaimsFull> {
        let mut claims = self.claims();
        match claims.by_id.get(id) {
            Some(entry) if entry.ticket != ticket.0 => return Ok(Committed::TooLate),
            None if claims.by_id.len() >= self.capacity => return Err(MemoryClaimsFull),
            _ => claims.set(id, Entry { ticket: ticket.0, until, done: true }),
        }
        Ok(Committed::Finally)
    }

    fn release(&self, id: &str, ticket: Ticket) -> Result<(), MemoryClaimsFull> {
        let mut claims = self.claims();
        if claims.is_held_by(id, ticket)
            && let Some(entry) = claims.by_id.remove(id)
        {
            claims.by_end.remove(&(entry.until, entry.ticket));
        }
        Ok(())
    }
}

/// There is no room for another claim. Nothing that still counts is thrown away to make some, since that would let a
/// request be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the memory of claims is full; give it a larger capacity")]
pub struct MemoryClaimsFull;
