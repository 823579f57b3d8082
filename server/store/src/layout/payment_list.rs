//! Reads the list of a scope's payments: all of them, those of a status, or those with a lookup value.

use std::{collections::VecDeque, ops::Range};

use payments_core::{Page, PageRequest, PaymentId, Status};

use super::{
    Store, bits,
    codec::Reader,
    head::{CHUNK, Head},
    keys,
    list::{List, ReadList},
    lists::{ids, page_of, positions_of},
    payment::{self, StoredPayment, count_of},
    reads::{Reads, Scan},
};
use crate::{
    PaymentJson, PaymentSource, PaymentsFrom, Result, domain::Scope, earliest_in_list, list_parts::latest_in_list,
};

/// How many blocks of a bitmap are read at a time.
const BLOCKS: usize = 16;
/// How many payments are read at a time.
const PART: usize = 32;

impl Store {
    /// A page of a scope's payments, newest first, of one public status or of all.
    pub async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        request: PageRequest,
    ) -> Result<Page<PaymentJson>> {
        let reads = self.of_scope(scope);
        let head = reads.head(&keys::head_of_scope(scope)).await?;
        let mut list = ReadList::of(reads, List::payments(scope), &head);
        let (positions, total) = match status {
            None => (positions_of(list.count(), request), list.count()),
            Some(status) => {
                let mut bits = SetBits::new(reads, scope, status, &head, 0..list.count());
                let total = u64::try_from(head.sum(&count_of(status))).unwrap_or_default();
                (bits.after(request.skipped(), request.limit()).await?, total)
            }
        };
        let ids = ids(PaymentId::PREFIX, &list.at(&positions).await?);
        let items = served(reads, scope, &ids).await?.into_iter().map(|(_, json)| json).collect();
        Ok(page_of(items, total, request))
    }

    /// At most `at_most` of a scope's payments, newest first. If there are fewer, no more follow.
    pub async fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        let reads = self.of_scope(scope);
        let head = reads.head(&keys::head_of_scope(scope)).await?;
        let mut list = ReadList::of(reads, List::payments(scope), &head);
        let within = positions_within(reads, &mut list, scope, from).await?;
        let mut positions = match source {
            PaymentSource::All => Positions::All(within),
            PaymentSource::Status(status) => Positions::Bits(SetBits::new(reads, scope, status, &head, within)),
            PaymentSource::Lookup(lookup) => {
                Positions::Found(Found::open(reads, List::found(scope, lookup), within).await?)
            }
        };
        let mut found = Vec::new();
        while found.len() < at_most {
            let part = positions.next(PART.min(at_most - found.len())).await?;
            if part.is_empty() {
                break;
            }
            let ids = ids(PaymentId::PREFIX, &list.at(&part).await?);
            found.extend(served(reads, scope, &ids).await?);
        }
        Ok(found)
    }
}

async fn served(reads: Reads<'_>, scope: &Scope, ids: &[PaymentId]) -> Result<Vec<(PaymentId, PaymentJson)>> {
    let keys: Vec<_> = ids.iter().map(keys::payment).collect();
    let records = reads.get(keys.clone()).await?;
    let mut found = Vec::new();
    for ((id, key), record) in ids.iter().zip(keys).zip(records) {
        let json = record.map(|record| payment::served(&key, record, scope)).transpose()?.flatten();
        found.extend(json.map(|json| (id.clone(), json)));
    }
    Ok(found)
}

/// The range of the list's positions that a part may have.
async fn positions_within(
    reads: Reads<'_>,
    list: &mut ReadList<'_>,
    scope: &Scope,
    from: &PaymentsFrom,
) -> Result<Range<u64>> {
    let mut within = 0..list.count();
    if let Some(after) = &from.after {
        let stored = StoredPayment::read(reads, after).await?.filter(|it| it.session.scope() == *scope);
        within.end = within.end.min(stored.map_or(0, |it| it.position));
    }
    if let Some(time) = from.created_after.map(earliest_in_list) {
        let chunk = list.first_chunk_since(PaymentId::PREFIX, PaymentId::created_at, time).await?;
        within.start = chunk.saturating_sub(1) * CHUNK;
    }
    if let Some(time) = from.created_before.map(latest_in_list) {
        let chunk = list.first_chunk_since(PaymentId::PREFIX, PaymentId::created_at, time).await?;
        within.end = within.end.min(chunk * CHUNK);
    }
    Ok(within)
}

