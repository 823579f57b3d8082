//! API keys: authentication of callers, and new keys.

use std::sync::Arc;

use payments_core::{AppId, DeveloperId, Environment, KeyId, WorkspaceId};

use super::{Refused, Service};
use crate::domain::{ApiKey, KeyHash, Scope, Workspace};
use crate::store::Write;

/// The public test key of the sandbox workspace.
pub(crate) const SANDBOX_KEY: &str = "sk_test_demo";
/// Longer than any valid key. The server does not hash a longer text.
const MAX_KEY_BYTES: usize = 256;
const KEY_RANDOM_BYTES: usize = 24;

/// An authenticated caller: the record of its API key.
pub(crate) type Caller = Arc<ApiKey>;

impl Service {
    /// Authenticates a key. Returns `None` for an unknown or revoked key, and for the sandbox's if the sandbox is off.
    pub(crate) async fn caller(&self, key: &str) -> Result<Option<Caller>, Refused> {
        if key.len() > MAX_KEY_BYTES || (key == SANDBOX_KEY && !self.settings.has_sandbox) {
            return Ok(None);
        }
        let Some(environment) = Environment::of_key(key) else { return Ok(None) };
        let key = self.store.api_key(&KeyHash::of(key)).await?;
        Ok(key.filter(|key| key.revoked_at.is_none() && key.scope.environment == environment))
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

    /// Generates a key: the environment's prefix and random hex.
    pub(super) fn new_key_text(&self, environment: Environment) -> String {
        let random: [u8; KEY_RANDOM_BYTES] = self.ambient.random();
        format!("{}{}", environment.key_prefix(), hex::encode(random))
    }

    /// The record of a new key, with the key's hash and last four characters.
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
