//! Parts of the list of payments, newest first.
//!
//! The payments that a value finds are a bitmap over the list of all payments, like those of a status. So a payment has one key
//! for each of its values, however many payments the value finds.

use std::ops::{Bound, Range};

use journaled_tree::Read;
use payments_core::PaymentId;

use super::{
    EmbeddedStore,
    codec::Records,
    keys::{self, List, StatusBitmap},
    lists, packed,
    stored::Parts,
    view::View,
};
use crate::{
    domain::{Lookup, Scope},
    store::{PaymentJson, PaymentSource, PaymentsFrom, StoreError},
};

type Positions<'s> = Box<dyn Iterator<Item = Result<u64, StoreError>> + Send + 's>;

impl EmbeddedStore {
    pub(super) fn part_of_payments(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>, StoreError> {
        let list = List::payments(scope);
        let within = self.positions_within(&list, scope, from)?;
        let positions: Positions<'_> = match source {
            PaymentSource::All => Box::new(within.rev().map(Ok)),
            PaymentSource::Status(status) => self.set_bits(&StatusBitmap::of(scope, status).blocks(), within),
            PaymentSource::Lookup(lookup) => self.set_bits(&keys::found_by(scope, lookup), within),
        };
        let mut found = Vec::new();
        let mut leaf = (u64::MAX, Vec::new());
        for position in positions {
            let position = position?;
            if leaf.0 != position / keys::LEAF {
                leaf = (position / keys::LEAF, self.database.bytes(&list.leaf(position))?);
            }
            let nth = usize::try_from(position % keys::LEAF).unwrap_or(usize::MAX);
            let id = packed::lines(&leaf.1).nth(nth).and_then(|id| id.parse().ok());
            let Some(id) = id else { continue };
            if let Some(json) = self.json_of(scope, &id)? {
                found.push((id, json));
            }
            if found.len() == at_most {
                break;
            }
        }
        Ok(found)
    }

    /// The positions of the list that a part may have.
    fn positions_within(&self, list: &List, scope: &Scope, from: &PaymentsFrom) -> Result<Range<u64>, StoreError> {
        let mut end: u64 = self.get(&list.count())?.unwrap_or_default();
        if let Some(after) = &from.after {
            end = end.min(self.position_of(scope, after)?.unwrap_or_default());
        }
        let mut begin = 0;
        if let Some(time) = from.created_after {
            let leaf = lists::first_leaf_from(&self.database, list, end, PaymentsFrom::earliest(time))?;
            begin = leaf.saturating_sub(1) * keys::LEAF;
        }
        if let Some(time) = from.created_before {
            let leaf = lists::first_leaf_from(&self.database, list, end, PaymentsFrom::latest(time))?;
            end = end.min(leaf * keys::LEAF);
        }
        Ok(begin..end)
    }

    /// The position of a scope's payment.
    fn position_of(&self, scope: &Scope, id: &PaymentId) -> Result<Option<u64>, StoreError> {
        let key = keys::session(id);
        let Some(record) = self.database.get(&key)? else { return Ok(None) };
        let parts = Parts::of(&key, &record)?;
        if parts.is_of(scope) { Ok(Some(parts.rest()?.position)) } else { Ok(None) }
    }

    /// The set bits within a range, highest first, of a bitmap whose records have this prefix.
    fn set_bits(&self, blocks: &[u8], within: Range<u64>) -> Positions<'_> {
        let Some(last) = within.end.checked_sub(1).filter(|last| *last >= within.start) else {
            return Box::new(std::iter::empty());
        };
        let block = |position| Bound::Included(keys::numbered(blocks, position / keys::BLOCK));
        let records = self.database.scan((block(within.start), block(last)), true);
        let name_bytes = blocks.len();
        Box::new(records.flat_map(move |entry| match entry {
            Ok((key, bits)) => {
                let number = key[name_bytes..].try_into().map(u64::from_be_bytes).unwrap_or_default();
                let positions = packed::set_bits_down(&bits).map(|bit| number * keys::BLOCK + bit);
                positions.filter(|position| within.contains(position)).map(Ok).collect::<Vec<_>>()
            }
            Err(error) => vec![Err(error.into())],
        }))
    }
}

impl View<'_, '_> {
    /// Whether a value finds a payment of a scope.
    pub(super) fn is_found(&self, scope: &Scope, lookup: &Lookup) -> Result<bool, StoreError> {
        Ok(self.count_prefix(&keys::found_by(scope, lookup), 1)? > 0)
    }

    /// Lets values find the payment at a position of its scope's list.
    pub(super) fn add_lookups(&mut self, scope: &Scope, position: u64, lookups: &[Lookup]) -> Result<(), StoreError> {
        for lookup in lookups {
            let block = keys::numbered(&keys::found_by(scope, lookup), position / keys::BLOCK);
            self.set_bit(block, position % keys::BLOCK, true)?;
        }
        Ok(())
    }
}