enum Positions<'r> {
    All(Range<u64>),
    Bits(SetBits<'r>),
    Found(Found<'r>),
}

impl Positions<'_> {
    /// The next positions, at most `at_most`. If there are none, no more follow.
    async fn next(&mut self, at_most: usize) -> Result<Vec<u64>> {
        match self {
            Self::All(within) => {
                let first = within.end.saturating_sub(at_most as u64).max(within.start);
                let part = (first..within.end).rev().collect();
                within.end = first;
                Ok(part)
            }
            Self::Bits(bits) => bits.after(0, u32::try_from(at_most).unwrap_or(u32::MAX)).await,
            Self::Found(found) => found.next(at_most).await,
        }
    }
}

/// The set bits of a status within a range, highest first.
struct SetBits<'r> {
    /// The bits of payments in the tail of their list, then those of the block that was read last.
    next: VecDeque<u64>,
    blocks: Scan<'r>,
    /// The positions that count.
    within: Range<u64>,
}

impl<'r> SetBits<'r> {
    fn new(reads: Reads<'r>, scope: &Scope, status: &Status, head: &Head, within: Range<u64>) -> Self {
        let before = List::payments(scope).tail(head).map_or(0, |tail| tail.before);
        let window = head.windows.get(status.as_str()).copied().unwrap_or_default();
        let in_tail = (0..CHUNK).rev().filter(|nth| window & (1 << nth) != 0).map(|nth| before + nth);
        let next = in_tail.filter(|position| within.contains(position)).collect();
        // A block may have bits of payments whose chunk was filled after the head was read.
        let within = within.start..within.end.min(before);
        let first = within.start / bits::BLOCK;
        let end = if within.is_empty() { first } else { within.end.div_ceil(bits::BLOCK) };
        let block = |number| keys::numbered(&keys::blocks(scope, status), number);
        let blocks = Scan::new(reads, block(first)..block(end)).reversed().at_a_time(BLOCKS);
        Self { next, blocks, within }
    }

    /// The positions after the next `skip`, at most `limit`.
    async fn after(&mut self, mut skip: u64, limit: u32) -> Result<Vec<u64>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        while found.len() < limit {
            if let Some(position) = self.next.pop_front() {
                if skip == 0 {
                    found.push(position);
                } else {
                    skip -= 1;
                }
                continue;
            }
            let Some((key, block)) = self.blocks.next().await? else { break };
            // A whole block is skipped by its count.
            let number = keys::number_of(&key).unwrap_or_default();
            let is_within = number * bits::BLOCK >= self.within.start && (number + 1) * bits::BLOCK <= self.within.end;
            let count = bits::count(&block);
            if is_within && skip >= count {
                skip -= count;
                continue;
            }
            self.next = bits::down(number, &block).filter(|it| self.within.contains(it)).collect();
        }
        Ok(found)
    }
}

/// The positions of payments with a lookup value, within a range, highest first.
struct Found<'r> {
    list: ReadList<'r>,
    /// How many items of the list are left.
    left: u64,
    within: Range<u64>,
}

impl<'r> Found<'r> {
    async fn open(reads: Reads<'r>, list: List, within: Range<u64>) -> Result<Self> {
        let list = ReadList::open(reads, list).await?;
        Ok(Self { left: list.count(), list, within })
    }

    async fn next(&mut self, at_most: usize) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        while found.len() < at_most && self.left > 0 {
            let first = self.left.saturating_sub(CHUNK);
            let nth: Vec<u64> = (first..self.left).rev().collect();
            for item in self.list.at(&nth).await? {
                self.left -= 1;
                let position = Reader(&item).short::<u64>().unwrap_or(u64::MAX);
                if self.within.contains(&position) {
                    found.push(position);
                }
                if found.len() == at_most {
                    break;
                }
            }
            if self.left > first && found.len() < at_most {
                // Skip items that cannot be read.
                self.left = first;
            }
        }
        Ok(found)
    }
}
