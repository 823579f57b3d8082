//! Which journal entries a backup still needs, although the tree holds them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keeps journal files from being removed: without scheduled backups all of them stay.
#[derive(Debug, Default)]
pub(crate) struct Retention(Mutex<Needs>);

#[derive(Debug, Default)]
struct Needs {
    /// The oldest scheduled backup holds what came up to here; the way from it to now is the journal.
    backed_up: u64,
    /// What each copy under way was begun at.
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

    /// Keeps every entry for as long as the copy lives.
    pub(crate) fn copying(self: &Arc<Self>) -> Copying {
        self.lock().copies.push(0);
        Copying { retention: Arc::clone(self), after: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Needs> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy under way.
pub(crate) struct Copying {
    retention: Arc<Retention>,
    after: u64,
}

impl Copying {
    /// Only the entries after this one are needed.
    pub(crate) fn begin_after(&mut self, number: u64) {
        let mut needs = self.retention.lock();
        if let Some(copy) = needs.copies.iter_mut().find(|copy| **copy == self.after) {
            *copy = number;
        }
        self.after = number;
    }
}

impl Drop for Copying {
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
    fn what_a_backup_or_a_copy_under_way_needs_stays() {
        let retention = Arc::new(Retention::default());
        assert_eq!(retention.needed_after(), 0);
        retention.backed_up(9);
        let mut copy = retention.copying();
        assert_eq!(retention.needed_after(), 0);
        copy.begin_after(7);
        let other = retention.copying();
        assert_eq!(retention.needed_after(), 0);
        drop(other);
        assert_eq!(retention.needed_after(), 7);
        drop(copy);
        assert_eq!(retention.needed_after(), 9);
    }
}
