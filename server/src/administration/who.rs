//! Who asks for something, and what they may do.

use std::net::IpAddr;

use payments_core::{AuditActor, WorkspaceId};

use super::message::action_of;
use crate::{
    domain::{AdminPermission, Role},
    service::{Acting, AdminRequest, actor},
};

/// Who asks, and from where.
#[derive(Debug, Clone)]
pub struct Who {
    pub actor: AuditActor,
    pub address: Option<IpAddr>,
    pub grants: Vec<Grant>,
}

/// What somebody may do.
#[derive(Debug, Clone)]
pub enum Grant {
    /// The owner of the server's socket, who could open the store as well.
    Everything,
    /// A platform key's scope.
    Scope(AdminPermission),
    /// A person's role, for one workspace or for all.
    Role { role: Role, workspace: Option<WorkspaceId> },
}

impl Who {
    /// A command on the server's machine.
    pub fn command() -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self { actor: actor("command", format!("uid {user}"), None), address: None, grants: vec![Grant::Everything] }
    }

    /// Names them in the audit log as the sender of a request.
    pub fn acting(&self, request: &AdminRequest) -> Acting {
        let (action, subject) = action_of(request).unwrap_or_default();
        Acting { actor: self.actor.clone(), address: self.address, action, subject }
    }

    /// Whether they may do this: with a workspace's records, or with the platform's if `workspace` is `None`.
    pub fn may(&self, needed: AdminPermission, workspace: Option<&WorkspaceId>) -> bool {
        self.grants_for(workspace).any(|grant| match grant {
            Grant::Everything => true,
            Grant::Scope(scope) => scope.grants(needed),
            Grant::Role { role, .. } => role.may(needed),
        })
    }

    /// Whether customers' data is masked for them.
    pub fn is_masked(&self, workspace: Option<&WorkspaceId>) -> bool {
        self.grants_for(workspace).all(|grant| matches!(grant, Grant::Role { role, .. } if role.is_masked()))
    }

    fn grants_for<'w>(&'w self, workspace: Option<&'w WorkspaceId>) -> impl Iterator<Item = &'w Grant> {
        let is_for = move |grant: &&Grant| match grant {
            Grant::Role { workspace: Some(own), .. } => workspace == Some(own),
            _ => true,
        };
        self.grants.iter().filter(is_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_for_a_workspace_reaches_its_records_alone_and_a_scope_what_it_grants() {
        let [own, other]: [WorkspaceId; 2] = ["ws_1", "ws_2"].map(|id| id.parse().unwrap());
        let who = |grant| Who { actor: actor("person", "a@b.example", None), address: None, grants: vec![grant] };
        let (read, write) = (AdminPermission::MerchantsRead, AdminPermission::MerchantsWrite);
        let of_one = who(Grant::Role { role: Role::Viewer, workspace: Some(own.clone()) });
        assert!(of_one.may(read, Some(&own)) && !of_one.may(write, Some(&own)));
        assert!(!of_one.may(read, Some(&other)) && !of_one.may(read, None));
        let of_all = who(Grant::Role { role: Role::Admin, workspace: None });
        assert!(of_all.may(write, Some(&other)) && of_all.may(write, None));
        assert!(of_one.is_masked(Some(&own)) && !of_all.is_masked(None));
        let scoped = who(Grant::Scope(write));
        assert!(
            scoped.may(read, None) && scoped.may(write, Some(&own)) && !scoped.may(AdminPermission::KeysWrite, None)
        );
    }
}
