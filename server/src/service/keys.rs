//! API keys: who is calling.

use payments_core::{AppId, DeveloperId, Environment, KeyId, WorkspaceId};

use super::{Refused, SANDBOX_KEY, Service};
use crate::domain::{ApiKey, KeyHash, Scope, Workspace};
use crate::store::Write;

/// Longer than any key of ours; what is longer is not hashed.
const MAX_KEY_BYTES: usize = 256;
const KEY_RANDOM_BYTES: usize = 24;

/// Who is calling: the owner of the key, in the key's environment.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) scope: Scope,
    pub(crate) key_id: KeyId,
    pub(crate) workspace_id: WorkspaceId,
    /// The developer app that the key is bound to.
    pub(crate) app_id: Option<AppId>,
}

impl Service {
    /// The owner of a key, or `None` if there is no such key, it was revoked, or it is the sandbox's and that is off.
    pub(crate) async fn caller(&self, key: &str) -> Result<Option<Caller>, Refused> {
        if key == SANDBOX_KEY && !self.settings.has_sandbox {
            return Ok(None);
        }
        let Some(environment) = Environment::of_key(key).filter(|_| key.len() <= MAX_KEY_BYTES) else {
            return Ok(None);
        };
        let key = self.store.api_key(&KeyHash::of(key)).await?;
        let valid = key.filter(|key| key.revoked_at.is_none() && key.scope.environment == environment);
        Ok(valid.map(|key| Caller {
            scope: key.scope,
            key_id: key.id,
            workspace_id: key.workspace_id,
            app_id: key.app_id,
        }))
    }

    pub(super) fn new_workspace(&self, name: &str, slug: &str) -> Workspace {
        let now = self.ambient.now();
        Workspace {
            version: 0,
            id: WorkspaceId::new(now, self.ambient.id_bytes()),
            developer_id: DeveloperId::new(now, self.ambient.id_bytes()),
            name: name.into(),
            slug: slug.into(),
            website: None,
            status: "active".into(),
            created_at: now,
        }
    }

    /// A fresh key for an environment: its prefix and random hex.
    pub(super) fn new_key_text(&self, environment: Environment) -> String {
        let random: [u8; KEY_RANDOM_BYTES] = self.ambient.random();
        format!("{}{}", environment.key_prefix(), hex::encode(random))
    }

    /// The record of a key: its hash, and nothing that it could be made from again.
    pub(super) fn new_api_key(
        &self,
        workspace: &Workspace,
        environment: Environment,
        app_id: Option<AppId>,
        key: &str,
    ) -> Write {
        let now = self.ambient.now();
        let record = ApiKey {
            version: 0,
            id: KeyId::new(now, self.ambient.id_bytes()),
            workspace_id: workspace.id.clone(),
            scope: Scope { developer_id: workspace.developer_id.clone(), environment },
            last4: key[key.len().saturating_sub(4)..].into(),
            app_id,
            created_at: now,
            revoked_at: None,
        };
        Write::ApiKey(KeyHash::of(key), record)
    }
}
