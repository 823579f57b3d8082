//! Checks a whole store: every entry follows from a record, and every record has its entries.
//!
//! The check reads all values once, in the order of their keys, and looks others up. Only sums stay in memory.

mod entries;
mod records;
mod sums;

use std::{cell::RefCell, collections::HashMap, fmt::Display, rc::Rc};

use payments_core::Slot;
use serde::de::DeserializeOwned;

use self::sums::Sums;
use super::{
    Store, bits,
    codec::{Reader, items},
    entry::{Entry, day_of, key_at, owners_at},
    head::Head,
    keys,
    list::{List, ReadList},
    reads::{Reads, Scan},
    snapshot::{Checked, Finding},
};
use crate::{StoreError, bytes::Table};

struct Check<'b> {
    reads: Reads<'b>,
    /// The cell of the records that belong to no developer.
    directory: Reads<'b>,
    packs: bool,
    checked: Checked,
    sums: Sums,
    /// A cache of heads, because most lookups need one of a few.
    heads: RefCell<HashMap<Vec<u8>, Rc<Head>>>,
}

const HEADS: usize = 1_024;

impl Store {
    /// Checks a store that nobody writes to meanwhile. Calls `progress` with the number of values read.
    pub async fn check_all(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
        let mut checked = Checked::default();
        for reads in self.cells()? {
            let (sums, heads) = Default::default();
            let mut check =
                Check { reads, directory: self.of(Slot::FIRST), packs: self.bytes.packs(), checked, sums, heads };
            check.cell(progress).await?;
            checked = check.checked;
        }
        Ok(checked)
    }
}

