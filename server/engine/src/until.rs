//! How far a restore goes, and what it leaves out.
//!
//! Changes have one order, that of their numbers. The clock whose time each of them carries may have stepped.

/// The last change that a restore takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The one before the first that was committed after this time, in milliseconds since 1970.
    Time(i64),
    /// The one of this number.
    Entry(u64),
}

impl Until {
    /// Whether a change comes after it. `at` is when the change was committed.
    pub(crate) fn is_before(self, number: u64, at: Option<i64>) -> bool {
        match self {
            Self::Time(time) => at.is_some_and(|at| at > time),
            Self::Entry(entry) => number > entry,
        }
    }
}

/// What a restore has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The number of the last change in it.
    pub last: u64,
    /// The changes after that.
    pub left_out: Option<LeftOut>,
}

/// Changes that were not restored, since they come after the place that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The earliest time at which one of them was committed, in milliseconds since 1970. What an opening writes by itself
    /// has no time.
    pub since: Option<i64>,
    /// The latest of these times.
    pub until: Option<i64>,
}

impl LeftOut {
    /// With one change more.
    pub(crate) fn with(known: Option<Self>, number: u64, at: Option<i64>) -> Self {
        let known = known.unwrap_or(Self { first: number, last: number, since: at, until: at });
        let since = known.since.into_iter().chain(at).min();
        Self { last: number, since, until: known.until.max(at), ..known }
    }
}
