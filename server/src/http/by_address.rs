//! Counts and limits the open connections of each client address.
//!
//! A /64 of IPv6 counts as one address, as in the rate limits. Connections of trusted proxies do not count, because a proxy
//! carries many clients.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use super::client_address::{TrustedProxies, network_of};

/// The open connections of every client address. Its size is bounded by the number of open connections.
pub struct ConnectionsByAddress {
    at_most: usize,
    proxies: TrustedProxies,
    open: Open,
}

type Open = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl ConnectionsByAddress {
    /// Allows `at_most` connections per address, and any number from trusted proxies.
    pub fn new(at_most: usize, proxies: TrustedProxies) -> Self {
        Self { at_most, proxies, open: Arc::default() }
    }

    /// Counts a connection until the result is dropped. `None` if the address has reached its limit.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<Admitted> {
        if self.proxies.trusts(peer) {
            return Some(Admitted(None));
        }
        let address = network_of(peer);
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        if *count >= self.at_most {
            return None;
        }
        *count += 1;
        Some(Admitted(Some((address, Arc::clone(&self.open)))))
    }
}

pub(super) struct Admitted(Option<(IpAddr, Open)>);

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some((address, open)) = &self.0 else { return };
        let mut open = open.lock();
        match open.get_mut(address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_at_most_its_limit_and_closed_connections_leave_no_entry() {
        let addresses = ConnectionsByAddress::new(2, TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]));
        let admit = |text: &str| addresses.admit(text.parse().unwrap());
        let first = admit("2001:db8::1").unwrap();
        let second = admit("2001:db8::ffff").unwrap();
        assert!(admit("2001:db8::2").is_none());
        let other = admit("2001:db8:0:1::2").unwrap();
        drop(first);
        let third = admit("2001:db8::3").unwrap();
        assert!(admit("2001:db8::2").is_none());
        let proxies: Vec<_> = (0..5).map(|_| admit("::ffff:10.0.0.1").unwrap()).collect();
        drop((second, third, other, proxies));
        assert!(addresses.open.lock().is_empty());
    }
}
