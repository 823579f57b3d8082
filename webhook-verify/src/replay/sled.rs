//! Claims on disk, in a sled tree.
//! The key of a claim is `i` + id. The key in the expiry index is `e` + `until` + id.

use std::{path::Path, string::ToString, vec::Vec};

use super::claim_store::{ClaimStore, Committed, Held, Ticket};

/// A claim store in a sled 0.34 tree. Claims survive a restart.
///
/// `commit` hands the claim to the kernel before it returns, so it survives a crash of the process. sled does not
/// guarantee that it survives a power cut. If you need that, store the claim with the order in your own database.
#[derive(Debug, Clone)]
pub struct SledClaims {
    tree: sled::Tree,
    tickets: sled::Db,
}

/// The tree in the directory.
const TREE: &str = "claims";
/// The length of an entry: `until`, ticket and done.
const ENTRY_BYTES: usize = 17;
/// The maximum number of expired claims that each new claim removes: more than one, so that the tree can shrink.
const MAX_REMOVED: usize = 4;
const BY_ID: u8 = b'i';
const BY_EXPIRY: u8 = b'e';

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
    /// Opens a store in a directory of its own, or creates it. Clones share it; another process cannot open it.
    ///
    /// # Errors
    /// If sled cannot open the directory.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, SledClaimsError> {
        let tickets = sled::open(directory).map_err(SledClaimsError)?;
        Ok(Self { tree: tickets.open_tree(TREE).map_err(SledClaimsError)?, tickets })
    }

    fn read(&self, id: &str) -> Result<(Option<sled::IVec>, Option<Entry>), SledClaimsError> {
        let bytes = self.tree.get(by_id(id)).map_err(SledClaimsError)?;
        let entry = bytes.as_deref().and_then(Entry::from_bytes);
        Ok((bytes, entry))
    }

    /// Replaces an entry if it still has the bytes `was`. Returns whether it did.
    fn replace(&self, id: &str, was: Option<sled::IVec>, entry: Option<Entry>) -> Result<bool, SledClaimsError> {
        let new = entry.map(|entry| sled::IVec::from(&entry.to_bytes()));
        let swapped = self.tree.compare_and_swap(by_id(id), was, new).map_err(SledClaimsError)?.is_ok();
        if let (true, Some(entry)) = (swapped, entry) {
            self.tree.insert(by_expiry(entry.until, id), id.as_bytes()).map_err(SledClaimsError)?;
        }
        Ok(swapped)
    }

    /// Removes up to [`MAX_REMOVED`] expired claims.
    fn remove_expired(&self, now: u64) -> Result<(), SledClaimsError> {
        for item in self.tree.range([BY_EXPIRY].as_slice()..by_expiry(now, "").as_slice()).take(MAX_REMOVED) {
            let (key, id) = item.map_err(SledClaimsError)?;
            let id = core::str::from_utf8(&id).map(ToString::to_string).unwrap_or_default();
            let (was, entry) = self.read(&id)?;
            if entry.is_some_and(|entry| entry.until <= now) {
                self.replace(&id, was, None)?;
            }
            self.tree.remove(key).map_err(SledClaimsError)?;
        }
        Ok(())
    }
}

fn by_id(id: &str) -> Vec<u8> {
    [&[BY_ID], id.as_bytes()].concat()
}

fn by_expiry(until: u64, id: &str) -> Vec<u8> {
    [&[BY_EXPIRY], until.to_be_bytes().as_slice(), id.as_bytes()].concat()
}

impl ClaimStore for SledClaims {
    type Error = SledClaimsError;
    type Tx = ();

    async fn claim(&self, (): &mut (), id: &str, now: u64, until: u64) -> Result<Held, SledClaimsError> {
        self.remove_expired(now)?;
        loop {
            let (was, held) = self.read(id)?;
            match held {
                Some(held) if held.until > now && held.done => return Ok(Held::Done),
                Some(held) if held.until > now => return Ok(Held::InProgress),
                _ => {}
            }
            let ticket = self.tickets.generate_id().map_err(SledClaimsError)?;
            let entry = Entry { until, ticket, done: false };
            if self.replace(id, was, Some(entry))? {
                return Ok(Held::ByYou(Ticket(ticket)));
            }
        }
    }

    async fn commit(&self, (): &mut (), id: &str, ticket: Ticket, until: u64) -> Result<Committed, SledClaimsError> {
        loop {
            let (was, held) = self.read(id)?;
            if held.is_some_and(|held| held.ticket != ticket.0) {
                return Ok(Committed::TooLate);
            }
            if self.replace(id, was, Some(Entry { until, ticket: ticket.0, done: true }))? {
                self.tree.flush().map_err(SledClaimsError)?;
                return Ok(Committed::Finally);
            }
        }
    }

    fn release(&self, id: &str, ticket: Ticket) {
        if let Ok((was, Some(held))) = self.read(id)
            && held.ticket == ticket.0
            && !held.done
        {
            // If the entry has changed since, the claim had expired and another caller holds it. If sled fails, it expires.
            let _ = self.replace(id, was, None);
        }
    }
}

/// sled failed.
#[derive(Debug, thiserror::Error)]
#[error("the claim store failed: {0}")]
pub struct SledClaimsError(#[source] sled::Error);
