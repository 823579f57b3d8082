//! How far a restore goes, and what it leaves out.
//!
//! Changes have one order, that of their numbers. The clock that each carries a time of may have stepped.

use payments_core::Timestamp;

use super::{journal::Writes, keys};

/// The last change of a store that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The one before the first that was committed after this time.
    Time(Timestamp),
    /// The one of this number.
    Entry(u64),
}

impl Until {
    /// Whether a change is beyond it. `at` is when it was committed.
    pub(super) fn is_before(self, number: u64, at: Option<Timestamp>) -> bool {
        match self {
            Self::Time(time) => at.is_some_and(|at| at > time),
            Self::Entry(entry) => number > entry,
        }
    }
}

/// What was made of a backup, of a journal, or of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
    /// The number of the last change in it.
    pub(crate) last: u64,
    /// What came after that.
    pub(crate) left_out: Option<LeftOut>,
}

/// Changes that were not restored, since they come after the place that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The numbers of the first and the last.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The earliest and the latest time at which they say that they were committed. What a start writes by itself does not.
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl LeftOut {
    /// With one change more.
    pub(super) fn with(known: Option<Self>, number: u64, at: Option<Timestamp>) -> Self {
        let known = known.unwrap_or(Self { first: number, last: number, since: at, until: at });
        let since = known.since.into_iter().chain(at).min();
        Self { last: number, since, until: known.until.max(at), ..known }
    }
}

/// When a batch was committed.
pub(super) fn committed_at(writes: &Writes) -> Option<Timestamp> {
    let millis = writes.get(keys::COMMITTED_AT)?.as_deref()?;
    Timestamp::from_millis(std::str::from_utf8(millis).ok()?.parse().ok()?).ok()
}
