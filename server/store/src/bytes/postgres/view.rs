//! The view of a cell that decisions read and write, and the known values of the cell.
//!
//! A decision may read a key that was not fetched. It then finds nothing and goes on, so one run shows nearly all keys that
//! it reads. That run does not count. But a record that was found absent in this way need not be fetched if the batch inserts
//! it: the insertion proves that it was absent.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    ops::RangeInclusive,
};

use crate::{
    StoreError,
    bytes::{CELL, Decision, Table, View},
};

/// How many bytes of a cell a server keeps from batch to batch.
const KEPT_BYTES: usize = 8 << 20;

/// A value, and the batch that wrote it if it is a hot entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) body: Vec<u8>,
    pub(super) batch: i64,
}

pub(super) type Found = Vec<(Vec<u8>, Option<Stored>)>;

/// The known values of a cell, while it is locked or as of this server's last batch.
#[derive(Default)]
pub(super) struct Known {
    /// Hot entries and values that this server has written, kept from batch to batch.
    kept: HashMap<Vec<u8>, Option<Stored>>,
    kept_bytes: usize,
    /// All other values, for one batch.
    fetched: HashMap<Vec<u8>, Option<Stored>>,
}

impl Known {
    /// The value under a key; `None` if it is not known.
    fn get(&self, key: &[u8]) -> Option<Option<&Stored>> {
        self.kept.get(key).or_else(|| self.fetched.get(key)).map(Option::as_ref)
    }

    pub(super) fn learn(&mut self, found: Found) {
        for (key, stored) in found {
            if Table::of(&key) == Some(Table::Hot) {
                self.keep(key, stored);
            } else {
                self.fetched.insert(key, stored);
            }
        }
    }

    /// Keeps the values that this server's own batch wrote.
    pub(super) fn keep_written(&mut self, batch: i64, writes: Writes) {
        let Writes { inserted, updated, deleted, hot, .. } = writes;
        let written = inserted.into_iter().chain(updated).map(|(key, body)| (key, Some(body)));
        let written = written.chain(deleted.into_iter().map(|key| (key, None)));
        for (key, body) in written.chain(hot.into_iter().map(|it| (it.key, it.body))) {
            self.keep(key, body.map(|body| Stored { body, batch }));
        }
        if self.kept_bytes > KEPT_BYTES {
            self.drop_kept();
        }
    }

    fn keep(&mut self, key: Vec<u8>, stored: Option<Stored>) {
        let size = |stored: &Option<Stored>| stored.as_ref().map_or(0, |stored| stored.body.len());
        self.kept_bytes += key.len() + size(&stored);
        let length = key.len();
        if let Some(before) = self.kept.insert(key, stored) {
            self.kept_bytes -= length + size(&before);
        }
    }

    pub(super) fn drop_kept(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    pub(super) fn drop_fetched(&mut self) {
        self.fetched.clear();
    }
}

#[derive(Debug)]
struct Write {
    /// `None` removes the value.
    value: Option<Vec<u8>>,
    /// Whether the batch has removed the earlier value, known or not.
    overwrites: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HotWrite {
    pub(super) key: Vec<u8>,
    /// `None` removes the value.
    pub(super) body: Option<Vec<u8>>,
    /// The batch that wrote the replaced version.
    pub(super) replaces: Option<i64>,
}

/// The writes of a batch, by the statements that make them, in the order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Writes {
    /// Records and entries that do not exist, or that nobody has looked for.
    pub(super) inserted: Vec<(Vec<u8>, Vec<u8>)>,
    /// Records and entries that exist or may exist.
    pub(super) updated: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) deleted: Vec<Vec<u8>>,
    pub(super) hot: Vec<HotWrite>,
    /// Whether the writes must be durable when their commit returns.
    pub(super) is_synced: bool,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.inserted.is_empty() && self.updated.is_empty() && self.deleted.is_empty() && self.hot.is_empty()
    }
}

pub(super) struct Plan {
    /// Kept keys that the decisions have read.
    pub(super) kept: BTreeSet<Vec<u8>>,
    /// Keys that must be fetched. Then all decisions run again.
    pub(super) missed: BTreeSet<Vec<u8>>,
    /// The writes. They count if no key was missed.
    pub(super) writes: Writes,
}

