//! Merges what the overlay has with what the tree has.

use std::{cmp::Ordering, iter::Peekable};

use crate::error::TreeError;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Two runs of entries in one order, as one run. Where both have a key, the newer one counts; where its value is `None`,
/// the key was removed and is left out.
pub(crate) struct Merge<N: Iterator, T: Iterator> {
    newer: Peekable<N>,
    tree: Peekable<T>,
    order: fn(&[u8], &[u8]) -> Ordering,
}

impl<N, T> Merge<N, T>
where
    N: Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    T: Iterator<Item = Result<Entry, TreeError>>,
{
    /// Both runs must be in this order. The newer run must have been read before the tree's: what an applied batch wrote is
    /// then in one of them at least.
    pub(crate) fn new(newer: N, tree: T, order: fn(&[u8], &[u8]) -> Ordering) -> Self {
        Self { newer: newer.peekable(), tree: tree.peekable(), order }
    }
}

impl<N, T> Iterator for Merge<N, T>
where
    N: Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    T: Iterator<Item = Result<Entry, TreeError>>,
{
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.newer.peek(), self.tree.peek()) {
                (Some((newer, _)), Some(Ok((in_tree, _)))) => (self.order)(newer, in_tree),
                (Some(_), None) => Ordering::Less,
                (_, _) => Ordering::Greater,
            };
            if order == Ordering::Greater {
                return self.tree.next();
            }
            if order == Ordering::Equal {
                self.tree.next();
            }
            if let Some((key, Some(value))) = self.newer.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}
