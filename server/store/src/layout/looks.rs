//! Remembers which queues had no work. They need not be read again until somebody commits or work becomes due.

use std::collections::HashMap;

use parking_lot::Mutex;
use payments_core::Timestamp;

use crate::{Queue, bytes::Batch};

/// The last look at each queue of each cell, if it found no work.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<(u16, Queue), Look>>);

#[derive(Clone, Copy)]
struct Look {
    /// The newest commit before the look.
    newest: Batch,
    /// When the first work that was not due becomes due.
    until: Option<Timestamp>,
}

impl Looks {
    /// Whether a look would find nothing again.
    pub(super) fn is_vain(&self, cell: u16, queue: Queue, newest: Option<Batch>, now: Timestamp) -> bool {
        let looks = self.0.lock();
        let (Some(newest), Some(look)) = (newest, looks.get(&(cell, queue))) else { return false };
        look.newest == newest && look.until.is_none_or(|until| now < until)
    }

    /// Records that a look found nothing.
    pub(super) fn note(&self, cell: u16, queue: Queue, newest: Batch, until: Option<Timestamp>) {
        self.0.lock().insert((cell, queue), Look { newest, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_vain_until_somebody_commits_or_something_is_due() {
        let (looks, at) = (Looks::default(), |millis| Timestamp::from_millis(millis).unwrap());
        let newest = |number, tag| Batch { number, tag };
        assert!(!looks.is_vain(0, Queue::Retries, Some(newest(1, 1)), at(0)));
        looks.note(0, Queue::Retries, newest(1, 1), Some(at(10)));
        looks.note(0, Queue::FanOut, newest(1, 1), None);
        assert!(looks.is_vain(0, Queue::Retries, Some(newest(1, 1)), at(9)));
        assert!(!looks.is_vain(0, Queue::Retries, Some(newest(1, 1)), at(10)));
        assert!(looks.is_vain(0, Queue::FanOut, Some(newest(1, 1)), at(99)));
        // Another commit, another one of the same number after a failover, and another cell.
        for (cell, newest) in [(0, Some(newest(2, 1))), (0, Some(newest(1, 2))), (1, Some(newest(1, 1))), (0, None)] {
            assert!(!looks.is_vain(cell, Queue::FanOut, newest, at(0)));
        }
    }
}
