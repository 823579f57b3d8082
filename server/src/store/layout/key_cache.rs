//! API keys that were parsed before. Each request has one, and most requests have the same few.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{keys, reads::parse};
use crate::{
    domain::{ApiKey, KeyHash},
    store::StoreError,
};

/// How many keys are kept.
const MAX_KEYS: usize = 4096;

/// The keys.
#[derive(Default)]
pub(super) struct KeyCache(Mutex<HashMap<KeyHash, Parsed>>);

/// A key, and the record that it was parsed from.
struct Parsed {
    /// The last commit before the record was read.
    commit: Option<u64>,
    record: Vec<u8>,
    key: Arc<ApiKey>,
}

impl KeyCache {
    /// The key, if nothing was committed since its record was read.
    pub(super) fn unchanged_since(&self, hash: &KeyHash, commit: Option<u64>) -> Option<Arc<ApiKey>> {
        let (parsed, commit) = (self.lock(), Some(commit?));
        parsed.get(hash).filter(|parsed| parsed.commit == commit).map(|parsed| Arc::clone(&parsed.key))
    }

    /// The key of a record that was just read, after this commit. Parses the record unless it is the same as before.
    pub(super) fn parse(
        &self,
        hash: &KeyHash,
        record: Vec<u8>,
        commit: Option<u64>,
    ) -> Result<Arc<ApiKey>, StoreError> {
        let mut parsed = self.lock();
        if let Some(parsed) = parsed.get_mut(hash).filter(|parsed| parsed.record == record) {
            parsed.commit = commit;
            return Ok(Arc::clone(&parsed.key));
        }
        let key: Arc<ApiKey> = Arc::new(parse(&keys::api_key(hash), &record)?);
        if parsed.len() >= MAX_KEYS {
            parsed.clear();
        }
        parsed.insert(hash.clone(), Parsed { commit, record, key: Arc::clone(&key) });
        Ok(key)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, Parsed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn a_key_is_parsed_again_when_its_record_has_changed_and_never_more_keys_are_kept_than_there_is_room_for() {
        let (cache, hash) = (KeyCache::default(), KeyHash::of("sk_test_1"));
        assert!(cache.unchanged_since(&hash, Some(1)).is_none());
        let first = cache.parse(&hash, record("1111"), Some(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.unchanged_since(&hash, Some(1)).unwrap()));
        assert!(cache.unchanged_since(&hash, Some(2)).is_none());
        assert!(Arc::ptr_eq(&first, &cache.parse(&hash, record("1111"), Some(2)).unwrap()));
        assert_eq!(cache.parse(&hash, record("2222"), Some(3)).unwrap().last4, "2222");
        assert_eq!(cache.unchanged_since(&hash, Some(3)).unwrap().last4, "2222");
        assert!(cache.parse(&hash, b"{".to_vec(), Some(4)).is_err());
        cache.parse(&hash, record("2222"), None).unwrap();
        assert!(cache.unchanged_since(&hash, None).is_none(), "others may have committed");
        for nth in 0..=MAX_KEYS {
            cache.parse(&KeyHash::of(&nth.to_string()), record("3333"), None).unwrap();
            assert!(cache.0.lock().unwrap().len() <= MAX_KEYS);
        }
    }
}
