//! The workspaces, API keys and apps of all merchants, and the operator's commands.

use std::sync::Arc;

use super::records::Records;
use crate::{
    ambient::Ambient,
    store::{Change, CommitError, Store},
};

/// The lasting store, for what an operator does without a running server too.
#[derive(Clone)]
pub(crate) struct Directory {
    pub(crate) store: Arc<Store>,
    pub(crate) ambient: Arc<dyn Ambient>,
}

impl Directory {
    /// The payments and deliveries of the same store. A running server's fan-out worker finds new events by itself.
    pub(super) fn records(&self) -> Records<'_> {
        Records { store: &self.store, ambient: &*self.ambient, fan_out: None }
    }

    pub(super) async fn commit(&self, change: Change) -> Result<(), CommitError> {
        self.records().commit(change).await
    }
}
