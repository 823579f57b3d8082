//! API keys that were read a moment ago. Each request has one, and most requests have the same few.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::domain::{ApiKey, KeyHash};

/// How long a key that was revoked on another server still works here.
const FRESH: Duration = Duration::from_millis(900);
/// How many keys are kept.
const MAX_KEYS: usize = 4096;

/// Keys with the times at which their reads began.
#[derive(Default)]
pub(super) struct KeyCache(Mutex<HashMap<KeyHash, (Instant, Arc<ApiKey>)>>);

impl KeyCache {
    /// A key that was read less than a second ago. A key that is not here may exist.
    pub(super) fn get(&self, hash: &KeyHash, now: Instant) -> Option<Arc<ApiKey>> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(hash).filter(|(read, _)| is_fresh(*read, now)).map(|(_, key)| Arc::clone(key))
    }

    /// Keeps a key whose read began at a time.
    pub(super) fn put(&self, hash: &KeyHash, key: &Arc<ApiKey>, read: Instant) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= MAX_KEYS {
            keys.retain(|_, (read_before, _)| is_fresh(*read_before, read));
        }
        if keys.len() < MAX_KEYS {
            keys.insert(hash.clone(), (read, Arc::clone(key)));
        }
    }

    /// Forgets a key that this server changes.
    pub(super) fn remove(&self, hash: &KeyHash) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }
}

fn is_fresh(read: Instant, now: Instant) -> bool {
    now.saturating_duration_since(read) < FRESH
}

#[cfg(test)]
mod tests {
    use payments_core::{Environment, KeyId, RANDOM_BYTES, Slot, Timestamp, WorkspaceId};

    use super::*;
    use crate::domain::Scope;

    #[test]
    fn a_key_is_kept_for_less_than_a_second_and_never_more_keys_than_there_is_room_for() {
        let at = Timestamp::from_millis(0).unwrap();
        let key = Arc::new(ApiKey {
            version: 0,
            id: KeyId::new(Slot::FIRST, at, [1; RANDOM_BYTES]),
            workspace_id: WorkspaceId::new(Slot::FIRST, at, [1; RANDOM_BYTES]),
            scope: Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test },
            last4: "0000".into(),
            app_id: None,
            only_its_app: false,
            name: None,
            permissions: None,
            expires_at: None,
            last_used_at: None,
            created_at: at,
            revoked_at: None,
            replaced_by: None,
        });
        let (cache, begun) = (KeyCache::default(), Instant::now());
        let hash = |nth: usize| KeyHash::of(&nth.to_string());
        for nth in 0..=MAX_KEYS {
            cache.put(&hash(nth), &key, begun);
        }
        assert!(cache.get(&hash(1), begun + Duration::from_millis(899)).is_some());
        assert!(cache.get(&hash(1), begun + FRESH).is_none());
        assert!(cache.get(&hash(MAX_KEYS), begun).is_none(), "there is no room");
        assert!(cache.get(&hash(1), begun + Duration::from_secs(1)).is_none());
        cache.put(&hash(MAX_KEYS), &key, begun + Duration::from_secs(1));
        assert!(cache.get(&hash(MAX_KEYS), begun + Duration::from_secs(1)).is_some(), "old ones made room");
        cache.remove(&hash(MAX_KEYS));
        assert!(cache.get(&hash(MAX_KEYS), begun + Duration::from_secs(1)).is_none());
    }
}
