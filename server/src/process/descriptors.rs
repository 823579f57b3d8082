//! File descriptors: the process's limit, and how it is divided.
//!
//! Every connection, webhook request and file of the store needs a descriptor. With one pool for all uses, idle connections
//! could stop webhooks and the store. So each use has its own share.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::CommandError;

/// Descriptors for the store, the listening sockets, the runtime, the log and `/metrics`. An idle server has 17 open.
const RESERVED: usize = 48;
/// With fewer descriptors, the server does not start.
const MIN_LIMIT: usize = 64;
const MAX_PINGS: usize = 128;
/// Maximum webhook requests in flight, however many descriptors there are.
const MAX_DELIVERIES: usize = 1024;
/// The sandbox of a public server gets one of this many parts of the requests to endpoints, but at least one request.
const SANDBOX_PART: usize = 16;
pub const DEFAULT_CONNECTIONS: usize = 4096;
/// Default of `--max-connections-per-address`. Many phones share their carrier's address: 40 browsers open 6 connections
/// each. One address gets a sixteenth of 4096.
const DEFAULT_PER_ADDRESS: usize = 256;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    pub connections: usize,
    pub deliveries: usize,
    pub pings: usize,
    /// Open connections to endpoints that may be reused.
    pub reusable: usize,
}

/// Raises the soft limit to the hard one. Returns the resulting limit.
pub fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, ..limit };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::warn!(%error, "cannot raise the limit of open files to its hard value (ulimit -n)"),
        }
    }
    limit.current.and_then(|descriptors| usize::try_from(descriptors).ok()).unwrap_or(usize::MAX)
}

/// Divides `limit` descriptors: `RESERVED` for the server itself, at most a quarter of the rest for webhook requests, the
/// same number for test pings and reusable connections to endpoints and gateways, and the others for clients.
pub fn divide(limit: usize, asked: Option<u32>) -> Result<Shares, CommandError> {
    if limit < MIN_LIMIT {
        return Err(format!(
            "this process may open only {limit} files and sockets, and the server needs {MIN_LIMIT}; raise `ulimit -n`"
        )
        .into());
    }
    let rest = limit - RESERVED;
    let deliveries = (rest / 4).min(MAX_DELIVERIES);
    let pings = (deliveries / 4).min(MAX_PINGS);
    let gateways = deliveries / 8;
    let reusable = deliveries - pings - gateways;
    let available = rest - 2 * deliveries;
    let asked = asked.map(|asked| usize::try_from(asked).unwrap_or(usize::MAX));
    let connections = asked.unwrap_or(DEFAULT_CONNECTIONS).min(available);
    match asked {
        Some(asked) if asked > available => tracing::warn!(
            asked,
            connections,
            limit,
            "--max-connections is lowered to fit the limit of open files; raise `ulimit -n`"
        ),
        _ => tracing::debug!(connections, deliveries, pings, reusable, limit, "file descriptors divided"),
    }
    Ok(Shares { connections, deliveries, pings, reusable })
}

impl Shares {
    /// If there is a sandbox, moves its share of the requests to endpoints out of this one.
    pub fn divided(self, has_sandbox: bool) -> (Self, Option<Self>) {
        if !has_sandbox {
            return (self, None);
        }
        let part = |all: usize| (all / SANDBOX_PART).max(1);
        let rest = |all: usize| (all - part(all)).max(1);
        let divided = |by: &dyn Fn(usize) -> usize| Self {
            connections: self.connections,
            deliveries: by(self.deliveries),
            pings: by(self.pings),
            reusable: by(self.reusable),
        };
        (divided(&rest), Some(divided(&part)))
    }
}

/// How many of `connections` one address may have. `Some(0)` means no limit.
pub fn per_address(connections: usize, asked: Option<u32>) -> usize {
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
        fn the_shares_fit_the_limit_and_none_is_empty(
            limit in prop_oneof![MIN_LIMIT..5_000, 5_000..2_000_000_usize],
            asked in prop::option::of(1_u32..),
        ) {
            let Shares { connections, deliveries, pings, reusable } = divide(limit, asked).unwrap();
            prop_assert!(RESERVED + connections + deliveries + pings + reusable <= limit);
            prop_assert!([connections, deliveries, pings, reusable].into_iter().all(|share| share >= 1));
            prop_assert!(asked.is_none_or(|asked| connections <= usize::try_from(asked).unwrap()));
            let per_address = per_address(connections, None);
            prop_assert!(per_address >= 1 && per_address <= connections.div_ceil(4));
        }
    }

    #[test]
    fn with_enough_descriptors_the_shares_are_the_defaults() {
        let shares = |connections, deliveries, pings, reusable| Shares { connections, deliveries, pings, reusable };
        assert_eq!(divide(usize::MAX, None).unwrap(), shares(4096, 1024, 128, 768));
        assert_eq!(divide(1024, None).unwrap(), shares(488, 244, 61, 153));
        assert_eq!(divide(MIN_LIMIT, None).unwrap(), shares(8, 4, 1, 3));
        assert_eq!(divide(20_000, Some(10_000)).unwrap().connections, 10_000);
        assert_eq!(
            divide(63, None).unwrap_err().to_string(),
            "this process may open only 63 files and sockets, and the server needs 64; raise `ulimit -n`"
        );
        let of_deliveries = |shares: Shares| (shares.deliveries, shares.pings, shares.reusable);
        let (lasting, sandbox) = divide(usize::MAX, None).unwrap().divided(true);
        assert_eq!((of_deliveries(lasting), sandbox.map(of_deliveries)), ((960, 120, 720), Some((64, 8, 48))));
        let (lasting, sandbox) = divide(MIN_LIMIT, None).unwrap().divided(true);
        assert_eq!((of_deliveries(lasting), sandbox.map(of_deliveries)), ((3, 1, 2), Some((1, 1, 1))));
        assert_eq!(divide(1024, None).unwrap().divided(false), (divide(1024, None).unwrap(), None));
        assert_eq!(
            (per_address(4096, None), per_address(4096, Some(0)), per_address(8, Some(5))),
            (256, usize::MAX, 5)
        );
    }
}
