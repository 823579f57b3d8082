//! API keys: authentication of callers, and new keys.

use std::sync::Arc;

use payments_core::{AppId, DeveloperId, Environment, KeyId, Slot, Timestamp, UnknownFields, WorkspaceId};

use super::{
    AdminReply, Directory, Result, Service, ServiceError, account::NO_APP, operator_text::invalid, retry_on_conflict,
};
use crate::{
    domain::{ApiKey, KeyHash, Limits, Permission, Workspace},
    store::{Change, Write},
};

/// The public test key of the sandbox workspace.
pub const SANDBOX_KEY: &str = "sk_test_demo";
/// Longer than any valid key. The server does not hash a longer text.
const MAX_KEY_BYTES: usize = 256;
const KEY_RANDOM_BYTES: usize = 24;
/// How many keys a merchant's list has at most.
const MAX_LISTED: usize = 100;

/// What a new key is for and what it may do.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyLimits {
    pub(super) name: Option<String>,
    pub(super) app_id: Option<AppId>,
    pub(super) only_its_app: bool,
    pub(super) permissions: Option<Vec<Permission>>,
    pub(super) expires_at: Option<Timestamp>,
}

/// An authenticated caller: the record of its API key.
pub type Caller = Arc<ApiKey>;

impl Service {
    /// Authenticates a key. Returns `None` for an unknown or revoked key, and for the sandbox's key if the sandbox is off.
    /// Refuses an expired key.
    pub async fn caller(&self, key: &str) -> Result<Option<Caller>> {
        if key.len() > MAX_KEY_BYTES || (key == SANDBOX_KEY && !self.settings.has_sandbox) {
            return Ok(None);
        }
        let Some(environment) = Environment::of_key(key) else { return Ok(None) };
        let hash = KeyHash::of(key);
        if self.unknown_keys.has(&hash) {
            return Ok(None);
        }
        let key = self.directory.store.api_key(&hash).await?;
        let Some(key) = key.filter(|key| key.revoked_at.is_none() && key.scope.environment == environment) else {
            self.unknown_keys.note(hash);
            return Ok(None);
        };
        let now = self.ambient.now();
        if key.expires_at.is_some_and(|at| at <= now) {
            return Err(ServiceError::KeyExpired);
        }
        self.key_uses.note(hash, &key, now);
        Ok(Some(key))
    }

    /// Whether this server remembers that the key worked lately. Does not ask the store.
    pub fn has_worked_lately(&self, key: &str) -> bool {
        key.len() <= MAX_KEY_BYTES && self.key_uses.has(&KeyHash::of(key))
    }

    /// The newest API keys of the caller's workspace and environment, newest first.
    pub async fn own_keys(&self, caller: &Caller) -> Result<Vec<payments_core::ApiKey>> {
        let keys = self.directory.store.api_keys_of(&caller.workspace_id).await?.into_iter().rev().map(|(_, key)| key);
        let own = keys.filter(|key| key.scope.environment == caller.scope.environment).take(MAX_LISTED);
        let listed = own.map(|key| payments_core::ApiKey {
            is_current: key.id == caller.id,
            id: key.id,
            name: key.name,
            last4: key.last4,
            scopes: key.permissions.map(|granted| granted.into_iter().map(|it| it.as_str().to_owned()).collect()),
            app_id: key.app_id,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            unknown: UnknownFields::new(),
        });
        Ok(listed.collect())
    }
}

impl Directory {
    pub(super) fn new_workspace(&self, slot: Slot, name: &str, slug: &str) -> Workspace {
        let now = self.ambient.now();
        Workspace {
            version: 0,
            id: WorkspaceId::new(slot, now, self.ambient.id_bytes()),
            developer_id: DeveloperId::new(slot, now, self.ambient.id_bytes()),
            name: name.into(),
            slug: slug.into(),
            website: None,
            status: "active".into(),
            created_at: now,
            resets: 0,
            ways: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Creates an API key for a workspace, if it may have another one.
    pub(super) async fn create_key(
        &self,
        workspace: &str,
        environment: Environment,
        app: Option<String>,
        limits: KeyLimits,
    ) -> Result<AdminReply> {
        if limits.expires_at.is_some_and(|at| at <= self.ambient.now()) {
            return Err(invalid("the key would have expired already; give a later time"));
        }
        retry_on_conflict(|| async {
            let workspace = self.named_workspace(workspace).await?;
            let app_id = match &app {
                Some(id) => Some(self.own_app(&workspace.developer_id, &id.parse().map_err(|_| NO_APP)?).await?.id),
                None => None,
            };
            let key = self.new_key_text(workspace.developer_id.slot(), environment);
            let limits = KeyLimits { app_id, ..limits.clone() };
            let (hash, new) = self.new_api_key(&workspace, environment, limits, &key);
            let writes = self.room_for_key(&workspace).await?.into_iter().chain([Write::ApiKey(hash, new)]).collect();
            self.commit(Change { writes, ..Change::default() }).await?;
            Ok(AdminReply::Key { key })
        })
        .await
    }

    /// Generates a key: the environment's prefix, the developer's slot and random hex.
    pub(super) fn new_key_text(&self, slot: Slot, environment: Environment) -> String {
        let random: [u8; KEY_RANDOM_BYTES] = self.ambient.random();
        format!("{}{slot}{}", environment.key_prefix(), hex::encode(random))
    }

    /// The record of a new key, with the key's hash and last four characters.
    pub(super) fn new_api_key(
        &self,
        workspace: &Workspace,
        environment: Environment,
        limits: KeyLimits,
        key: &str,
    ) -> (KeyHash, Box<ApiKey>) {
        let KeyLimits { name, app_id, only_its_app, permissions, expires_at } = limits;
        let now = self.ambient.now();
        let record = ApiKey {
            version: 0,
            id: KeyId::new(workspace.developer_id.slot(), now, self.ambient.id_bytes()),
            workspace_id: workspace.id.clone(),
            scope: workspace.scope(environment),
            last4: key[key.len().saturating_sub(4)..].into(),
            app_id,
            only_its_app,
            name,
            permissions,
            created_at: now,
            expires_at,
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
        };
        (KeyHash::of(key), Box::new(record))
    }
}
