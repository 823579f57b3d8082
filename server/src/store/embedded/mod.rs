//! The embedded store: one directory, one process.
//!
//! The engine (`journaled_tree`) makes bytes durable. This folder is the layout: `keys` names each record, `write` and
//! `indexes` turn a change into records, `store` and `pages` read them. `convert` converts earlier formats, and `check`
//! proves that records agree. A migration reads `records`, and `take_in` writes them.

mod check;
mod claims;
mod codec;
mod deliveries;
mod events;
mod indexes;
mod key_cache;
mod keys;
mod layout;
mod lists;
mod maintenance;
mod open;
mod outbox;
mod packed;
mod pages;
mod payment_list;
mod pending;
mod records;
mod responses;
#[cfg(feature = "simulation")]
mod simulated;
mod store;
mod stored;
mod subscribed;
mod take_in;
#[cfg(test)]
mod tests;
mod transactions;
mod view;
mod work;
mod write;

use std::{fmt::Display, sync::Arc};

pub(crate) use journaled_tree::{BackupError, Closing, LeftOut, Restored, Sources, Until};
use journaled_tree::{Database, Read};
use prometheus_client::metrics::gauge::Gauge;
use serde::de::DeserializeOwned;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task,
};

use self::{codec::Records, key_cache::KeyCache, subscribed::Subscribed, view::View};
pub(crate) use self::{
    maintenance::{check_journal, count_backup, restore},
    open::{OpenError, is_there, tree_in},
};
use super::{Leases, StoreError};
use crate::domain::{ApiKey, KeyHash};

/// A store in a directory.
pub(crate) struct EmbeddedStore {
    database: Database,
    leases: Arc<Leases>,
    keys: KeyCache,
    subscribed: Arc<Subscribed>,
    /// How many deliveries are pending.
    outbox: Gauge,
}

impl EmbeddedStore {
    /// Commits everything that `decide` writes, or nothing if it fails.
    async fn write<T: Send + 'static, E: From<StoreError> + Display + Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_, '_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let subscribed = Arc::clone(&self.subscribed);
        let decide = move |view: &mut journaled_tree::View<'_>| decide(&mut View::of(view, Some(&subscribed)));
        self.database.commit(decide).await.map_err(store_error)
    }

    /// The API keys whose ids' entries have a prefix, in the order of those entries.
    fn keys_by_ids(&self, prefix: &[u8]) -> Result<Vec<(KeyHash, ApiKey)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(prefix) {
            let Ok(hash) = entry?.1.try_into().map(KeyHash) else { continue };
            found.extend(self.get(&keys::api_key(&hash))?.map(|record| (hash, record)));
        }
        Ok(found)
    }

    fn each<T: DeserializeOwned>(&self, prefix: &[u8]) -> impl Iterator<Item = Result<T, StoreError>> + use<T> {
        self.database.prefix(prefix).map(|entry| {
            let (key, json) = entry?;
            codec::parse(&key, &json)
        })
    }

    fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.database.read(key)
    }
}

/// Returns the error of the change itself, or else the engine's.
fn store_error<E: From<StoreError> + Display>(error: journaled_tree::CommitError<E>) -> E {
    match error {
        journaled_tree::CommitError::Refused(error) => error,
        journaled_tree::CommitError::Stopped => StoreError::Stopped.into(),
        error => StoreError::unavailable(error.to_string()).into(),
    }
}

/// Runs a rare read of many records, which may wait for the disk. Meanwhile the runtime moves the thread's other tasks elsewhere,
/// if it has several threads. A page is too quick for that: moving the tasks would make it a third dearer.
fn read_many<T>(read: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(read),
        _ => read(),
    }
}
