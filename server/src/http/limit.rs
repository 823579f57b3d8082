//! Rate limits: requests per minute per API key, or per client address on keyless routes.
//!
//! A window starts with the first request and lasts a minute (API specification, "Limits"). Requests whose key fails count
//! for their client address. Once the address has used up its window, the store is asked only about keys that worked lately.

use std::{
    fmt::Display,
    hash::Hash,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use payments_core::KeyId;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use warp::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    reply::Response,
};

use super::{
    client_address::{TrustedProxies, network_of},
    shared_windows::{Local, SharedWindows},
    windows::{Taken, Windows},
};
use crate::store::Store;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");

/// Maximum number of windows per table: 3,333 new addresses a second for a minute, in about 30 MB.
const MAX_WINDOWS: usize = 200_000;

pub struct RateLimits {
    keys: Limit<KeyId>,
    addresses: Limit<IpAddr>,
    proxies: TrustedProxies,
    begun: Instant,
    /// Seconds after `begun`. Until then some client may have used up its window by failed keys. Later, no client is looked
    /// up.
    failing_until: AtomicU64,
}

impl RateLimits {
    /// Allows `per_key` requests per minute per key and `per_address` per client address; 0 is no limit. `evicted` counts
    /// windows evicted early because their table was full.
    pub fn new(per_key: u32, per_address: u32, proxies: TrustedProxies, evicted: &Counter) -> Self {
        let (keys, addresses) = (Limit::new(per_key, evicted), Limit::new(per_address, evicted));
        Self { keys, addresses, proxies, begun: Instant::now(), failing_until: AtomicU64::new(0) }
    }

    /// Shares the limits with the other servers on a store, if it can have others.
    pub fn share(&mut self, store: &Arc<Store>) {
        if store.request_counts().is_some() {
            self.keys.share("key", store);
            self.addresses.share("address", store);
        }
    }

    pub(super) async fn take_key(&self, key: &KeyId) -> Verdict {
        self.keys.take(key.clone()).await
    }

    /// Returns the client's address, or IPv6 network, that a request counts for.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        network_of(self.proxies.client(peer, headers))
    }

    pub(super) async fn take_client(&self, client: IpAddr) -> Verdict {
        self.addresses.take(client).await
    }

    pub(super) async fn take_failed_key(&self, client: IpAddr) -> Verdict {
        let verdict = self.take_client(client).await;
        if let Some(seconds) = verdict.retry_after() {
            self.failing_until.fetch_max(self.begun.elapsed().as_secs() + seconds + 1, Ordering::Relaxed);
        }
        verdict
    }

    /// The verdict on a client whose window is used up. Returns `None` if no client used up its window by failed keys lately.
    pub(super) fn used_up(&self, client: IpAddr) -> Option<Verdict> {
        let failing_until = self.failing_until.load(Ordering::Relaxed);
        if failing_until == 0 || self.begun.elapsed().as_secs() >= failing_until {
            return None;
        }
        let taken = self.addresses.windows.lock().used_up(&client, Instant::now())?;
        Some(self.addresses.verdict(taken))
    }
}

/// The result of counting a request. `None` if there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict(Option<Counted>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    limit: u32,
    remaining: u32,
    /// Seconds until the window ends, at least 1, if the request exceeds the limit.
    retry_after: Option<u64>,
}

impl Verdict {
    pub(super) const UNLIMITED: Self = Self(None);

    pub(super) fn retry_after(self) -> Option<u64> {
        self.0?.retry_after
    }

    /// Writes `X-RateLimit-Limit` and `X-RateLimit-Remaining`, and `Retry-After` beyond the limit.
    pub(super) fn write(self, response: &mut Response) {
        if let Some(counted) = self.0 {
            let headers = response.headers_mut();
            headers.insert(LIMIT, counted.limit.into());
            headers.insert(REMAINING, counted.remaining.into());
            if let Some(seconds) = counted.retry_after {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
        }
    }
}

struct Limit<K> {
    per_window: u32,
    windows: Local<K>,
    shared: Option<SharedWindows<K>>,
    evicted: Counter,
}

impl<K: Hash + Ord + Clone + Display + Send + 'static> Limit<K> {
    fn new(per_window: u32, evicted: &Counter) -> Self {
        let windows = Arc::new(Mutex::new(Windows::new(per_window, MAX_WINDOWS)));
        Self { per_window, windows, shared: None, evicted: evicted.clone() }
    }

