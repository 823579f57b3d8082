//! A person's session of the console, and the roles that it has.

use payments_core::{KeyId, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Role, is_first};

/// How long a session lasts at most.
pub const LONGEST_SESSION_SECONDS: u32 = 12 * 60 * 60;

/// A role for one workspace, or for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    pub role: Role,
    /// `None` for all workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}

/// A person who signed in at the operator's provider of identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonSession {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    /// The id of the key as which the session acts.
    pub id: KeyId,
    /// The SHA-256 hash of the token in the browser's cookie, in hex. The store never holds the token itself.
    pub token_hash: String,
    /// The provider's id of the person.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub grants: Vec<Grant>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// To the minute.
    pub last_seen_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl PersonSession {
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at > now
    }

    /// The highest role for a workspace.
    pub fn role_in(&self, workspace: &WorkspaceId) -> Option<Role> {
        let its = |grant: &&Grant| grant.workspace.as_ref().is_none_or(|only| only == workspace);
        self.grants.iter().filter(its).map(|grant| grant.role).max()
    }

    /// The highest role for all workspaces.
    pub fn platform_role(&self) -> Option<Role> {
        self.grants.iter().filter(|grant| grant.workspace.is_none()).map(|grant| grant.role).max()
    }

    /// How logs and lists name the person.
    pub fn label(&self) -> &str {
        self.email.as_deref().or(self.name.as_deref()).unwrap_or(&self.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_highest_role_of_a_workspace_until_it_ends() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000).unwrap();
        let [one, other]: [WorkspaceId; 2] = ["ws_1", "ws_2"].map(|id| id.parse().unwrap());
        let grant = |role, workspace: Option<&WorkspaceId>| Grant { role, workspace: workspace.cloned() };
        let session = PersonSession {
            version: 0,
            id: "key_1".parse().unwrap(),
            token_hash: "00".into(),
            subject: "7".into(),
            email: None,
            name: Some("Mita".into()),
            grants: vec![
                grant(Role::Support, Some(&one)),
                grant(Role::Finance, Some(&one)),
                grant(Role::Viewer, Some(&one)),
            ],
            created_at: at(0),
            expires_at: at(60),
            last_seen_at: at(0),
            revoked_at: None,
        };
        assert_eq!((session.role_in(&one), session.role_in(&other)), (Some(Role::Finance), None));
        let everywhere = PersonSession { grants: vec![grant(Role::Viewer, None)], ..session.clone() };
        assert_eq!((everywhere.role_in(&one), everywhere.role_in(&other)), (Some(Role::Viewer), Some(Role::Viewer)));
        assert!(session.is_open(at(59)) && !session.is_open(at(60)));
        assert!(!PersonSession { revoked_at: Some(at(1)), ..session.clone() }.is_open(at(2)));
        assert_eq!(session.label(), "Mita");
    }
}
