//! Which scopes may have webhook endpoints, in memory. Each payment asks, and most scopes have none.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicU64, Ordering},
};

use journaled_tree::{Read, TreeError};

use super::keys;
use crate::domain::Scope;

/// Each bit stands for some of all scopes.
const BITS: usize = 64 * 1024;
/// With more scopes than this at a start, any scope may have endpoints. So a start takes a bounded number of steps.
const MAX_SCOPES: usize = 16 * 1024;

/// A scope whose bit is clear has no endpoint, and had none since the start. Bits are set before an endpoint is added, even if
/// that fails then, and are never cleared.
pub(super) struct Subscribed(Box<[AtomicU64]>);

impl Subscribed {
    fn with(word: u64) -> Self {
        Self((0..BITS / 64).map(|_| AtomicU64::new(word)).collect())
    }

    /// The scopes that have endpoints at a start. Takes one step for each of them.
    pub(super) fn load(records: &impl Read) -> Result<Self, TreeError> {
        let found = Self::with(0);
        let mut after = keys::ENDPOINTS_OF_SCOPES.to_vec();
        for _ in 0..MAX_SCOPES {
            let Some(entry) = records.prefix_after(keys::ENDPOINTS_OF_SCOPES, &after).next() else { return Ok(found) };
            let Some(scope) = keys::scope_with_endpoint(&entry?.0) else { break };
            found.add(&scope);
            // Skips the other endpoints of this scope.
            after = keys::endpoints_of(&scope);
            after.push(0xff);
        }
        Ok(Self::with(u64::MAX))
    }

    pub(super) fn add(&self, scope: &Scope) {
        let (word, bit) = self.at(scope);
        word.fetch_or(bit, Ordering::SeqCst);
    }

    pub(super) fn may_have(&self, scope: &Scope) -> bool {
        let (word, bit) = self.at(scope);
        word.load(Ordering::SeqCst) & bit != 0
    }

    fn at(&self, scope: &Scope) -> (&AtomicU64, u64) {
        let mut hasher = DefaultHasher::new();
        scope.hash(&mut hasher);
        let number = usize::try_from(hasher.finish() % BITS as u64).unwrap_or_default();
        (&self.0[number / 64], 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests {
    use journaled_tree::Options;
    use payments_core::Environment;

    use super::{super::layout::Layout, *};

    fn scope(number: usize) -> Scope {
        Scope { developer_id: format!("dev_{number}").parse().unwrap(), environment: Environment::Live }
    }

    #[test]
    fn a_start_finds_every_scope_that_has_endpoints() {
        let directory = tempfile::tempdir().unwrap();
        let (database, closing) = Options::new(directory.path(), Layout).open().unwrap();
        let add = |key: Vec<u8>| {
            let added = database.commit_blocking(move |view| {
                view.put(key, []);
                Ok::<_, TreeError>(())
            });
            added.unwrap();
        };
        for number in 0..40 {
            for endpoint in ["wh_1", "wh_2"] {
                add(keys::endpoint_of(&scope(number), &endpoint.parse().unwrap()));
            }
        }
        let found = Subscribed::load(&database).unwrap();
        assert!((0..40).all(|number| found.may_have(&scope(number))));
        assert!((40..1000).filter(|number| found.may_have(&scope(*number))).count() < 20);
        found.add(&scope(99));
        assert!(found.may_have(&scope(99)));

        // Where a key cannot be read, nothing is known.
        add([keys::ENDPOINTS_OF_SCOPES, b"\xff"].concat());
        let unknown = Subscribed::load(&database).unwrap();
        assert!((0..1000).all(|number| unknown.may_have(&scope(number))));
        drop(database);
        closing.wait();
    }
}
