//! Pages of lists, newest first.

use journaled_tree::Read;
use payments_core::{Page, PageRequest};

use super::{
    EmbeddedStore,
    codec::Records,
    keys::{self, List, Marks},
    packed,
    stored::Stored,
};
use crate::{domain::Session, store::StoreError};

impl EmbeddedStore {
    /// A page of a list, newest first, with whatever its entries name: of all entries, or of those that are marked.
    pub(super) fn page<T>(
        &self,
        list: &List,
        marks: Option<&Marks>,
        request: PageRequest,
        mut item: impl FnMut(&str) -> Result<Option<T>, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let total: u64 = self.get(&marks.map_or_else(|| list.count(), Marks::count))?.unwrap_or_default();
        let places = match marks {
            // Made of what `total` counted: an entry that came meanwhile has a later place.
            None => {
                let end = total.saturating_sub(request.skipped());
                (end.saturating_sub(request.limit().into())..end).rev().collect()
            }
            Some(marks) => self.marked(marks, request.skipped(), request.limit())?,
        };
        let mut items = Vec::new();
        for ids in places.chunk_by(|one, next| one / keys::LEAF == next / keys::LEAF) {
            let leaf = self.database.bytes(&list.leaf(ids[0]))?;
            let leaf: Vec<_> = packed::lines(&leaf).collect();
            for place in ids {
                if let Some(id) = usize::try_from(place % keys::LEAF).ok().and_then(|nth| leaf.get(nth)) {
                    items.extend(item(id)?);
                }
            }
        }
        Ok(Page { items, total, page: request.page(), limit: request.limit() })
    }

    /// The places of marked entries, the latest first, after so many that are passed.
    fn marked(&self, marks: &Marks, mut skip: u64, limit: u32) -> Result<Vec<u64>, StoreError> {
        let blocks = marks.blocks();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut places = Vec::new();
        for entry in self.database.prefix_rev(&blocks) {
            let (key, block) = entry?;
            let count = packed::marked(&block);
            if skip >= count {
                skip -= count;
                continue;
            }
            let Some((_, number)) = keys::numbered(keys::MARKS, &key) else { continue };
            let passed = usize::try_from(std::mem::take(&mut skip)).unwrap_or(usize::MAX);
            let in_block = packed::marks_down(&block).skip(passed).map(|mark| number * keys::BLOCK + mark);
            places.extend(in_block.take(limit - places.len()));
            if places.len() >= limit {
                break;
            }
        }
        Ok(places)
    }

    /// The payments whose ids an index holds.
    pub(super) fn sessions_under(&self, prefix: &[u8]) -> Result<Vec<Session>, StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(prefix) {
            let (key, _) = entry?;
            let id = String::from_utf8_lossy(&key[prefix.len()..]).parse().ok();
            let stored = id.map(|id| self.get::<Stored>(&keys::session(&id))).transpose()?.flatten();
            found.extend(stored.map(|stored| stored.session));
        }
        Ok(found)
    }
}
