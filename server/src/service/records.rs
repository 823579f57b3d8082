//! Changes of payments and deliveries, which requests and the operator's commands both make.

use std::sync::Arc;

use payments_core::PaymentId;

use super::{Result, Service, acting::audit_of, error::NO_PAYMENT};
use crate::{
    ambient::Ambient,
    delivery::FanOutSignal,
    domain::Session,
    store::{Change, CommitError, Store},
    trace,
};

/// A store, and what a change of its records needs.
#[derive(Clone, Copy)]
pub(super) struct Records<'s> {
    pub(super) store: &'s Store,
    pub(super) ambient: &'s dyn Ambient,
    /// Wakes the fan-out worker of this process, if it has one.
    pub(super) fan_out: Option<&'s FanOutSignal>,
}

impl Records<'_> {
    /// Commits a change with its entry of the audit log, then wakes the fan-out worker if an event became pending.
    pub(super) async fn commit(self, change: Change) -> Result<(), CommitError> {
        let audit = audit_of(&change, self.ambient);
        let change = Change { audit, ..change };
        if trace::commit(self.store, change).await?.has_pending_event
            && let Some(fan_out) = self.fan_out
        {
            fan_out.notify();
        }
        Ok(())
    }

    /// Reads a session of any scope.
    pub(super) async fn session(self, id: &str) -> Result<Session> {
        let id: PaymentId = id.parse().map_err(|_| NO_PAYMENT)?;
        self.store.session(&id).await?.ok_or(NO_PAYMENT)
    }
}

/// The lasting store with the workspaces, API keys and apps of all merchants. An operator can change it without a running
/// server.
#[derive(Clone)]
pub struct Directory {
    pub store: Arc<Store>,
    pub ambient: Arc<dyn Ambient>,
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

impl Service {
    pub(super) fn records(&self) -> Records<'_> {
        Records { store: &self.store, ambient: &*self.ambient, fan_out: Some(&self.fan_out) }
    }

    pub(super) async fn commit(&self, change: Change) -> Result<(), CommitError> {
        self.records().commit(change).await
    }

    /// Reads a session of any scope, for routes without an API key.
    pub(super) async fn session(&self, id: &str) -> Result<Session> {
        self.records().session(id).await
    }

    /// Commits a change of a session that leaves the payment's status and has no event.
    pub(super) async fn commit_without_event(&self, next: Session) -> Result<()> {
        self.records().commit_without_event(next).await
    }
}
