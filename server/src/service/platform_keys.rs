//! Platform keys: creates, lists and revokes them, and finds who sends one.

use payments_core::{KeyId, Slot, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Directory, Record, Result, ServiceError,
    operator_text::{invalid, named},
    retry_on_conflict,
};
use crate::{
    domain::{AdminPermission, PlatformKey},
    store::{Change, Write},
};

/// How many keys there are at most, without those that were revoked or have expired.
const AT_MOST: usize = 100;
const RANDOM_BYTES: usize = 24;
/// Longer than any key.
const MAX_KEY_BYTES: usize = 64;

/// A command about platform keys.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum PlatformKeyRequest {
    /// Lists the platform keys.
    List,
    /// Creates a platform key.
    Create {
        /// Whose it is, or what it is for.
        name: String,
        scopes: Vec<AdminPermission>,
        expires_at: Timestamp,
    },
    /// Revokes a platform key.
    Revoke { id: String },
}

/// The answer to a [`PlatformKeyRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum PlatformKeyReply {
    Rows {
        rows: Vec<PlatformKeyRow>,
    },
    /// The new key. The server shows it once and does not store it.
    Created {
        id: KeyId,
        key: String,
    },
    Revoked {
        id: KeyId,
        revoked_at: Timestamp,
    },
}

/// A row of `platform-keys list`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformKeyRow {
    pub id: KeyId,
    pub name: String,
    pub last4: String,
    pub scopes: Vec<AdminPermission>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl Directory {
    pub(super) async fn platform_keys(&self, request: PlatformKeyRequest) -> Result<PlatformKeyReply> {
        match request {
            PlatformKeyRequest::List => {
                let rows = self.store.platform_keys().await?.into_iter().map(|key| PlatformKeyRow {
                    id: key.id,
                    name: key.name,
                    last4: key.last4,
                    scopes: key.scopes,
                    created_at: key.created_at,
                    expires_at: key.expires_at,
                    revoked_at: key.revoked_at,
                });
                Ok(PlatformKeyReply::Rows { rows: rows.collect() })
            }
            PlatformKeyRequest::Create { name, scopes, expires_at } => {
                self.create_platform_key(&name, scopes, expires_at).await
            }
            PlatformKeyRequest::Revoke { id } => self.revoke_platform_key(&id).await,
        }
    }

    async fn create_platform_key(
        &self,
        name: &str,
        scopes: Vec<AdminPermission>,
        expires_at: Timestamp,
    ) -> Result<PlatformKeyReply> {
        let (name, now) = (named("name", name)?.to_owned(), self.ambient.now());
        if scopes.is_empty() {
            return Err(invalid("name at least one scope, such as money:read"));
        }
        if expires_at <= now {
            return Err(invalid("the key would have expired already; give a later time"));
        }
        if self.store.platform_keys().await?.iter().filter(|key| key.works_at(now)).count() >= AT_MOST {
            return Err(invalid(format!("there are {AT_MOST} platform keys that work; revoke one first")));
        }
        let random: [u8; RANDOM_BYTES] = self.ambient.random();
        let key = format!("{}{}", PlatformKey::PREFIX, hex::encode(random));
        let id = KeyId::new(Slot::FIRST, now, self.ambient.id_bytes());
        let record = PlatformKey {
            version: 0,
            id: id.clone(),
            hash: PlatformKey::hash_of(&key),
            last4: key[key.len() - 4..].to_owned(),
            name,
            scopes,
            created_at: now,
            expires_at,
            revoked_at: None,
        };
        self.commit(Change::of(Write::PlatformKey(Box::new(record)))).await?;
        Ok(PlatformKeyReply::Created { id, key })
    }

    async fn revoke_platform_key(&self, id: &str) -> Result<PlatformKeyReply> {
        retry_on_conflict(|| async {
            let found = self.store.platform_keys().await?.into_iter().find(|key| key.id.as_str() == id);
            let mut key = found.ok_or(ServiceError::NotFound { what: Record::PlatformKey })?;
            let (id, revoked_at) = (key.id.clone(), key.revoked_at.unwrap_or_else(|| self.ambient.now()));
            // Revoking a key again does not change the time.
            if key.revoked_at.replace(revoked_at).is_none() {
                key.version += 1;
                self.commit(Change::of(Write::PlatformKey(Box::new(key)))).await?;
            }
            Ok(PlatformKeyReply::Revoked { id, revoked_at })
        })
        .await
    }

    /// The platform key that works and has this text.
    pub async fn platform_key(&self, text: &str) -> Result<Option<PlatformKey>> {
        if text.len() > MAX_KEY_BYTES || !text.starts_with(PlatformKey::PREFIX) {
            return Ok(None);
        }
        let key = self.store.platform_key(&PlatformKey::hash_of(text)).await?;
        Ok(key.filter(|key| key.works_at(self.ambient.now())))
    }
}
