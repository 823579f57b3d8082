//! Bringing a store that an earlier version wrote into the present format.
//!
//! | format | what it has more |
//! |---|---|
//! | 1 | |
//! | 2 | the blocks of the lists of payments by status |
//! | 3 | when each response of an idempotency key was kept |

use std::collections::BTreeMap;

use super::{
    FORMAT,
    journal::Writes,
    keys::{self, BLOCK},
    tables,
};
use crate::store::{KeptResponse, StoreError};

/// What a store of an earlier format lacks, its mark included. Its journal must have been replayed before.
pub(super) fn from(found: u32, tree: &sled::Tree) -> Result<Writes, StoreError> {
    let mut writes = Writes::default();
    if found < 2 {
        blocks(tree, &mut writes)?;
    }
    if found < 3 {
        kept(tree, &mut writes)?;
    }
    writes.insert(keys::FORMAT.to_vec(), Some(FORMAT.to_string().into_bytes()));
    Ok(writes)
}

/// Counts the entries of each block of each list of payments by status.
fn blocks(tree: &sled::Tree, writes: &mut Writes) -> Result<(), StoreError> {
    let mut counts = BTreeMap::<Vec<u8>, u64>::new();
    for key in tree.scan_prefix(keys::LISTS).keys() {
        let key = key.map_err(StoreError::engine)?;
        if let Some((list, place)) = keys::entry_with_gaps(&key) {
            let block = [keys::BLOCKS, list, b"/", (place / BLOCK).to_be_bytes().as_slice()].concat();
            *counts.entry(block).or_default() += 1;
        }
    }
    writes.extend(counts.into_iter().map(|(block, count)| (block, Some(count.to_string().into_bytes()))));
    Ok(())
}

/// Enters each kept response in the index by time.
fn kept(tree: &sled::Tree, writes: &mut Writes) -> Result<(), StoreError> {
    for entry in tree.scan_prefix(keys::RESPONSES) {
        let (key, json) = entry.map_err(StoreError::engine)?;
        let response: KeptResponse = tables::parse(&key, &json)?;
        writes.insert(keys::kept(response.created_at, &key), Some(Vec::new()));
    }
    Ok(())
}
