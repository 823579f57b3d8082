//! Who acts in a request: the audit log names them in the commit of each change that the request makes.

use std::net::IpAddr;

use payments_core::{AuditActor, AuditEntry, AuditId, UnknownFields};

use crate::{
    ambient::Ambient,
    domain::{AuditRecord, owner_of},
    store::{Change, Write},
};

tokio::task_local! {
    static ACTING: Acting;
}

/// Who acts, from where, and by which request.
#[derive(Debug, Clone)]
pub struct Acting {
    pub actor: AuditActor,
    pub address: Option<IpAddr>,
    /// The method and the path of the request's route.
    pub action: String,
    /// The record that the path names.
    pub subject: Option<String>,
}

impl Acting {
    /// Runs a request. Its changes are audited.
    pub async fn scope<F: Future>(self, request: F) -> F::Output {
        ACTING.scope(self, request).await
    }

    /// Who acts in the present request, for a task that goes on with it.
    pub fn present() -> Option<Self> {
        ACTING.try_with(Self::clone).ok()
    }

    /// The person or the platform key that makes the present request. The command line on the server's machine is neither.
    pub fn person() -> Option<String> {
        Self::present().map(|it| it.actor).filter(|it| ["person", "platform_key"].contains(&&*it.kind)).map(|it| it.id)
    }

    /// Goes on with a request in another task.
    pub async fn scope_of<F: Future>(acting: Option<Self>, request: F) -> F::Output {
        match acting {
            Some(acting) => acting.scope(request).await,
            None => request.await,
        }
    }
}

/// An actor of a kind: `api_key`, `platform_key`, `person` or `command`.
pub fn actor(kind: &str, id: impl Into<String>, name: Option<String>) -> AuditActor {
    AuditActor { kind: kind.into(), id: id.into(), name, unknown: UnknownFields::new() }
}

/// The entry of the audit log for a change of the present request.
pub(super) fn audit_of(change: &Change, ambient: &dyn Ambient) -> Option<Box<AuditRecord>> {
    if !change.writes.iter().any(is_audited) {
        return None;
    }
    let Acting { actor, address, action, subject } = Acting::present()?;
    let now = ambient.now();
    let entry = AuditEntry {
        id: AuditId::new(change.home(), now, ambient.id_bytes()),
        action,
        subject,
        actor,
        address: address.map(|address| address.to_string()),
        changes: Vec::new(),
        created_at: now,
        unknown: UnknownFields::new(),
    };
    let developer_id = change.writes.iter().find_map(Write::developer).map(owner_of);
    Some(Box::new(AuditRecord { developer_id, entry }))
}

/// Whether a write is a change that a person would want to know of.
fn is_audited(write: &Write) -> bool {
    !matches!(
        write,
        Write::GatewayToken(..)
            | Write::KeyClaimed(_)
            | Write::KeyReleased(..)
            | Write::FannedOut { .. }
            | Write::DeliveryChanged(_)
            | Write::DeliveryResent(_)
            | Write::LogPart(_)
            | Write::Coverage(_)
            | Write::Migration(_)
            | Write::Notices(_)
    )
}
