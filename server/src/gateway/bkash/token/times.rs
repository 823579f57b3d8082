//! When a token may be requested and used, according to the stored times.
//!
//! Only requests that were sent count. They are at least five minutes apart, so that a gateway that fails for a minute
//! does not use up both requests of the hour.

use payments_core::Timestamp;

use crate::domain::StoredToken;

/// bKash tokens live for an hour. A longer lifetime in a response is ignored.
pub(super) const LIFETIME_SECONDS: u32 = 3600;
const MAX_REQUESTS_PER_HOUR: usize = 2;
const HOUR_SECONDS: u32 = 3600;
/// Minimum time between two requests.
pub(super) const SPACING_SECONDS: u32 = 300;
/// How long a server may take to get a token before another server may request one.
pub(super) const LEASE_SECONDS: u32 = 30;
/// How far the clocks of two servers may differ.
const TOLERANCE_SECONDS: u32 = 60;

/// Lowers each time to the latest value that it can have now. A later one was stored before the clock was set back. Returns
/// whether the record changed.
pub(super) fn bring_to(record: &mut StoredToken, now: Timestamp) -> bool {
    let is_later = |time: &Timestamp, latest: Timestamp| *time > latest.plus_seconds(TOLERANCE_SECONDS);
    let (lease_end, token_end) = (now.plus_seconds(LEASE_SECONDS), now.plus_seconds(LIFETIME_SECONDS));
    let of_requests = record.requested_at.iter_mut().map(|at| (at, now));
    let of_lease = record.requesting_until.iter_mut().map(|at| (at, lease_end));
    let of_token = record.expires_at.iter_mut().map(|at| (at, token_end));
    let mut has_changed = false;
    for (time, latest) in of_requests.chain(of_lease).chain(of_token).filter(|(time, latest)| is_later(time, *latest)) {
        *time = latest;
        has_changed = true;
    }
    has_changed
}

/// Drops the requests that no longer count.
pub(super) fn forget_old(record: &mut StoredToken, now: Timestamp) {
    record.requested_at.retain(|at| at.plus_seconds(HOUR_SECONDS) > now);
}

/// When the next token may be requested, if two have been requested within an hour.
pub(super) fn hour_is_over_at(record: &StoredToken) -> Option<Timestamp> {
    let requests = &record.requested_at;
    let oldest_of_two = requests.len().checked_sub(MAX_REQUESTS_PER_HOUR).and_then(|nth| requests.get(nth));
    oldest_of_two.map(|at| at.plus_seconds(HOUR_SECONDS))
}

/// When the next token may be requested; `None` for now.
pub(super) fn next_request(record: &StoredToken, now: Timestamp) -> Option<Timestamp> {
    let spaced = record.requested_at.last().map(|at| at.plus_seconds(SPACING_SECONDS));
    hour_is_over_at(record).max(spaced).filter(|at| *at > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000).unwrap()
    }

    fn requested(minutes: &[i64]) -> StoredToken {
        StoredToken { requested_at: minutes.iter().copied().map(at).collect(), ..StoredToken::default() }
    }

    #[test]
    fn two_requests_within_an_hour_are_spaced() {
        for (requests, now, next) in [
            (&[][..], 0, None),
            (&[0], 1, Some(5)),
            (&[0], 5, None),
            (&[0, 5], 6, Some(60)),
            (&[0, 5], 60, None),
            (&[0, 59], 60, Some(64)),
            (&[5, 60], 64, Some(65)),
        ] {
            let mut record = requested(requests);
            forget_old(&mut record, at(now));
            assert_eq!(next_request(&record, at(now)), next.map(at), "{requests:?} at minute {now}");
        }
    }

    #[test]
    fn a_stored_time_in_the_future_counts_as_now() {
        let mut record = requested(&[700]);
        record.expires_at = Some(at(760));
        record.requesting_until = Some(at(701));
        assert!(bring_to(&mut record, at(100)));
        assert_eq!((record.requested_at[0], record.expires_at), (at(100), Some(at(160))));
        assert_eq!(record.requesting_until, Some(at(100).plus_seconds(LEASE_SECONDS)));
        assert!(!bring_to(&mut record, at(100)));
        // The clocks of two servers may differ a little.
        let mut near = StoredToken { requested_at: vec![at(100).plus_seconds(5)], ..StoredToken::default() };
        assert!(!bring_to(&mut near, at(100)));
    }
}
