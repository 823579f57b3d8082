//! Rate limits: so many requests a minute for each API key, and for each address where there is no key.
//!
//! A window begins with the first request and lasts a minute (API specification, "Limits").

use std::{
    hash::Hash,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use payments_core::KeyId;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use warp::{
    http::{HeaderMap, HeaderValue, header},
    reply::Response,
};

use super::{
    client_address::{TrustedProxies, network_of},
    windows::{Taken, Windows},
};

/// Windows that each table keeps at most: 3,333 new addresses a second for a minute, in about 25 MB.
const MAX_WINDOWS: usize = 200_000;

/// What every route is limited by.
pub(crate) struct RateLimits {
    keys: Limit<KeyId>,
    addresses: Limit<IpAddr>,
    proxies: TrustedProxies,
}

impl RateLimits {
    /// So many requests a minute for a key, and for an address as these proxies tell it; 0 is no limit. `evicted` counts
    /// the windows that were dropped early because their table was full.
    pub(crate) fn new(per_key: u32, per_address: u32, proxies: TrustedProxies, evicted: &Counter) -> Self {
        Self { keys: Limit::new(per_key, evicted), addresses: Limit::new(per_address, evicted), proxies }
    }

    /// Counts a request with this key.
    pub(super) fn take_key(&self, key: &KeyId) -> Verdict {
        self.keys.take(key.clone(), Instant::now())
    }

    /// Counts a request without a key.
    pub(super) fn take_address(&self, peer: IpAddr, headers: &HeaderMap) -> Verdict {
        self.take(self.counted_as(peer, headers))
    }

    /// The address that a request is counted for.
    pub(super) fn counted_as(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        network_of(self.proxies.client(peer, headers))
    }

    /// Counts a request for an address.
    pub(super) fn take(&self, counted_as: IpAddr) -> Verdict {
        self.addresses.take(counted_as, Instant::now())
    }
}

/// What counting a request came to. `None` where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict(Option<Counted>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    limit: u32,
    remaining: u32,
    /// Where the request is one too many: how long until the window is over, in whole seconds, at least 1.
    retry_after: Option<u64>,
}

impl Verdict {
    /// For what is never limited.
    pub(super) const UNLIMITED: Self = Self(None);

    /// How many seconds to wait, if the request is one too many.
    pub(super) fn retry_after(self) -> Option<u64> {
        self.0?.retry_after
    }

    /// Writes `X-RateLimit-Limit` and `X-RateLimit-Remaining`, and `Retry-After` on a refusal. What was judged once is
    /// not judged again.
    pub(super) fn write(self, response: &mut Response) {
        response.extensions_mut().insert(Judged);
        if let Some(counted) = self.0 {
            let headers = response.headers_mut();
            headers.insert("x-ratelimit-limit", counted.limit.into());
            headers.insert("x-ratelimit-remaining", counted.remaining.into());
            if let Some(seconds) = counted.retry_after {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Judged;

/// Whether a request was counted, or needs no counting.
pub(super) fn is_judged(response: &Response) -> bool {
    response.extensions().get::<Judged>().is_some()
}

/// A limit for each key of one kind.
struct Limit<K> {
    per_window: u32,
    windows: Mutex<Windows<K>>,
    evicted: Counter,
}

impl<K: Hash + Eq + Clone> Limit<K> {
    fn new(per_window: u32, evicted: &Counter) -> Self {
        Self { per_window, windows: Mutex::new(Windows::new(per_window, MAX_WINDOWS)), evicted: evicted.clone() }
    }

    fn take(&self, key: K, now: Instant) -> Verdict {
        if self.per_window == 0 {
            return Verdict(None);
        }
        // No code panics while it holds the lock.
        let taken = self.windows.lock().unwrap_or_else(PoisonError::into_inner).take(key, now);
        if taken.evicted {
            self.evicted.inc();
        }
        Verdict(Some(self.counted(taken)))
    }

    fn counted(&self, taken: Taken) -> Counted {
        // Rounded up: waiting that long is enough.
        let seconds = taken.left.as_secs() + u64::from(taken.left.subsec_nanos() > 0);
        Counted {
            limit: self.per_window,
            remaining: taken.remaining.unwrap_or(0),
            retry_after: taken.remaining.is_none().then_some(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limit(per_window: u32) -> Limit<&'static str> {
        Limit::new(per_window, &Counter::default())
    }

    fn counted(limit: u32, remaining: u32, retry_after: Option<u64>) -> Verdict {
        Verdict(Some(Counted { limit, remaining, retry_after }))
    }

    #[test]
    fn a_window_begins_with_the_first_request_and_retry_after_tells_the_truth() {
        let windows = limit(2);
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        assert_eq!(windows.take("a", at(0)), counted(2, 1, None));
        assert_eq!(windows.take("a", at(30_000)), counted(2, 0, None));
        assert_eq!(windows.take("a", at(30_001)), counted(2, 0, Some(30)));
        assert_eq!(windows.take("b", at(30_001)), counted(2, 1, None));
        assert_eq!(windows.take("a", at(59_999)), counted(2, 0, Some(1)));
        assert_eq!(windows.take("a", at(60_000)), counted(2, 1, None));
        // Whoever waits as long as told is let in.
        for refused_at in [30_001_u64, 45_678, 59_999] {
            let windows = limit(1);
            windows.take("a", at(0));
            let wait = windows.take("a", at(refused_at)).retry_after().unwrap();
            assert_eq!(windows.take("a", at(refused_at + wait * 1000)).retry_after(), None);
        }
    }

    #[test]
    fn zero_is_no_limit() {
        let windows = limit(0);
        assert!((0..1000).all(|_| windows.take("a", Instant::now()) == Verdict(None)));
    }

    #[test]
    fn an_ipv6_network_of_64_bits_counts_as_one_and_a_mapped_address_as_what_it_maps() {
        let limits = RateLimits::new(0, 1, TrustedProxies::default(), &Counter::default());
        let refused =
            |text: &str| limits.take_address(text.parse().unwrap(), &HeaderMap::new()).retry_after().is_some();
        assert!(!refused("2001:db8:1:2::1"));
        assert!(refused("2001:db8:1:2:ffff::9"));
        assert!(!refused("2001:db8:1:3::1"));
        assert!(!refused("192.0.2.1"));
        assert!(refused("::ffff:192.0.2.1"));
    }
}
