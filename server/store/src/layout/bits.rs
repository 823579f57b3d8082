//! Status bitmaps: the payments of one status, by their positions in the list of all.

use payments_core::Status;

use super::keys;
use crate::domain::Scope;

/// How many bits a block has. A page of a status skips a block in one step.
pub(super) const BLOCK: u64 = 512;

pub(super) fn block(scope: &Scope, status: &Status, position: u64) -> Vec<u8> {
    keys::numbered(&keys::blocks(scope, status), position / BLOCK)
}

pub(super) fn set(block: &mut Vec<u8>, position: u64, is_set: bool) {
    let Some((byte, bit)) = place(position) else { return };
    if is_set && block.len() <= byte {
        block.resize(byte + 1, 0);
    }
    if let Some(byte) = block.get_mut(byte) {
        *byte = if is_set { *byte | bit } else { *byte & !bit };
    }
}

pub(super) fn is_set(block: &[u8], position: u64) -> bool {
    place(position).and_then(|(byte, bit)| Some(block.get(byte)? & bit != 0)).unwrap_or(false)
}

pub(super) fn is_clear(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

pub(super) fn count(block: &[u8]) -> u64 {
    block.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

/// The positions of the set bits of a block of this number, highest first.
pub(super) fn down(number: u64, block: &[u8]) -> impl Iterator<Item = u64> {
    (0..BLOCK).rev().map(move |bit| number * BLOCK + bit).filter(|position| is_set(block, *position))
}

fn place(position: u64) -> Option<(usize, u8)> {
    let bit = position % BLOCK;
    Some((usize::try_from(bit / 8).ok()?, 1 << (bit % 8)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_block_is_a_set_of_positions(changes in prop::collection::vec((1024..1536_u64, any::<bool>()), 0..200)) {
            let (mut block, mut model) = (Vec::new(), BTreeSet::new());
            for (position, is_set) in changes {
                set(&mut block, position, is_set);
                if is_set { model.insert(position); } else { model.remove(&position); }
                prop_assert_eq!(super::is_set(&block, position), is_set);
            }
            prop_assert!(block.len() <= 64);
            prop_assert_eq!((count(&block), is_clear(&block)), (model.len() as u64, model.is_empty()));
            prop_assert_eq!(down(2, &block).collect::<Vec<_>>(), model.into_iter().rev().collect::<Vec<_>>());
        }
    }
}
