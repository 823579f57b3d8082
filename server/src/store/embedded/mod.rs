//! The embedded store: one directory, one process.
//!
//! The engine below it (`journaled_tree`) makes changes durable and knows bytes only. Here is their layout: `keys` says where
//! each record lies, `write` what a change writes, `store` and `pages` what is read. `migrate` brings an earlier layout up to
//! date, and `check` proves that all records agree.

mod check;
mod claims;
mod codec;
mod deliveries;
mod keys;
mod layout;
mod maintenance;
mod migrate;
mod open;
mod outbox;
mod packed;
mod pages;
mod pending;
mod responses;
mod store;
mod stored;
#[cfg(test)]
mod tests;
mod view;
mod work;
mod write;

use std::sync::Arc;

pub(crate) use journaled_tree::{Closing, LeftOut, Restored, Sources, Until, needs_journal_after};
use journaled_tree::{Database, Read};
use prometheus_client::metrics::gauge::Gauge;
use serde::de::DeserializeOwned;

use self::{codec::Records, view::View};
pub(crate) use self::{
    maintenance::{check_journal, restore},
    open::{OpenError, is_there},
};
use super::{CommitError, Leases, StoreError};

/// A store in a directory.
pub(crate) struct EmbeddedStore {
    database: Database,
    leases: Arc<Leases>,
    /// How many deliveries are pending.
    outbox: Gauge,
}

impl EmbeddedStore {
    /// Makes durable what `decide` writes, all of it or, where it fails, nothing.
    async fn write<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_, '_>) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        self.database.commit(|view| decide(&mut View(view))).await.map_err(|error| match error {
            journaled_tree::CommitError::Refused(error) => error,
            journaled_tree::CommitError::Stopped => StoreError::Stopped.into(),
            error => StoreError::unavailable(error.to_string()).into(),
        })
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
