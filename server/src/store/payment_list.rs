//! The list of a scope's payments, newest first, read from a payment or a time on.

use payments_core::{PaymentId, Status, Timestamp};

use crate::domain::Lookup;

/// How much earlier or later than its neighbours in the list a payment may have been created, by whatever server's clock.
const COMMITTED_WITHIN_MILLIS: u32 = 60_000;

/// Which payments of a scope a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PaymentSource {
    All,
    /// Those of a public status.
    Status(Status),
    /// Those that are found by a value.
    Lookup(Lookup),
}

/// Which part of a list to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PaymentsFrom {
    /// Only payments after this one of the scope, which are older.
    pub(crate) after: Option<PaymentId>,
    /// No payment that was created at this time or later is left out. Some earlier ones may be there.
    pub(crate) created_after: Option<Timestamp>,
    /// No payment that was created before this time is left out. Some later ones may be there.
    pub(crate) created_before: Option<Timestamp>,
}

impl PaymentsFrom {
    /// A time before which a list in the order of the commits has no payment that was created at `time` or later.
    pub(crate) fn earliest(time: Timestamp) -> Timestamp {
        Timestamp::from_millis(time.as_millis() - i64::from(COMMITTED_WITHIN_MILLIS)).unwrap_or(time)
    }

    /// A time from which on such a list has no payment that was created before `time`.
    pub(crate) fn latest(time: Timestamp) -> Timestamp {
        time.plus_millis(COMMITTED_WITHIN_MILLIS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_list_has_the_payments_that_were_committed_a_moment_later_or_earlier() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000).unwrap();
        let margin = i64::from(COMMITTED_WITHIN_MILLIS) / 1_000;
        assert!(margin >= 60);
        assert_eq!(PaymentsFrom::earliest(at(1_000)), at(1_000 - margin));
        assert_eq!(PaymentsFrom::latest(at(1_000)), at(1_000 + margin));
    }
}
