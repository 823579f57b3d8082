//! When each API key was last used: noted in memory, stored once a minute. The memory also tells which keys worked lately.

use std::{collections::HashMap, future::ready, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use payments_core::Timestamp;
use tokio::time::sleep;

use super::{Result, Service};
use crate::{
    domain::{ApiKey, KeyHash},
    store::{Change, Write},
};

/// How precise a last use is, and how often uses are stored.
const EVERY: Duration = Duration::from_secs(60);
/// How many keys are noted between two writes. A key beyond them is noted in the next minute.
const MAX_KEYS: usize = 10_000;
/// How long a key counts as used lately.
const LATELY_MILLIS: i64 = 60 * 60 * 1000;
/// How many keys are stored at a time, each in a change of its own.
const KEYS_AT_A_TIME: usize = 64;

/// The keys used since the last write, and the keys used lately.
#[derive(Default)]
pub struct KeyUses(Mutex<Uses>);

#[derive(Default)]
struct Uses {
    to_store: HashMap<KeyHash, Timestamp>,
    stored: HashMap<KeyHash, Timestamp>,
}

impl KeyUses {
    /// Notes a use, unless the key's record already has one in this minute.
    pub(super) fn note(&self, hash: KeyHash, key: &ApiKey, now: Timestamp) {
        let minute = minute_of(now);
        if key.last_used_at.is_some_and(|known| known >= minute) {
            return;
        }
        let uses = &mut self.0.lock().to_store;
        if uses.len() < MAX_KEYS || uses.contains_key(&hash) {
            uses.insert(hash, minute);
        }
    }

    /// Whether a key was used lately.
    pub(super) fn has(&self, hash: &KeyHash) -> bool {
        let uses = self.0.lock();
        uses.to_store.contains_key(hash) || uses.stored.contains_key(hash)
    }

    /// The uses to store, sorted by hash so that a simulation always sees the same order.
    fn take(&self, now: Timestamp) -> Vec<(KeyHash, Timestamp)> {
        let mut uses = self.0.lock();
        let taken = std::mem::take(&mut uses.to_store);
        let is_late = |at: &Timestamp| now.as_millis() - at.as_millis() < LATELY_MILLIS;
        uses.stored.retain(|_, at| is_late(at));
        for (hash, at) in &taken {
            if uses.stored.len() < MAX_KEYS || uses.stored.contains_key(hash) {
                uses.stored.insert(hash.clone(), *at);
            }
        }
        drop(uses);
        let mut taken: Vec<_> = taken.into_iter().collect();
        taken.sort_unstable_by_key(|(hash, _)| hash.digest);
        taken
    }
}

fn minute_of(at: Timestamp) -> Timestamp {
    let millis = at.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(60_000)).unwrap_or(at)
}

impl Service {
    /// Stores the last use of each key once a minute. Never returns.
    pub async fn store_key_uses(self: Arc<Self>) {
        loop {
            sleep(EVERY).await;
            let uses = stream::iter(self.key_uses.take(self.ambient.now()));
            let stored = uses.map(|(hash, at)| self.store_use(hash, at)).buffer_unordered(KEYS_AT_A_TIME);
            let errors: Vec<_> = stored.filter_map(|stored| ready(stored.err())).collect().await;
            if let Some(error) = errors.first() {
                // These uses are lost. The next use of each key is noted again.
                tracing::warn!(%error, keys = errors.len(), "the last use of some API keys was not stored");
            }
        }
    }

    async fn store_use(&self, hash: KeyHash, at: Timestamp) -> Result<()> {
        let Some(key) = self.directory.store.api_key(&hash).await? else { return Ok(()) };
        if key.last_used_at.is_some_and(|known| known >= at) {
            return Ok(());
        }
        let used = ApiKey { version: key.version + 1, last_used_at: Some(at), ..ApiKey::clone(&key) };
        Ok(self.directory.commit(Change::of(Write::ApiKey(hash, Box::new(used)))).await?)
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{Environment, Slot};

    use super::*;
    use crate::service::{in_memory::service, keys::KeyLimits};

    #[test]
    fn a_keys_use_is_noted_once_a_minute() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut key: ApiKey = serde_json::from_value(serde_json::json!({"id": "key_1", "workspace_id": "ws_1",
            "scope": {"developer_id": "dev_1", "environment": "test"}, "last4": "cafe",
            "created_at": "2026-03-01T03:30:00.000Z", "revoked_at": null}))
        .unwrap();
        let (uses, hash) = (KeyUses::default(), KeyHash::of("sk_test_1"));
        assert!(!uses.has(&hash));
        uses.note(hash.clone(), &key, at("2026-03-01T03:30:59.999Z"));
        assert!(uses.has(&hash));
        let minute = at("2026-03-01T03:30:00.000Z");
        assert_eq!(uses.take(minute), [(hash.clone(), minute)]);
        key.last_used_at = Some(minute);
        uses.note(hash.clone(), &key, at("2026-03-01T03:30:59.999Z"));
        assert_eq!(uses.take(minute), []);
        uses.note(hash.clone(), &key, at("2026-03-01T03:31:00.000Z"));
        assert_eq!(uses.take(minute).len(), 1);
        for nth in 0..=MAX_KEYS {
            uses.note(KeyHash::of(&nth.to_string()), &key, at("2026-03-01T03:31:00.000Z"));
        }
        assert_eq!(uses.take(minute).len(), MAX_KEYS);
        assert!(uses.has(&hash) && uses.0.lock().stored.len() == MAX_KEYS);
        // An hour later none of them was used lately.
        uses.take(at("2026-03-01T04:31:00.000Z"));
        assert!(!uses.has(&hash) && uses.0.lock().stored.is_empty());
    }

    #[tokio::test]
    async fn the_last_use_of_each_key_is_stored_and_an_older_one_is_not() {
        let service = service();
        let workspace = service.directory.new_workspace(Slot::FIRST, "Rahim", "rahim");
        let (key, other) = ("sk_test_1", "sk_test_2");
        for key in [key, other] {
            let (hash, record) =
                service.directory.new_api_key(&workspace, Environment::Test, KeyLimits::default(), key);
            service.commit(Change::of(Write::ApiKey(hash, record))).await.unwrap();
        }
        let last_use = async |key: &str| service.store.api_key(&KeyHash::of(key)).await.unwrap().unwrap().last_used_at;
        service.caller(key).await.unwrap().unwrap();
        for (hash, at) in service.key_uses.take(service.ambient.now()) {
            service.store_use(hash, at).await.unwrap();
        }
        let used = last_use(key).await.unwrap();
        assert!(used <= service.ambient.now() && last_use(other).await.is_none());
        service.store_use(KeyHash::of(key), Timestamp::from_millis(0).unwrap()).await.unwrap();
        assert_eq!(last_use(key).await, Some(used));
    }
}
