//! Which journal entries a backup still needs, although the tree holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What keeps journal files from being removed: without scheduled backups all of them stay.
#[derive(Debug, Default)]
pub(crate) struct Retention(Mutex<Needs>);

#[derive(Debug, Default)]
struct Needs {
    /// The oldest scheduled backup holds the entries up to this one; the journal has those since.
    backed_up: u64,
    /// For each copy under way, the entry after which it needs every one.
    copies: Vec<u64>,
}

impl Retention {
    /// Entries after this one must stay.
    pub(crate) fn needed_after(&self) -> u64 {
        let needs = self.lock();
        needs.copies.iter().copied().chain([needs.backed_up]).min().unwrap_or(0)
    }

    /// From now on the entries after this one stay, until a later backup says otherwise.
    pub(crate) fn backed_up(&self, number: u64) {
        self.lock().backed_up = number;
    }

    /// Keeps the entries after the number that `begin` returns, until the [`Copying`] is dropped.
    pub(crate) fn copy_after<E>(&self, begin: impl FnOnce() -> Result<u64, E>) -> Result<Copying<'_>, E> {
        // Under the lock, so that no file is removed in between.
        let mut needs = self.lock();
        let after = begin()?;
        needs.copies.push(after);
        Ok(Copying { retention: self, after })
    }

    fn lock(&self) -> MutexGuard<'_, Needs> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy under way.
pub(crate) struct Copying<'r> {
    retention: &'r Retention,
    /// It needs every entry after this one.
    pub(crate) after: u64,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        let mut needs = self.retention.lock();
        if let Some(at) = needs.copies.iter().position(|copy| *copy == self.after) {
            needs.copies.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_a_backup_or_a_copy_needs_stay() {
        let retention = Retention::default();
        assert_eq!(retention.needed_after(), 0);
        retention.backed_up(9);
        let begin = |after| retention.copy_after(|| Ok::<_, ()>(after)).unwrap();
        let first = begin(0);
        assert_eq!(retention.needed_after(), 0);
        drop(first);
        let copy = begin(7);
        assert_eq!(retention.needed_after(), 7);
        let other = begin(0);
        assert_eq!(retention.needed_after(), 0);
        drop(other);
        assert_eq!(retention.needed_after(), 7);
        assert!(retention.copy_after(|| Err(())).is_err());
        assert_eq!(retention.needed_after(), 7);
        drop(copy);
        assert_eq!(retention.needed_after(), 9);
    }
}
