//! A cache of parsed API keys. Each request has a key, and most have one of the same few.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::{keys, reads::parse};
use crate::{
    StoreError,
    domain::{ApiKey, KeyHash},
};

/// How long a key that was revoked on another server still works here.
const FRESH: Duration = Duration::from_millis(900);
/// How many keys are kept.
const MAX_KEYS: usize = 4096;

#[derive(Default)]
pub(super) struct KeyCache(Mutex<HashMap<KeyHash, Parsed>>);

/// The moment before a record was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The last commit, if no other process commits.
    pub(super) commit: Option<u64>,
    pub(super) at: Instant,
}

impl Moment {
    /// Whether a record that was read at this moment still counts `now`: nothing was committed since, or, if other processes
    /// may commit, it was read just now.
    fn counts_at(self, now: Self) -> bool {
        match (self.commit, now.commit) {
            (Some(read), Some(now)) => read == now,
            _ => now.at.saturating_duration_since(self.at) < FRESH,
        }
    }
}

/// A key, and the record that it was parsed from.
struct Parsed {
    read: Moment,
    record: Vec<u8>,
    key: Arc<ApiKey>,
}

impl KeyCache {
    /// A cached key. A key that is not cached may exist.
    pub(super) fn get(&self, hash: &KeyHash, now: Moment) -> Option<Arc<ApiKey>> {
        let parsed = self.lock();
        parsed.get(hash).filter(|parsed| parsed.read.counts_at(now)).map(|parsed| Arc::clone(&parsed.key))
    }

    /// The key of a record that was just read. Parses the record unless it is the same as before.
    pub(super) fn parse(&self, hash: &KeyHash, record: Vec<u8>, read: Moment) -> Result<Arc<ApiKey>, StoreError> {
        let mut parsed = self.lock();
        if let Some(parsed) = parsed.get_mut(hash).filter(|parsed| parsed.record == record) {
            parsed.read = read;
            return Ok(Arc::clone(&parsed.key));
        }
        let key: Arc<ApiKey> = Arc::new(parse(&keys::api_key(hash), &record)?);
        if parsed.len() >= MAX_KEYS {
            parsed.clear();
        }
        parsed.insert(hash.clone(), Parsed { read, record, key: Arc::clone(&key) });
        Ok(key)
    }

    /// Removes a key that this server changes.
    pub(super) fn remove(&self, hash: &KeyHash) {
        self.lock().remove(hash);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, Parsed>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(last4: &str) -> Vec<u8> {
        let record = serde_json::json!({"id": "key_1", "workspace_id": "ws_1", "last4": last4, "revoked_at": null,
            "scope": {"developer_id": "dev_1", "environment": "test"}, "created_at": "2023-11-14T22:13:20.000Z"});
        record.to_string().into_bytes()
    }

    fn after(commit: u64) -> Moment {
        Moment { commit: Some(commit), at: Instant::now() }
    }

    #[test]
    fn a_key_is_parsed_again_when_its_record_has_changed_and_the_number_of_keys_is_bounded() {
        let (cache, hash) = (KeyCache::default(), KeyHash::of("sk_test_1"));
        assert!(cache.get(&hash, after(1)).is_none());
        let first = cache.parse(&hash, record("1111"), after(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(&hash, after(1)).unwrap()));
        assert!(cache.get(&hash, after(2)).is_none());
        assert!(Arc::ptr_eq(&first, &cache.parse(&hash, record("1111"), after(2)).unwrap()));
        assert_eq!(cache.parse(&hash, record("2222"), after(3)).unwrap().last4, "2222");
        assert_eq!(cache.get(&hash, after(3)).unwrap().last4, "2222");
        cache.remove(&hash);
        assert!(cache.get(&hash, after(3)).is_none());
        assert!(cache.parse(&hash, b"{".to_vec(), after(4)).is_err());
        for nth in 0..=MAX_KEYS {
            cache.parse(&KeyHash::of(&nth.to_string()), record("3333"), after(5)).unwrap();
            assert!(cache.0.lock().len() <= MAX_KEYS);
        }
    }

    #[test]
    fn if_other_processes_commit_a_key_is_cached_for_less_than_a_second() {
        let (cache, hash, at) = (KeyCache::default(), KeyHash::of("sk_test_1"), Instant::now());
        let since = |millis| Moment { commit: None, at: at + Duration::from_millis(millis) };
        cache.parse(&hash, record("1111"), since(0)).unwrap();
        assert!(cache.get(&hash, since(899)).is_some());
        assert!(cache.get(&hash, since(900)).is_none());
    }
}
