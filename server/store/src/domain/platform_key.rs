//! Platform keys: with them, operators and their programs administer a server from elsewhere.

use std::fmt;

use payments_core::{KeyId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{AdminPermission, is_first};

/// The record of a platform key, without the key itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformKey {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub id: KeyId,
    /// The SHA-256 hash of the key, in hex.
    pub hash: String,
    pub last4: String,
    pub name: String,
    pub scopes: Vec<AdminPermission>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl PlatformKey {
    /// The beginning of every key.
    pub const PREFIX: &str = "adm_";

    /// The hash of a key.
    pub fn hash_of(key: &str) -> String {
        hex::encode(Sha256::digest(key.as_bytes()))
    }

    pub fn works_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }
}

impl fmt::Debug for PlatformKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlatformKey({})", self.id)
    }
}
