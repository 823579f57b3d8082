//! When the server queries the gateway next about a payment's attempt.

use payments_core::{RawStatus, Timestamp};

use crate::domain::{LATE_MONEY_MILLIS, LONGEST_CUSTOMER_BACKOFF_MILLIS, LONGEST_SILENT_BACKOFF_MILLIS};

pub(super) const FIRST_BACKOFF_MILLIS: i64 = 3_000;
/// The longest backoff interval while the payment waits for the gateway.
const LONGEST_GATEWAY_BACKOFF_MILLIS: i64 = 60_000;
/// The age of a change whose time lies in the future, because the clock went back. With an age of zero, the server would query
/// every three seconds until the clock reaches that time.
const UNKNOWN_AGE_MILLIS: i64 = 60 * 60 * 1000;

/// What a processing payment waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Customer,
    /// The gateway, which has not captured the approved money yet.
    Gateway,
    /// An answer of the gateway: it did not say whether the attempt has its money.
    Answer,
}

/// When to query the gateway next. `None` ends the queries: only an answered query does that.
///
/// The backoff interval is a third of the time since the payment last changed, or a twelfth while it waits for the
/// gateway. The server always queries when the session expires. From then on, the interval counts from the expiry.
pub(super) fn next_check(
    status: &RawStatus,
    waits_for: WaitsFor,
    changed_at: Timestamp,
    expires_at: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_processing = *status == RawStatus::Processing;
    let is_expired = expires_at <= now;
    let since = if is_processing && is_expired { expires_at.max(changed_at) } else { changed_at };
    let elapsed = now.as_millis() - since.as_millis();
    let elapsed = if elapsed < 0 { UNKNOWN_AGE_MILLIS } else { elapsed };
    if !is_processing && elapsed > LATE_MONEY_MILLIS && waits_for != WaitsFor::Answer {
        return None;
    }
    let (interval, longest) = match waits_for {
        WaitsFor::Answer if !is_processing => (elapsed / 3, LONGEST_SILENT_BACKOFF_MILLIS),
        _ if !is_processing => (elapsed / 3, LATE_MONEY_MILLIS),
        WaitsFor::Customer => (elapsed / 3, LONGEST_CUSTOMER_BACKOFF_MILLIS),
        WaitsFor::Gateway | WaitsFor::Answer => (elapsed / 12, LONGEST_GATEWAY_BACKOFF_MILLIS),
    };
    let next = plus_millis(now, interval.clamp(FIRST_BACKOFF_MILLIS, longest));
    Some(if is_processing && !is_expired { next.min(expires_at) } else { next })
}

pub(super) fn plus_millis(time: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + millis).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    #[test]
    fn backoff_grows_until_the_session_expires_and_restarts_there() {
        let processing = &RawStatus::Processing;
        let (begun, expiry) = (at(1_000), at(4_600));
        let mut now = begun;
        let mut queries = Vec::new();
        while now < at(20_000) {
            now = next_check(processing, WaitsFor::Customer, begun, expiry, now).unwrap();
            queries.push(now);
        }
        assert_eq!(queries[0], at(1_003));
        assert!(queries.contains(&expiry), "queries when the session expires");
        let after = queries.iter().find(|time| **time > expiry).unwrap();
        assert_eq!(*after, at(4_603));
        let intervals: Vec<i64> = queries.windows(2).map(|two| two[1].as_millis() - two[0].as_millis()).collect();
        assert!(intervals.iter().all(|interval| *interval <= LONGEST_CUSTOMER_BACKOFF_MILLIS));
        assert_eq!(intervals.last(), Some(&LONGEST_CUSTOMER_BACKOFF_MILLIS));
        assert!(queries.len() < 120, "{} queries in five hours", queries.len());
    }

    #[test]
    fn backoff_is_shorter_while_a_payment_waits_for_the_gateway() {
        let processing = &RawStatus::Processing;
        let mut now = at(0);
        let mut intervals = Vec::new();
        while now < at(3_600) {
            let next = |waits_for| next_check(processing, waits_for, at(0), at(0), now).unwrap();
            assert!(next(WaitsFor::Gateway) <= next(WaitsFor::Customer));
            intervals.push(next(WaitsFor::Gateway).as_millis() - now.as_millis());
            now = next(WaitsFor::Gateway);
        }
        assert_eq!((intervals[0], intervals.last()), (FIRST_BACKOFF_MILLIS, Some(&LONGEST_GATEWAY_BACKOFF_MILLIS)));
        assert!(intervals.len() < 100, "{} queries in an hour", intervals.len());
    }

    #[test]
    fn a_payment_that_changed_before_the_clock_went_back_is_not_queried_every_three_seconds() {
        let next = |status, waits_for| next_check(&status, waits_for, at(36_000), at(39_600), at(0)).unwrap();
        assert_eq!(next(RawStatus::Processing, WaitsFor::Customer), at(300));
        assert_eq!(next(RawStatus::Processing, WaitsFor::Gateway), at(60));
        assert_eq!(next(RawStatus::Failed, WaitsFor::Gateway), at(1_200));
    }

    #[test]
    fn an_ended_payment_is_queried_for_a_day() {
        let ended = &RawStatus::Failed;
        let mut now = at(0);
        let mut queries = 0;
        while let Some(next) = next_check(ended, WaitsFor::Gateway, at(0), at(0), now) {
            now = next;
            queries += 1;
        }
        assert!(now > at(24 * 3600) && queries < 60, "{queries} queries until {now}");
        // Nobody knows yet whether the money has arrived.
        for day in [1, 2, 30] {
            let next = next_check(ended, WaitsFor::Answer, at(0), at(0), at(day * 24 * 3600 + 1));
            assert_eq!(next, Some(at(day * 24 * 3600 + 3601)), "after {day} days");
        }
    }
}
