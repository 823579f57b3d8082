//! What a power cut keeps of the unsynced changes.

use fastrand::Rng;

/// One power cut. File systems differ: some keep the order of changes, others do not.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// Keeps the changes of all calls before this one.
    KeepsBefore(u64),
    /// Keeps each change with this chance in percent, whole or in part.
    Mixes(u8),
}

impl Cut {
    /// A random cut, after `calls` calls.
    pub(super) fn random(rng: &mut Rng, calls: u64) -> Self {
        match rng.u8(..10) {
            0 => Self::KeepsBefore(u64::MAX),
            1 => Self::KeepsBefore(0),
            2..5 => Self::KeepsBefore(rng.u64(calls.saturating_sub(50)..=calls)),
            _ => Self::Mixes(rng.u8(5..=95)),
        }
    }

    /// Whether a change reaches the disk, at least in part.
    pub(super) fn keeps(self, rng: &mut Rng, call: u64) -> bool {
        match self {
            Self::KeepsBefore(first) => call < first,
            Self::Mixes(percent) => rng.u8(..100) < percent,
        }
    }

    /// Whether a change reaches the disk in part.
    pub(super) fn tears(self, rng: &mut Rng) -> bool {
        matches!(self, Self::Mixes(_)) && rng.bool()
    }
}
