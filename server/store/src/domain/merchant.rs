//! Merchants: their scopes, workspaces and API keys.

use std::fmt;

use payments_core::{AppId, DeveloperId, Environment, KeyId, Slot, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Limits, Permission, is_first};

/// A developer and an environment. Requests read and write records of their own scope only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    pub developer_id: DeveloperId,
    #[serde(deserialize_with = "Environment::deserialize_closed")]
    pub environment: Environment,
}

impl Scope {
    /// The key by which scopes are sorted.
    pub fn key(&self) -> (&str, &str) {
        (self.developer_id.as_str(), self.environment.as_str())
    }
}

/// The length of a developer's id: the prefix and 35 hexadecimal digits.
const OWN_ID_BYTES: usize = 39;

/// The developer id of the workspace that owns a record's developer id. An emptied sandbox has a new developer id: its
/// workspace's, followed by a number in eight hexadecimal digits.
pub fn owner_of(developer: &DeveloperId) -> DeveloperId {
    let own = developer.as_str().get(..OWN_ID_BYTES).and_then(|own| own.parse().ok());
    own.unwrap_or_else(|| developer.clone())
}

/// A merchant: one workspace, one developer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Workspace {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub id: WorkspaceId,
    pub developer_id: DeveloperId,
    pub name: String,
    pub slug: String,
    pub website: Option<String>,
    pub status: String,
    pub created_at: Timestamp,
    /// How often its sandbox was emptied.
    #[serde(default, skip_serializing_if = "is_first")]
    pub resets: u64,
    /// The ways to pay that its customers see, in this order. Without any, all of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<String>,
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
}

impl Workspace {
    /// The scope of the workspace's keys in an environment.
    pub fn scope(&self, environment: Environment) -> Scope {
        let own = &self.developer_id;
        let emptied =
            (environment == Environment::Test && self.resets > 0).then(|| format!("{own}{:08x}", self.resets));
        // The text of an id, followed by digits, always parses.
        let developer_id = emptied.and_then(|id| id.parse().ok()).unwrap_or_else(|| own.clone());
        Scope { developer_id, environment }
    }
}

/// The SHA-256 hash of an API key, and its developer's slot. The store never holds the key itself (API specification,
/// "Authentication", rule 5).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyHash {
    pub slot: Slot,
    pub digest: [u8; 32],
}

impl KeyHash {
    pub fn of(key: &str) -> Self {
        Self { slot: Slot::of_key(key), digest: Sha256::digest(key.as_bytes()).into() }
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// The record of an API key, without the key itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApiKey {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub id: KeyId,
    pub workspace_id: WorkspaceId,
    pub scope: Scope,
    pub last4: String,
    /// The developer app that the key is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// Whether the key sees only the payments of that app.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_its_app: bool,
    /// The operator's name for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key's permissions; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<Permission>>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the key was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// The key that replaces this one. This one works on until `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<KeyId>,
}

impl ApiKey {
    /// Replaces the key by another one, at once or after an overlap. The overlap never extends the key's life.
    pub fn replace(&mut self, by: KeyId, overlap_seconds: u32, now: Timestamp) {
        self.version += 1;
        if overlap_seconds == 0 {
            self.revoked_at = Some(now);
            return;
        }
        let end = now.plus_seconds(overlap_seconds);
        self.expires_at = Some(self.expires_at.map_or(end, |at| at.min(end)));
        self.replaced_by = Some(by);
    }

    /// Whether the key may see a payment. `payment` is its JSON or an event's data.
    pub fn sees(&self, payment: &str) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Of {
            app_id: Option<AppId>,
        }
        !self.only_its_app || serde_json::from_str(payment).is_ok_and(|Of { app_id }| self.is_of_app(app_id.as_ref()))
    }

    /// Whether the key may see the payments of this app; `None` stands for payments without an app.
    pub fn sees_app(&self, app: Option<&AppId>) -> bool {
        !self.only_its_app || self.is_of_app(app)
    }

    fn is_of_app(&self, app: Option<&AppId>) -> bool {
        app.is_some() && app == self.app_id.as_ref()
    }

