//! Ranges of keys.

use std::ops::{Bound, RangeBounds};

/// The keys between two bounds.
#[derive(Debug, Clone)]
pub(crate) struct KeyRange {
    pub(crate) start: Bound<Vec<u8>>,
    pub(crate) end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// The range of these bounds; `None` where no key can lie between them.
    pub(crate) fn of(bounds: &impl RangeBounds<Vec<u8>>) -> Option<Self> {
        let range = Self { start: bounds.start_bound().cloned(), end: bounds.end_bound().cloned() };
        let is_possible = match (&range.start, &range.end) {
            (Bound::Included(start), Bound::Included(end)) => start <= end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
                start < end
            }
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        };
        is_possible.then_some(range)
    }

    /// The bounds of the keys with this prefix, after its first bound where there is one.
    pub(crate) fn with_prefix(prefix: &[u8], after: Option<&[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let start = match after.filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after.to_vec()),
            None => Bound::Included(prefix.to_vec()),
        };
        (start, after_prefix(prefix))
    }
}

/// The bound after the last key with this prefix.
fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    // The last byte that has a next one takes it; what follows that byte cannot be counted up.
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| &prefix[..=last]);
    match kept.and_then(|kept| kept.split_last()) {
        Some((last, before)) => Bound::Excluded([before, &[last + 1]].concat()),
        None => Bound::Unbounded,
    }
}

impl RangeBounds<Vec<u8>> for KeyRange {
    fn start_bound(&self) -> Bound<&Vec<u8>> {
        self.start.as_ref()
    }

    fn end_bound(&self) -> Bound<&Vec<u8>> {
        self.end.as_ref()
    }
}
