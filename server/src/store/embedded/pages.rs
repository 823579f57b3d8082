//! Pages of lists, newest first.

use std::str::FromStr;

use journaled_tree::Read;
use payments_core::{Page, PageRequest, PaymentId, UnknownFields};

use super::{
    EmbeddedStore,
    codec::Records,
    keys::{self, List, StatusBitmap},
    packed,
    stored::{Parts, Stored},
};
use crate::{
    domain::{Scope, Session},
    store::{PaymentJson, StoreError},
};

impl EmbeddedStore {
    /// A page of a list, newest first: of all entries, or of those in a status bitmap. `item` reads what an entry names.
    pub(super) fn page<I: FromStr, T>(
        &self,
        list: &List,
        bitmap: Option<&StatusBitmap>,
        request: PageRequest,
        item: impl Fn(&I) -> Result<Option<T>, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let total: u64 = self.get(&bitmap.map_or_else(|| list.count(), StatusBitmap::count))?.unwrap_or_default();
        let positions = match bitmap {
            // Entries that are added while this reads have later positions.
            None => {
                let end = total.saturating_sub(request.skipped());
                (end.saturating_sub(request.limit().into())..end).rev().collect()
            }
            Some(bitmap) => self.positions_in(bitmap, request.skipped(), request.limit())?,
        };
        let mut items = Vec::new();
        for ids in positions.chunk_by(|one, next| one / keys::LEAF == next / keys::LEAF) {
            let leaf = self.database.bytes(&list.leaf(ids[0]))?;
            let leaf: Vec<_> = packed::lines(&leaf).collect();
            for position in ids {
                let id = usize::try_from(position % keys::LEAF).ok().and_then(|nth| leaf.get(nth)?.parse().ok());
                items.extend(id.map(|id| item(&id)).transpose()?.flatten());
            }
        }
        Ok(Page { items, total, page: request.page(), limit: request.limit(), unknown: UnknownFields::new() })
    }

    /// The positions of set bits, latest first, after the first `skip`.
    fn positions_in(&self, bitmap: &StatusBitmap, mut skip: u64, limit: u32) -> Result<Vec<u64>, StoreError> {
        let blocks = bitmap.blocks();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut positions = Vec::new();
        for entry in self.database.prefix_rev(&blocks) {
            let (key, block) = entry?;
            let count = packed::count_set(&block);
            if skip >= count {
                skip -= count;
                continue;
            }
            let Some((_, number)) = keys::name_and_number(keys::BITMAPS, &key) else { continue };
            let passed = usize::try_from(std::mem::take(&mut skip)).unwrap_or(usize::MAX);
            let in_block = packed::set_bits_down(&block).skip(passed).map(|bit| number * keys::BLOCK + bit);
            positions.extend(in_block.take(limit - positions.len()));
            if positions.len() >= limit {
                break;
            }
        }
        Ok(positions)
    }

    /// A payment of a scope, as the API serves it.
    pub(super) fn json_of(&self, scope: &Scope, id: &PaymentId) -> Result<Option<PaymentJson>, StoreError> {
        let key = keys::session(id);
        let Some(record) = self.database.get(&key)? else { return Ok(None) };
        Ok(Parts::payment_of(&key, record.into_owned(), scope)?.map(PaymentJson))
    }

    /// The payments that an index names.
    pub(super) fn sessions_under(&self, prefix: &[u8]) -> Result<Vec<Session>, StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(prefix) {
            let id = keys::id_after(prefix, &entry?.0);
            let stored = id.map(|id| Stored::read(&self.database, &id)).transpose()?.flatten();
            found.extend(stored.map(|stored| stored.session));
        }
        Ok(found)
    }
}