impl Check<'_> {
    async fn cell(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let mut scan = Scan::new(self.reads, Vec::new()..vec![u8::MAX]);
        loop {
            match scan.next().await {
                Ok(None) => break,
                Ok(Some((key, value))) => self.value(&key, &value).await?,
                Err(StoreError::Corrupt { record, what }) => {
                    self.checked.records += 1;
                    self.checked.findings.push(Finding { record, what: format!("cannot be read: {what}") });
                }
                Err(error) => return Err(error),
            }
            progress(self.checked.records);
        }
        let sums = std::mem::take(&mut self.sums);
        sums.compare(|holds, key, what| self.expect(holds, key, what));
        Ok(())
    }

    async fn value(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((table, kind)) = keys::kind_of(key) else {
            if !is_of_place(key) {
                self.find(key, "is of no kind that this version writes");
            }
            return Ok(());
        };
        self.checked.records += 1;
        match table {
            Table::Record => self.record(kind, key, value).await,
            Table::Entry | Table::Hot => self.entry(kind, key, value).await,
        }
    }

    /// Expects every entry that follows from a record.
    async fn has_entries(&mut self, key: &[u8], entries: Vec<Entry>) -> Result<(), StoreError> {
        for entry in entries {
            if !self.has_entry(&entry).await? {
                self.find(key, format_args!("has no {}", name_of(&entry)));
            }
            self.sums.derive(entry);
        }
        Ok(())
    }

    async fn has_entry(&self, entry: &Entry) -> Result<bool, StoreError> {
        Ok(match entry {
            Entry::Key { key, value } => self.get(key).await?.as_ref() == Some(value),
            Entry::At { index, time, owner } => {
                let key = key_at(*index, *time, owner, self.packs);
                let value = self.get(&key).await?;
                value.is_some_and(|value| owners_at(*index, &key, &value).contains(owner))
            }
            Entry::Owner { key, owner } => {
                self.get(key).await?.is_some_and(|value| items(&value).any(|item| item == owner))
            }
            Entry::Item { list, position, item } => self.item(list, *position).await?.as_ref() == Some(item),
            Entry::Bit { scope, status, position } => {
                let list = List::payments(scope);
                let head = self.head(&list.head).await?;
                let before = list.tail(&head).map_or(0, |tail| tail.before);
                match position.checked_sub(before) {
                    Some(nth) => {
                        let window = head.windows.get(status.as_str()).copied().unwrap_or_default();
                        nth < 32 && window & (1 << nth) != 0
                    }
                    None => {
                        let block = self.get(&bits::block(scope, status, *position)).await?;
                        bits::is_set(&block.unwrap_or_default(), *position)
                    }
                }
            }
            Entry::Found { list, position } => self.finds(list, *position).await?,
            Entry::Sum { .. } | Entry::Day { .. } => true,
            Entry::Lane { endpoint, .. } => self.get(&keys::lane(endpoint)).await?.is_some(),
        })
    }

    async fn item(&self, list: &List, position: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut list = ReadList::of(self.reads, list.clone(), &*self.head(&list.head).await?);
        match list.at(&[position]).await {
            Err(StoreError::Corrupt { .. }) => Ok(None),
            found => Ok(found?.pop()),
        }
    }

    /// Whether the list of a lookup value has a payment's position. The positions grow along the list.
    async fn finds(&self, list: &List, position: u64) -> Result<bool, StoreError> {
        let mut list = ReadList::of(self.reads, list.clone(), &*self.head(&list.head).await?);
        let (mut low, mut high) = (0, list.count());
        while low < high {
            let middle = u64::midpoint(low, high);
            let item = match list.at(&[middle]).await {
                Err(StoreError::Corrupt { .. }) => return Ok(false),
                found => found?.pop().unwrap_or_default(),
            };
            match Reader(&item).short::<u64>().unwrap_or(u64::MAX).cmp(&position) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }

    /// A head of lists and sums; an empty one if it is missing or unreadable. The check reports an unreadable head when it
    /// reaches it.
    async fn head(&self, key: &[u8]) -> Result<Rc<Head>, StoreError> {
        if let Some(head) = self.heads.borrow().get(key) {
            return Ok(Rc::clone(head));
        }
        let head = Rc::new(match self.reads.head(key).await {
            Err(StoreError::Corrupt { .. }) => Head::default(),
            found => found?,
        });
        let mut heads = self.heads.borrow_mut();
        if heads.len() >= HEADS {
            heads.clear();
        }
        heads.insert(key.to_vec(), Rc::clone(&head));
        Ok(head)
    }

    fn find(&mut self, key: &[u8], what: impl Display) {
        self.checked.findings.push(Finding { record: key.escape_ascii().to_string(), what: what.to_string() });
    }

    fn expect(&mut self, holds: bool, key: &[u8], what: impl Display) {
        if !holds {
            self.find(key, what);
        }
    }

    fn parse<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8]) -> Option<T> {
        serde_json::from_slice(value).map_err(|error| self.find(key, format_args!("cannot be read: {error}"))).ok()
    }

    /// Another value, if it is there and can be read. The check reports an unreadable one when it reaches it.
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.reads.one(key.to_vec()).await {
            Err(StoreError::Corrupt { .. }) => Ok(None),
            found => found,
        }
    }

    async fn other<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        Ok(self.get(key).await?.and_then(|json| serde_json::from_slice(&json).ok()))
    }
}

/// Whether a key belongs to the state of the place itself.
fn is_of_place(key: &[u8]) -> bool {
    [journaled_tree::APPLIED, journaled_tree::COMMITTED_AT, journaled_tree::FORMAT].contains(&key)
}

fn name_of(entry: &Entry) -> String {
    match entry {
        Entry::Key { key, .. } | Entry::Owner { key, .. } => format!("entry {}", key.escape_ascii()),
        Entry::At { index, time, .. } => format!("entry in {index} at {time}"),
        Entry::Item { list, position, .. } => format!("place {position} in {}", list.name),
        Entry::Bit { status, position, .. } => format!("bit at its position {position} for its status {status}"),
        Entry::Found { .. } => "entry under a value by which it is found".to_owned(),
        Entry::Sum { name, .. } => format!("part in the sum {name}"),
        Entry::Day { day, .. } => format!("part in the totals of {}", day_of(*day)),
        Entry::Lane { endpoint, .. } => format!("lane of {endpoint}: it will never be sent"),
    }
}

/// The items of a value, each with its position.
fn placed(first: u64, bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    (first..).zip(items(bytes).map(<[u8]>::to_vec)).collect()
}
