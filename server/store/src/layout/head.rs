//! The head of lists and sums: one entry with everything that most commits of a scope, or of an endpoint, change.

use std::collections::BTreeMap;

use payments_core::Currency;

use super::codec::{Reader, items, push_bytes, push_number, push_signed};
use crate::domain::DayTotals;

/// How many items a full chunk of a list has. A head holds fewer of each list.
pub(super) const CHUNK: u64 = 32;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The sums that are not zero.
    pub(super) sums: BTreeMap<String, i128>,
    pub(super) lists: BTreeMap<String, Tail>,
    /// For each status, the bits of the payments in the tail of their list.
    pub(super) windows: BTreeMap<String, u32>,
    /// For each currency, the last day on which a payment was created, counted from 1970, and its totals.
    pub(super) days: BTreeMap<Currency, (u32, DayTotals)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// How many items the full chunks have.
    pub(super) before: u64,
    count: u64,
    items: Vec<u8>,
}

impl Tail {
    /// A tail without items, after full chunks with this many.
    pub(super) fn beginning_at(before: u64) -> Self {
        Self { before, ..Self::default() }
    }

    pub(super) fn count(&self) -> u64 {
        self.before + self.count
    }

    /// Adds an item at the end. Returns the number and the content of the chunk that it fills.
    pub(super) fn push(&mut self, item: &[u8]) -> Option<(u64, Vec<u8>)> {
        push_bytes(&mut self.items, item);
        self.count += 1;
        if self.count < CHUNK {
            return None;
        }
        let number = self.before / CHUNK;
        (self.before, self.count) = (self.before + CHUNK, 0);
        Some((number, std::mem::take(&mut self.items)))
    }

    /// The items, the first of which is at the position [`before`](Self::before).
    pub(super) fn items(&self) -> impl Iterator<Item = &[u8]> {
        items(&self.items)
    }
}

impl Head {
    pub(super) fn sum(&self, name: &str) -> i128 {
        self.sums.get(name).copied().unwrap_or_default()
    }

    /// Adds to a sum, and returns the new sum.
    pub(super) fn add(&mut self, name: String, amount: i128) -> i128 {
        let sum = self.sum(&name) + amount;
        if sum == 0 {
            self.sums.remove(&name)
        } else {
            self.sums.insert(name, sum)
        };
        sum
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        push_number(&mut out, self.sums.len() as u128);
        for (name, sum) in &self.sums {
            push_bytes(&mut out, name.as_bytes());
            push_signed(&mut out, *sum);
        }
        push_number(&mut out, self.lists.len() as u128);
        for (name, tail) in &self.lists {
            push_bytes(&mut out, name.as_bytes());
            push_number(&mut out, tail.before.into());
            push_number(&mut out, tail.count.into());
            push_bytes(&mut out, &tail.items);
        }
        push_number(&mut out, self.windows.len() as u128);
        for (status, bits) in &self.windows {
            push_bytes(&mut out, status.as_bytes());
            push_number(&mut out, (*bits).into());
        }
        push_number(&mut out, self.days.len() as u128);
        for (currency, (day, totals)) in &self.days {
            push_bytes(&mut out, currency.code().as_bytes());
            push_number(&mut out, (*day).into());
            push_day(&mut out, totals);
        }
        out
    }

    /// `None` if it is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        let mut reader = Reader(bytes);
        for _ in 0..reader.number()? {
            head.sums.insert(reader.text()?.to_owned(), reader.signed()?);
        }
        for _ in 0..reader.number()? {
            let name = reader.text()?.to_owned();
            let (before, count) = (reader.short()?, reader.short()?);
            head.lists.insert(name, Tail { before, count, items: reader.bytes()?.to_vec() });
        }
        for _ in 0..reader.number()? {
            head.windows.insert(reader.text()?.to_owned(), reader.short()?);
        }
        for _ in 0..reader.number()? {
            let (currency, day) = (reader.text()?.parse().ok()?, reader.short()?);
            head.days.insert(currency, (day, read_day(&mut reader)?));
        }
        reader.0.is_empty().then_some(head)
    }
}

pub(super) fn push_day(out: &mut Vec<u8>, totals: &DayTotals) {
    push_number(out, totals.created.into());
    push_number(out, totals.paid.into());
    push_signed(out, totals.volume_minor);
}

pub(super) fn read_day(reader: &mut Reader<'_>) -> Option<DayTotals> {
    Some(DayTotals { created: reader.short()?, paid: reader.short()?, volume_minor: reader.signed()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_damage_is_noticed() {
        let mut head = Head::default();
        assert_eq!(Head::decode(&head.encode()), Some(Head::default()));
        assert_eq!((head.add("a".into(), 7), head.add("b".into(), -9), head.add("a".into(), -7)), (7, -9, 0));
        head.lists.entry("payments".into()).or_default().push(&[1; 19]);
        head.windows.insert("pending".into(), 1);
        head.days.insert(Currency::Bdt, (20_000, DayTotals { created: 1, ..DayTotals::default() }));
        let bytes = head.encode();
        assert_eq!(Head::decode(&bytes), Some(head));
        for end in 0..bytes.len() {
            assert_eq!(Head::decode(&bytes[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_full_tail_becomes_a_chunk() {
        let mut tail = Tail::default();
        let full: Vec<_> = (0..70_u8).filter_map(|nth| tail.push(&[nth])).collect();
        assert_eq!(full.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(items(&full[1].1).next(), Some(&[32][..]));
        assert_eq!((tail.before, tail.count(), tail.items().count()), (64, 70, 6));
    }
}
