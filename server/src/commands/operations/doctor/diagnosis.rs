//! The doctor's finding about one thing.

use std::fmt;

/// A finding about one thing, and what to do if it is not in order.
pub(super) struct Diagnosis(pub(super) Verdict, pub(super) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    InOrder,
    /// The server runs, but not as it should.
    Warning,
    /// The server does not start, or loses or refuses something.
    Failed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InOrder => "ok",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
        })
    }
}

pub(super) fn in_order(text: impl Into<String>) -> Diagnosis {
    Diagnosis(Verdict::InOrder, text.into())
}

pub(super) fn warning(text: impl Into<String>) -> Diagnosis {
    Diagnosis(Verdict::Warning, text.into())
}

pub(super) fn failed(text: impl Into<String>) -> Diagnosis {
    Diagnosis(Verdict::Failed, text.into())
}