    fn share(&mut self, kind: &'static str, store: &Arc<Store>) {
        self.shared = Some(SharedWindows::new(kind, self.per_window, Arc::clone(&self.windows), Arc::clone(store)));
    }

    async fn take(&self, key: K) -> Verdict {
        if self.per_window == 0 {
            return Verdict::UNLIMITED;
        }
        let together = match &self.shared {
            Some(shared) => shared.take(&self.windows, &key, Instant::now()).await,
            None => None,
        };
        self.verdict(together.unwrap_or_else(|| self.windows.lock().take(key, Instant::now())))
    }

    fn verdict(&self, taken: Taken) -> Verdict {
        if taken.evicted {
            self.evicted.inc();
        }
        // Round up, so that a retry after this time succeeds.
        let seconds = taken.left.as_secs() + u64::from(taken.left.subsec_nanos() > 0);
        Verdict(Some(Counted {
            limit: self.per_window,
            remaining: taken.remaining.unwrap_or(0),
            retry_after: taken.remaining.is_none().then_some(seconds),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct At(Limit<&'static str>);

    impl At {
        fn take(&self, key: &'static str, now: Instant) -> Verdict {
            let taken = self.0.windows.lock().take(key, now);
            self.0.verdict(taken)
        }
    }

    fn limit(per_window: u32) -> At {
        At(Limit::new(per_window, &Counter::default()))
    }

    fn counted(limit: u32, remaining: u32, retry_after: Option<u64>) -> Verdict {
        Verdict(Some(Counted { limit, remaining, retry_after }))
    }

    #[test]
    fn a_window_starts_with_the_first_request_and_a_retry_after_the_wait_succeeds() {
        let windows = limit(2);
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        assert_eq!(windows.take("a", at(0)), counted(2, 1, None));
        assert_eq!(windows.take("a", at(30_000)), counted(2, 0, None));
        assert_eq!(windows.take("a", at(30_001)), counted(2, 0, Some(30)));
        assert_eq!(windows.take("b", at(30_001)), counted(2, 1, None));
        assert_eq!(windows.take("a", at(59_999)), counted(2, 0, Some(1)));
        assert_eq!(windows.take("a", at(60_000)), counted(2, 1, None));
        // A retry after the wait succeeds.
        for refused_at in [30_001_u64, 45_678, 59_999] {
            let windows = limit(1);
            windows.take("a", at(0));
            let wait = windows.take("a", at(refused_at)).retry_after().unwrap();
            assert_eq!(windows.take("a", at(refused_at + wait * 1000)).retry_after(), None);
        }
    }

    #[tokio::test]
    async fn zero_is_no_limit() {
        let windows = limit(0).0;
        for _ in 0..1000 {
            assert_eq!(windows.take("a").await, Verdict(None));
        }
    }

    #[tokio::test]
    async fn an_ipv6_64_network_counts_as_one_and_a_mapped_address_as_ipv4() {
        let limits = RateLimits::new(0, 1, TrustedProxies::default(), &Counter::default());
        let client = |text: &str| limits.client(text.parse().unwrap(), &HeaderMap::new());
        for (text, is_refused) in [
            ("2001:db8:1:2::1", false),
            ("2001:db8:1:2:ffff::9", true),
            ("2001:db8:1:3::1", false),
            ("192.0.2.1", false),
            ("::ffff:192.0.2.1", true),
        ] {
            assert_eq!(limits.take_client(client(text)).await.retry_after().is_some(), is_refused, "{text}");
        }
    }
}