    pub fn may(&self, needed: Permission) -> bool {
        self.permissions.as_ref().is_none_or(|granted| granted.iter().any(|permission| permission.grants(needed)))
    }
}

/// A scope's balance and volume in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The balance of the merchant's ledger account, in minor units.
    pub balance_minor: i128,
    /// The gross amount of all payments ever paid, in minor units.
    pub volume_minor: i128,
    /// The number of payments ever paid.
    pub payments: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_sandbox_has_another_developer_id_which_names_its_owner() {
        let json = r#"{"id": "ws_1", "developer_id": "dev_01a20b099af470afb25045fdf348ddb81a7", "name": "Rahim", "slug": "rahim",
            "website": null, "status": "active", "created_at": "2026-03-01T03:30:00.000Z"}"#;
        let mut workspace: Workspace = serde_json::from_str(json).unwrap();
        let own = workspace.developer_id.clone();
        for resets in 0..3 {
            workspace.resets = resets;
            let (live, test) = (workspace.scope(Environment::Live), workspace.scope(Environment::Test));
            assert_eq!(live.developer_id, own);
            assert_eq!(test.developer_id == own, resets == 0);
            assert_eq!((owner_of(&live.developer_id), owner_of(&test.developer_id)), (own.clone(), own.clone()));
        }
        assert_eq!(workspace.scope(Environment::Test).developer_id.as_str(), format!("{own}00000002"));
        let other: DeveloperId = "dev_1".parse().unwrap();
        assert_eq!(owner_of(&other), other);
    }

    #[test]
    fn a_key_without_permissions_may_do_everything_and_any_other_only_what_its_permissions_grant() {
        let json = r#"{"id": "key_1", "workspace_id": "ws_1", "last4": "abcd", "created_at": "2026-03-01T03:30:00.000Z",
            "scope": {"developer_id": "dev_1", "environment": "live"}, "revoked_at": null}"#;
        let all: ApiKey = serde_json::from_str(json).unwrap();
        let some = |granted: &[Permission]| ApiKey { permissions: Some(granted.to_vec()), ..all.clone() };
        let (write, read) = (Permission::PaymentsWrite, Permission::PaymentsRead);
        assert!(all.may(write));
        assert!(some(&[write]).may(read) && some(&[Permission::WebhooksRead, read]).may(read));
        assert!(!some(&[read]).may(write) && !some(&[]).may(read));
    }

    #[test]
    fn a_key_of_only_one_app_sees_its_payments_and_any_other_key_sees_all() {
        let json = r#"{"id": "key_1", "workspace_id": "ws_1", "last4": "abcd", "created_at": "2026-03-01T03:30:00.000Z",
            "scope": {"developer_id": "dev_1", "environment": "live"}, "revoked_at": null, "app_id": "app_1"}"#;
        let all: ApiKey = serde_json::from_str(json).unwrap();
        assert!(!serde_json::to_string(&all).unwrap().contains("only_its_app"), "as older servers wrote it");
        let one = ApiKey { only_its_app: true, ..all.clone() };
        let stored = serde_json::to_string(&one).unwrap();
        assert!(serde_json::from_str::<ApiKey>(&stored).unwrap().only_its_app);
        for (app, sees) in [(Some("app_1"), true), (Some("app_2"), false), (None, false)] {
            let payment = serde_json::json!({"id": "pay_1", "appId": app}).to_string();
            let app = app.map(|app| app.parse().unwrap());
            assert_eq!((one.sees(&payment), one.sees_app(app.as_ref())), (sees, sees), "{payment}");
            assert!(all.sees(&payment) && all.sees_app(app.as_ref()));
        }
        assert!(!one.sees(r#"{"event": "payment.created", "payment": {"appId": "app_1"}}"#) && !one.sees("?"));
    }

    #[test]
    fn debug_output_omits_the_hash_of_a_key() {
        assert_eq!(format!("{:?}", KeyHash::of("sk_live_1")), "KeyHash(..)");
        assert_ne!(KeyHash::of("sk_live_1"), KeyHash::of("sk_live_2"));
    }

    #[test]
    fn scopes_are_sorted_by_developer_and_environment() {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Live };
        assert_eq!(scope.key(), ("dev_1", "live"));
    }
}
