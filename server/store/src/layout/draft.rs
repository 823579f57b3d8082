//! A change while it is decided: its reads and its writes.

use std::{borrow::Cow, collections::BTreeMap};

use payments_core::{AuditChange, Status};
use serde::de::DeserializeOwned;

use super::{
    bits,
    codec::{Reader, items, push_bytes, push_number},
    entry::{Entry, Record, day_of, key_at},
    head::{CHUNK, Head, push_day, read_day},
    keys,
    list::List,
    reads::{head_of, parse},
};
use crate::{
    CommitError, StoreError,
    bytes::View,
    domain::{DayTotals, Scope, differences},
};

/// The values as a change leaves them so far.
pub(super) struct Draft<'v> {
    view: &'v mut dyn View,
    packs: bool,
    /// The heads that the change has read. They are written at the end.
    heads: BTreeMap<Vec<u8>, Head>,
    /// What the records' fields were and are, if the change is audited.
    pub(super) trail: Option<Vec<AuditChange>>,
}

impl<'v> Draft<'v> {
    pub(super) fn new(view: &'v mut dyn View, packs: bool) -> Self {
        Self { view, packs, heads: BTreeMap::new(), trail: None }
    }

    pub(super) fn finish(self) {
        for (key, head) in self.heads {
            if head.is_empty() { self.view.remove(key) } else { self.view.put(key, head.encode()) }
        }
    }

    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        self.view.get(key)
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self, key: &[u8]) -> Result<Option<T>, CommitError> {
        Ok(self.get(key)?.map(|value| parse(key, &value)).transpose()?)
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.view.put(key, value);
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.view.remove(key);
    }

    /// A head, which may be changed.
    pub(super) fn head(&mut self, key: &[u8]) -> Result<&mut Head, CommitError> {
        if !self.heads.contains_key(key) {
            let head = head_of(key, self.view.get(key)?.as_deref())?;
            self.heads.insert(key.to_vec(), head);
        }
        Ok(self.heads.entry(key.to_vec()).or_default())
    }

    /// The length of a list: the position of its next item.
    pub(super) fn count(&mut self, list: &List) -> Result<u64, CommitError> {
        let head = self.head(&list.head)?;
        Ok(list.tail(head).map_or(0, super::head::Tail::count))
    }

    /// Writes a record over the one with its key, if there is one, and changes the entries.
    pub(super) fn replace<R: Record>(&mut self, before: Option<&R>, after: &R) -> Result<(), CommitError> {
        let key = after.key();
        let text = text_of(after)?;
        self.follow_trail(&key, before, Some(&text))?;
        self.put(key, text);
        self.change_entries(before.map(Record::entries).unwrap_or_default(), after.entries())
    }

    pub(super) fn delete<R: Record>(&mut self, record: &R) -> Result<(), CommitError> {
        let key = record.key();
        self.follow_trail(&key, Some(record), None)?;
        self.remove(key);
        self.change_entries(record.entries(), Vec::new())
    }

    fn follow_trail<R: Record>(
        &mut self,
        key: &[u8],
        before: Option<&R>,
        after: Option<&[u8]>,
    ) -> Result<(), CommitError> {
        if let Some(trail) = &mut self.trail
            && let Some((_, kind)) = keys::kind_of(key)
        {
            let before = before.map(text_of).transpose()?;
            let name = format!("{kind}/{}", keys::rest_of(key).unwrap_or_default());
            trail.extend(differences(kind, &name, before.as_deref(), after));
        }
        Ok(())
    }

    fn change_entries(&mut self, mut before: Vec<Entry>, mut after: Vec<Entry>) -> Result<(), CommitError> {
        before.retain(|entry| match after.iter().position(|it| it == entry) {
            Some(same) => {
                after.remove(same);
                false
            }
            None => true,
        });
        before.into_iter().try_for_each(|entry| self.take(entry))?;
        // Keep their order: a list grows one position after the other.
        after.into_iter().try_for_each(|entry| self.add(entry))
    }

    pub(super) fn add(&mut self, entry: Entry) -> Result<(), CommitError> {
        match entry {
            Entry::Key { key, value } => self.put(key, value),
            Entry::At { index, time, owner } => {
                let key = key_at(index, time, &owner, self.packs);
                let mut item = Vec::with_capacity(owner.len() + 1);
                if self.packs && index.is_shared() {
                    push_bytes(&mut item, &owner);
                }
                self.view.append(key, &item)?;
            }
            Entry::Owner { key, owner } => {
                let mut item = Vec::with_capacity(owner.len() + 1);
                push_bytes(&mut item, &owner);
                self.view.append(key, &item)?;
            }
            Entry::Sum { head, name, amount } => drop(self.head(&head)?.add(name, amount)),
            Entry::Item { list, position, item } => self.push(&list, position, &item)?,
            Entry::Bit { scope, status, position } => self.set_bit(&scope, &status, position, true)?,
            Entry::Found { list, position } => {
                let nth = self.count(&list)?;
                let mut item = Vec::new();
                push_number(&mut item, position.into());
                self.push(&list, nth, &item)?;
            }
            Entry::Day { scope, currency, day, added } => {
                let head = self.head(&keys::head_of_scope(&scope))?;
                let passed = match head.days.get_mut(&currency) {
                    Some((last, totals)) if *last == day => {
                        *totals += added;
                        return Ok(());
                    }
                    // An earlier day has a key of its own.
                    Some((last, _)) if *last > day => Some((day, added)),
                    _ => head.days.insert(currency, (day, added)),
                };
                if let Some((day, added)) = passed {
                    self.add_to_day(keys::day(&scope, currency, day_of(day)), added)?;
                }
            }
            Entry::Lane { scope, endpoint } => {
                if self.head(&keys::head_of_endpoint(&scope, &endpoint))?.add("outbox".to_owned(), 1) == 1 {
                    self.put(keys::lane(&endpoint), scope.to_string().into_bytes());
                }
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self, entry: Entry) -> Result<(), CommitError> {
        match entry {
            Entry::Key { key, .. } => self.remove(key),
            Entry::At { index, time, owner } => {
                let key = key_at(index, time, &owner, self.packs);
                self.take_owner(key, &owner)?;
            }
            Entry::Owner { key, owner } => self.take_owner(key, &owner)?,
            Entry::Sum { head, name, amount } => drop(self.head(&head)?.add(name, -amount)),
            Entry::Bit { scope, status, position } => self.set_bit(&scope, &status, position, false)?,
            Entry::Lane { scope, endpoint } => {
                if self.head(&keys::head_of_endpoint(&scope, &endpoint))?.add("outbox".to_owned(), -1) == 0 {
                    self.remove(keys::lane(&endpoint));
                }
            }
            Entry::Found { list, position } => self.take_found(&list, position)?,
            Entry::Item { list, position, .. } => {
                let what = format!("a change would remove position {position} from its list {}", list.name);
                return Err(StoreError::corrupt(&list.head, what).into());
            }
            Entry::Day { scope, day, .. } => {
                let what = format!("a change would take from the totals of {}", day_of(day));
                return Err(StoreError::corrupt(&keys::head_of_scope(&scope), what).into());
            }
        }
        Ok(())
    }

    fn take_owner(&mut self, key: Vec<u8>, owner: &[u8]) -> Result<(), CommitError> {
        let mut others = Vec::new();
        if let Some(value) = self.get(&key)? {
            items(&value).filter(|item| *item != owner).for_each(|item| push_bytes(&mut others, item));
        }
        if others.is_empty() {
            self.remove(key)
        } else {
            self.put(key, others)
        }
        Ok(())
    }

    pub(super) fn push(&mut self, list: &List, position: u64, item: &[u8]) -> Result<(), CommitError> {
        let head = self.head(&list.head)?;
        let tail = head.lists.entry(list.name.to_owned()).or_default();
        if tail.count() != position {
            let what = format!("its list {} has {} items, and one is added at {position}", list.name, tail.count());
            return Err(StoreError::corrupt(&list.head, what).into());
        }
        if let Some((number, chunk)) = tail.push(item) {
            self.put(list.chunk(number), chunk);
            if let Some(scope) = &list.bits {
                self.move_windows(scope, number)?;
            }
        }
        Ok(())
    }

    /// Sets or clears the bit of a payment: in the head while the payment is in the tail of its list, then in a block.
    fn set_bit(&mut self, scope: &Scope, status: &Status, position: u64, is_set: bool) -> Result<(), CommitError> {
        let list = List::payments(scope);
        let head = self.head(&list.head)?;
        let before = list.tail(head).map_or(0, |tail| tail.before);
        if let Some(nth) = position.checked_sub(before) {
            let window = head.windows.entry(status.to_string()).or_default();
            let bit = 1_u32.checked_shl(u32::try_from(nth).unwrap_or(u32::MAX)).unwrap_or_default();
            *window = if is_set { *window | bit } else { *window & !bit };
            if *window == 0 {
                head.windows.remove(status.as_str());
            }
            return Ok(());
        }
        let key = bits::block(scope, status, position);
        let mut block = self.get(&key)?.map(Cow::into_owned).unwrap_or_default();
        bits::set(&mut block, position, is_set);
        if bits::is_clear(&block) {
            self.remove(key)
        } else {
            self.put(key, block)
        }
        Ok(())
    }

    /// Moves bits from the head to blocks: those of the payments of a full chunk.
    fn move_windows(&mut self, scope: &Scope, chunk: u64) -> Result<(), CommitError> {
        let windows = std::mem::take(&mut self.head(&keys::head_of_scope(scope))?.windows);
        for (status, window) in windows {
            let status = Status::from(&*status);
            let first = chunk * CHUNK;
            let key = bits::block(scope, &status, first);
            let mut block = self.get(&key)?.map(Cow::into_owned).unwrap_or_default();
            (0..CHUNK).filter(|nth| window & (1 << nth) != 0).for_each(|nth| bits::set(&mut block, first + nth, true));
            if !bits::is_clear(&block) {
                self.put(key, block);
            }
        }
        Ok(())
    }

    fn add_to_day(&mut self, key: Vec<u8>, added: DayTotals) -> Result<(), CommitError> {
        let mut totals = match self.get(&key)? {
            Some(value) => {
                read_day(&mut Reader(&value)).ok_or_else(|| StoreError::corrupt(&key, "no totals of a day"))?
            }
            None => DayTotals::default(),
        };
        totals += added;
        let mut value = Vec::new();
        push_day(&mut value, &totals);
        self.put(key, value);
        Ok(())
    }
}

fn text_of<R: Record>(record: &R) -> Result<Vec<u8>, StoreError> {
    record.text().map_err(|error| StoreError::corrupt(&record.key(), error))
}
