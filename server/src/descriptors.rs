//! File descriptors: how many this process may have open, and how they are divided.
//!
//! Every connection, every webhook request and every file of the store needs a descriptor. One pool for all would let
//! idle connections stop webhooks and the store, so each use gets a share that the others cannot take.

use rustix::process::{Resource, getrlimit, setrlimit};

/// For the store, the listening sockets, the runtime, the log and `/metrics`. An idle server has 17 open.
const OWN: usize = 48;
/// With fewer the server does not start.
const FEWEST: usize = 64;
/// Test pings under way at most.
const MAX_PINGS: usize = 128;
/// Webhook requests under way at most, however many descriptors there are.
const MAX_DELIVERIES: usize = 1024;
/// Connections unless `--max-connections` asks for another number.
const DEFAULT_CONNECTIONS: usize = 4096;
/// Connections of one address unless `--max-connections-per-address` asks for another number. Many phones share the
/// address of their carrier: 40 browsers open 6 each. One address takes a sixteenth of 4096.
const DEFAULT_PER_ADDRESS: usize = 256;

/// How the descriptors are divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Connections that clients may have open.
    pub(crate) connections: usize,
    /// Webhook requests that may be under way.
    pub(crate) deliveries: usize,
    /// Test pings that may be under way.
    pub(crate) pings: usize,
    /// Connections to endpoints that may stay open for the next request.
    pub(crate) kept: usize,
}

/// The process may open too few files.
#[derive(Debug, thiserror::Error)]
#[error("this process may open {limit} files and sockets, and the server needs {FEWEST}; raise `ulimit -n`")]
pub(crate) struct TooFew {
    limit: usize,
}

/// Raises the soft limit to the hard one. Returns the limit that then holds.
pub(crate) fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::warn!(%error, "the limit of open files stays at its soft value (ulimit -n)"),
        }
    }
    limit.current.and_then(|descriptors| usize::try_from(descriptors).ok()).unwrap_or(usize::MAX)
}

/// Divides `limit` descriptors. Half or more of what the server itself leaves is for clients; a quarter at most is for
/// webhook requests under way, and as much for test pings and for connections that stay open to endpoints and gateways.
pub(crate) fn divide(limit: usize, asked_connections: Option<u32>) -> Result<Shares, TooFew> {
    if limit < FEWEST {
        return Err(TooFew { limit });
    }
    let rest = limit - OWN;
    let deliveries = (rest / 4).min(MAX_DELIVERIES);
    let pings = (deliveries / 4).min(MAX_PINGS);
    let gateways = deliveries / 8;
    let kept = deliveries - pings - gateways;
    let available = rest - 2 * deliveries;
    let asked = asked_connections.map(|asked| usize::try_from(asked).unwrap_or(usize::MAX));
    let connections = asked.unwrap_or(DEFAULT_CONNECTIONS).min(available);
    match asked {
        Some(asked) if asked > available => tracing::warn!(
            asked,
            connections,
            limit,
            "--max-connections is cut down to what the limit of open files allows; raise `ulimit -n`"
        ),
        _ => tracing::debug!(connections, deliveries, pings, kept, limit, "file descriptors divided"),
    }
    Ok(Shares { connections, deliveries, pings, kept })
}

/// How many of `connections` one address may have. 0 asks for no limit.
pub(crate) fn per_address(connections: usize, asked: Option<u32>) -> usize {
    match asked {
        Some(0) => usize::MAX,
        Some(asked) => usize::try_from(asked).unwrap_or(usize::MAX),
        None => DEFAULT_PER_ADDRESS.min(connections / 4).max(1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_shares_never_exceed_the_limit_and_nobody_goes_without(
            limit in prop_oneof![FEWEST..5_000, 5_000..2_000_000_usize],
            asked in prop::option::of(1_u32..),
        ) {
            let Shares { connections, deliveries, pings, kept } = divide(limit, asked).unwrap();
            prop_assert!(OWN + connections + deliveries + pings + kept <= limit);
            prop_assert!([connections, deliveries, pings, kept].into_iter().all(|share| share >= 1));
            prop_assert!(asked.is_none_or(|asked| connections <= usize::try_from(asked).unwrap()));
            let per_address = per_address(connections, None);
            prop_assert!(per_address >= 1 && per_address <= connections.div_ceil(4));
        }
    }

    #[test]
    fn with_descriptors_enough_the_shares_are_the_usual_ones() {
        let shares = |connections, deliveries, pings, kept| Shares { connections, deliveries, pings, kept };
        assert_eq!(divide(usize::MAX, None).unwrap(), shares(4096, 1024, 128, 768));
        assert_eq!(divide(1024, None).unwrap(), shares(488, 244, 61, 153));
        assert_eq!(divide(FEWEST, None).unwrap(), shares(8, 4, 1, 3));
        assert_eq!(divide(20_000, Some(10_000)).unwrap().connections, 10_000);
        assert_eq!(
            divide(63, None).unwrap_err().to_string(),
            "this process may open 63 files and sockets, and the server needs 64; raise `ulimit -n`"
        );
        assert_eq!(
            (per_address(4096, None), per_address(4096, Some(0)), per_address(8, Some(5))),
            (256, usize::MAX, 5)
        );
    }
}
