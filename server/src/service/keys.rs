//! API keys: who is calling, and the sandbox that everyone may use.

use payments_core::{DeveloperId, Environment, KeyId, WorkspaceId};

use super::{Refused, Service};
use crate::store::{ApiKey, Change, KeyHash, Scope, Workspace, Write};

/// The public key of the sandbox workspace. It exists from the first start and can be used for nothing live.
pub(crate) const SANDBOX_KEY: &str = "sk_test_demo";
/// Longer than any key of ours; what is longer is not hashed.
const MAX_KEY_BYTES: usize = 256;
const KEY_RANDOM_BYTES: usize = 24;

/// Who is calling: the owner of the key, in the key's environment.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) scope: Scope,
    pub(crate) key_id: KeyId,
    pub(crate) workspace_id: WorkspaceId,
}

impl Service {
    /// The owner of a key, or `None` if there is no such key or it was revoked.
    pub(crate) async fn caller(&self, key: &str) -> Result<Option<Caller>, Refused> {
        let Some(environment) = Environment::of_key(key).filter(|_| key.len() <= MAX_KEY_BYTES) else {
            return Ok(None);
        };
        let key = self.store.api_key(&KeyHash::of(key)).await?;
        let valid = key.filter(|key| key.revoked_at.is_none() && key.scope.environment == environment);
        Ok(valid.map(|key| Caller { scope: key.scope, key_id: key.id, workspace_id: key.workspace_id }))
    }

    /// Makes the sandbox workspace and its key, unless they are there.
    pub(crate) async fn prepare_sandbox(&self) -> Result<(), Refused> {
        if self.store.api_key(&KeyHash::of(SANDBOX_KEY)).await?.is_some() {
            return Ok(());
        }
        let workspace = self.new_workspace("Sandbox", "sandbox");
        let key = self.new_api_key(&workspace, Environment::Test, SANDBOX_KEY);
        let writes = vec![Write::Workspace(workspace), key];
        Ok(self.store.commit(Change { idempotency: None, writes }).await?)
    }

    pub(super) fn new_workspace(&self, name: &str, slug: &str) -> Workspace {
        let now = self.ambient.now();
        Workspace {
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
    pub(super) fn new_api_key(&self, workspace: &Workspace, environment: Environment, key: &str) -> Write {
        let now = self.ambient.now();
        let record = ApiKey {
            id: KeyId::new(now, self.ambient.id_bytes()),
            workspace_id: workspace.id.clone(),
            scope: Scope { developer_id: workspace.developer_id.clone(), environment },
            last4: key[key.len().saturating_sub(4)..].into(),
            created_at: now,
            revoked_at: None,
        };
        Write::ApiKey(KeyHash::of(key), record)
    }
}
