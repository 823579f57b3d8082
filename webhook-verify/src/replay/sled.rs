//! Claims on disk, in a sled tree.

use std::{string::ToString, vec::Vec};

use super::claim_store::{ClaimStore, Committed, Held, Ticket};

/// Claims in a sled 0.34 tree of their own: they survive a restart of the process.
///
/// A committed claim is handed to the kernel before `commit` returns, so it survives the process; sled does not promise
/// that it survives a power cut. Where that matters, keep the claim with the order in your own database.
#[derive(Debug, Clone)]
pub struct SledClaims {
    tree: sled::Tree,
    tickets: sled::Db,
}

/// Ends of claims, state first: `until`, ticket, done.
const ENTRY_BYTES: usize = 17;
/// How many claims that ran out each new one removes at most: more than one, so that the tree shrinks again.
const SWEEP: usize = 4;
const BY_ID: u8 = b'i';
const BY_END: u8 = b'e';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    until: u64,
    ticket: u64,
    done: bool,
}

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.until.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.ticket.to_be_bytes());
        bytes[16] = u8::from(self.done);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (until, rest) = bytes.split_first_chunk()?;
        let (ticket, rest) = rest.split_first_chunk()?;
        Some(Self { until: u64::from_be_bytes(*until), ticket: u64::from_be_bytes(*ticket), done: *rest.first()? == 1 })
    }
}

impl SledClaims {
    /// Claims in a tree of this name, which nothing else may use.
    ///
    /// # Errors
    /// When sled cannot open the tree.
    pub fn open(db: &sled::Db, name: &str) -> Result<Self, SledClaimsError> {
        Ok(Self { tree: db.open_tree(name)?, tickets: db.clone() })
    }

    fn read(&self, id: &str) -> Result<(Option<sled::IVec>, Option<Entry>), SledClaimsError> {
        let bytes = self.tree.get(by_id(id))?;
        let entry = bytes.as_deref().and_then(Entry::from_bytes);
        Ok((bytes, entry))
    }

    /// Replaces what was read, unless someone else did meanwhile.
    fn replace(&self, id: &str, was: Option<sled::IVec>, entry: Option<Entry>) -> Result<bool, SledClaimsError> {
        let new = entry.map(|entry| sled::IVec::from(&entry.to_bytes()));
        let swapped = self.tree.compare_and_swap(by_id(id), was, new)?.is_ok();
        if let (true, Some(entry)) = (swapped, entry) {
            self.tree.insert(by_end(entry.until, id), id.as_bytes())?;
        }
        Ok(swapped)
    }

    /// Removes some of the claims that ran out.
    fn sweep(&self, now: u64) -> Result<(), SledClaimsError> {
        for end in self.tree.range([BY_END].as_slice()..by_end(now, "").as_slice()).take(SWEEP) {
            let (end, id) = end?;
            let id = core::str::from_utf8(&id).map(ToString::to_string).unwrap_or_default();
            let (was, entry) = self.read(&id)?;
            if entry.is_some_and(|entry| entry.until <= now) {
                self.replace(&id, was, None)?;
            }
            self.tree.remove(end)?;
        }
        Ok(())
    }
}

fn by_id(id: &str) -> Vec<u8> {
    [&[BY_ID], id.as_bytes()].concat()
}

fn by_end(until: u64, id: &str) -> Vec<u8> {
    [&[BY_END], until.to_be_bytes().as_slice(), id.as_bytes()].concat()
}

impl ClaimStore for SledClaims {
    type Error = SledClaimsError;

    fn claim(&self, id: &str, now: u64, until: u64) -> Result<Held, SledClaimsError> {
        self.sweep(now)?;
        loop {
            let (was, held) = self.read(id)?;
            match held {
                Some(held) if held.until > now && held.done => return Ok(Held::Done),
                Some(held) if held.until > now => return Ok(Held::InProgress),
                _ => {}
            }
            let ticket = self.tickets.generate_id()?;
            let entry = Entry { until, ticket, done: false };
            if self.replace(id, was, Some(entry))? {
                return Ok(Held::ByYou(Ticket(ticket)));
            }
        }
    }

    fn commit(&self, id: &str, ticket: Ticket, until: u64) -> Result<Committed, SledClaimsError> {
        loop {
            let (was, held) = self.read(id)?;
            if held.is_some_and(|held| held.ticket != ticket.0) {
                return Ok(Committed::TooLate);
            }
            if self.replace(id, was, Some(Entry { until, ticket: ticket.0, done: true }))? {
                self.tree.flush()?;
                return Ok(Committed::Finally);
            }
        }
    }

    fn release(&self, id: &str, ticket: Ticket) -> Result<(), SledClaimsError> {
        let (was, held) = self.read(id)?;
        if held.is_some_and(|held| held.ticket == ticket.0 && !held.done) {
            // Whoever changed it meanwhile took it over after its time.
            self.replace(id, was, None)?;
        }
        Ok(())
    }
}

/// sled cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("the store of claims failed: {0}")]
pub struct SledClaimsError(#[from] sled::Error);