/// The view of a batch, one change after another.
pub(super) struct CellView<'k> {
    known: &'k Known,
    slots: &'k RangeInclusive<u16>,
    /// The writes of the accepted changes.
    batch: BTreeMap<Vec<u8>, Write>,
    /// The writes of the current change.
    change: BTreeMap<Vec<u8>, Write>,
    kept: BTreeSet<Vec<u8>>,
    /// Keys that were found absent without being fetched.
    assumed: BTreeSet<Vec<u8>>,
    missed: BTreeSet<Vec<u8>>,
    /// A key of another cell that the current change writes.
    foreign: Option<Vec<u8>>,
}

impl<'k> CellView<'k> {
    pub(super) fn new(known: &'k Known, slots: &'k RangeInclusive<u16>) -> Self {
        let (batch, change, kept, assumed, missed) = Default::default();
        Self { known, slots, batch, change, kept, assumed, missed, foreign: None }
    }

    /// Runs a decision. If it refuses its change or fails, the batch stays as it was.
    pub(super) fn decide(&mut self, decision: &mut Decision) -> Result<(), StoreError> {
        let decided = decision(self);
        let foreign = self.foreign.take();
        let is_accepted = match (decided, foreign) {
            (Ok(true), Some(key)) => Err(StoreError::corrupt(&key, "it is written in another cell than its own")),
            (Ok(is_accepted), _) => Ok(is_accepted),
            (Err(error), _) => Err(error),
        };
        match is_accepted {
            // Not `append`, which builds the whole map anew.
            Ok(true) => self.batch.extend(mem::take(&mut self.change)),
            _ => self.change.clear(),
        }
        is_accepted.map(drop)
    }

    pub(super) fn into_plan(self) -> Plan {
        let Self { known, batch, kept, assumed, mut missed, .. } = self;
        let is_proved = |key: &Vec<u8>| batch.get(key).is_some_and(|write| write.value.is_some() && !write.overwrites);
        missed.extend(assumed.into_iter().filter(|key| !is_proved(key)));
        let mut writes = Writes::default();
        for (key, Write { value, overwrites }) in batch {
            let found = known.get(&key);
            let before = found.flatten();
            if found.is_some() && before.map(|before| &before.body) == value.as_ref() {
                continue;
            }
            let is_hot = Table::of(&key) == Some(Table::Hot);
            match value {
                body if is_hot => writes.hot.push(HotWrite { key, body, replaces: before.map(|before| before.batch) }),
                Some(body) if before.is_some() || overwrites && found.is_none() => writes.updated.push((key, body)),
                Some(body) => writes.inserted.push((key, body)),
                None => writes.deleted.push(key),
            }
        }
        Plan { kept, missed, writes }
    }

    /// Records that a value is read.
    fn note(&mut self, key: &[u8], may_be_new: bool) {
        if self.change.contains_key(key) || self.batch.contains_key(key) {
            return;
        }
        if self.known.kept.contains_key(key) {
            self.kept.insert(key.to_vec());
        } else if !self.known.fetched.contains_key(key) {
            let those = if may_be_new { &mut self.assumed } else { &mut self.missed };
            those.insert(key.to_vec());
        }
    }

    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(write) => write.value.as_deref(),
            None => self.known.get(key).flatten().map(|stored| &*stored.body),
        }
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        if !self.is_of_cell(&key) {
            self.foreign = Some(key);
            return;
        }
        if Table::of(&key) == Some(Table::Hot) {
            // The batch deletes the version that it replaces.
            self.note(&key, false);
        }
        let earlier = self.change.get(&key).or_else(|| self.batch.get(&key));
        let overwrites = value.is_none() || earlier.is_some_and(|write| write.overwrites);
        self.change.insert(key, Write { value, overwrites });
    }

    fn is_of_cell(&self, key: &[u8]) -> bool {
        let Some(home) = key.first_chunk::<{ CELL.len() }>() else { return false };
        let slot = str::from_utf8(home).ok().and_then(|home| u16::from_str_radix(home, 16).ok());
        let is_here = home == CELL || slot.is_some_and(|slot| self.slots.contains(&slot));
        is_here && Table::of(key).is_some()
    }
}

impl View for CellView<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        if !self.is_of_cell(key) {
            return Err(StoreError::corrupt(key, "it is read in another cell than its own"));
        }
        self.note(key, Table::of(key) == Some(Table::Record));
        Ok(self.value(key).map(Cow::Borrowed))
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.write(key, Some(value));
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.write(key, None);
    }

    /// A place that does not pack has a key for each addition, so the key is nearly always new.
    fn append(&mut self, key: Vec<u8>, more: &[u8]) -> Result<(), StoreError> {
        self.note(&key, Table::of(&key) != Some(Table::Hot));
        let value = [self.value(&key).unwrap_or_default(), more].concat();
        self.put(key, value);
        Ok(())
    }
}
