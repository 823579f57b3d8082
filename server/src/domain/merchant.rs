//! Merchants: their scopes, workspaces and API keys.

use std::fmt;

use payments_core::{AppId, DeveloperId, Environment, KeyId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Permission, is_first};

/// A developer and an environment. Requests read and write records of their own scope only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) developer_id: DeveloperId,
    pub(crate) environment: Environment,
}

/// A merchant: one workspace, one developer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Workspace {
    /// Number of changes so far, for optimistic locking.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) id: WorkspaceId,
    pub(crate) developer_id: DeveloperId,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) website: Option<String>,
    pub(crate) status: String,
    pub(crate) created_at: Timestamp,
}

/// The SHA-256 hash of an API key. The store never holds the key itself (API specification, "Authentication", rule 5).
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash(pub(crate) [u8; 32]);

impl KeyHash {
    pub(crate) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// The record of an API key, without the key itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ApiKey {
    /// Number of changes so far, for optimistic locking.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) id: KeyId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) scope: Scope,
    pub(crate) last4: String,
    /// The developer app that the key is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_id: Option<AppId>,
    /// What the operator calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// What it may do; `None` for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permissions: Option<Vec<Permission>>,
    pub(crate) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used_at: Option<Timestamp>,
    pub(crate) revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// Whether the key may do what needs this permission.
    pub(crate) fn may(&self, needed: Permission) -> bool {
        self.permissions.as_ref().is_none_or(|granted| granted.iter().any(|permission| permission.grants(needed)))
    }
}

/// A scope's balance and volume in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// The balance of the merchant's ledger account, in minor units.
    pub(crate) balance_minor: i128,
    /// The gross amount of all payments ever paid, in minor units.
    pub(crate) volume_minor: i128,
    /// Number of payments ever paid.
    pub(crate) payments: u64,
}
