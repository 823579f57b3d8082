//! Which journal entries backups still need, although the tree has them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Decides which journal files must stay. Without scheduled backups all of them stay.
#[derive(Debug, Default)]
pub(crate) struct Retention(Mutex<Needs>);

#[derive(Debug, Default)]
struct Needs {
    /// The oldest scheduled backup has the entries up to this one; the journal has the later ones.
    backed_up: u64,
    /// For each running copy, the entry after which it needs every entry.
    copies: Vec<u64>,
}

impl Retention {
    /// The entry after which all entries must stay.
    pub(crate) fn needed_after(&self) -> u64 {
        let needs = self.lock();
        needs.copies.iter().copied().chain([needs.backed_up]).min().unwrap_or(0)
    }

    /// From now on only the entries after this one stay, until this is called with a later one.
    pub(crate) fn backed_up(&self, number: u64) {
        self.lock().backed_up = number;
    }

    /// Keeps the entries after the number that `begin` returns, until the [`Copying`] is dropped.
    pub(crate) fn copy_after<E>(&self, begin: impl FnOnce() -> Result<u64, E>) -> Result<Copying<'_>, E> {
        // Under the lock, so that no file is removed meanwhile.
        let mut needs = self.lock();
        let after = begin()?;
        needs.copies.push(after);
        Ok(Copying { retention: self, after })
    }

    fn lock(&self) -> MutexGuard<'_, Needs> {
        // No code panics while it has the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running copy.
pub(crate) struct Copying<'r> {
    retention: &'r Retention,
    /// The copy needs every entry after this one.
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
