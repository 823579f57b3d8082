//! What operators may do: the permissions of the administration API, and the roles of people.

use std::{fmt, str::FromStr};

use super::{Permission, stored_as_text};

/// A permission of the administration API, as a platform key's scope names it. Permission to write includes permission to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminPermission {
    /// List workspaces, apps and keys, and find payments.
    MerchantsRead,
    /// Create and change workspaces and apps, and set limits.
    MerchantsWrite,
    /// Create, rotate and revoke API keys.
    KeysWrite,
    /// Resend webhook deliveries.
    DeliveriesWrite,
    /// List refunds, reviews, disputes, settlements, payouts and coverage.
    MoneyRead,
    /// Settle refunds, resolve reviews, record disputes, settlements, payouts and changes of the books.
    MoneyWrite,
    /// Export what is held on a customer, and erase it.
    CustomersWrite,
    /// Read the audit log.
    AuditRead,
    /// List gateways, notices and the server's health.
    ServerRead,
    /// Pause gateways and back up the store.
    ServerWrite,
    /// Create and revoke platform keys, and end people's sessions.
    PeopleWrite,
}

impl AdminPermission {
    pub const ALL: [Self; 11] = [
        Self::MerchantsRead,
        Self::MerchantsWrite,
        Self::KeysWrite,
        Self::DeliveriesWrite,
        Self::MoneyRead,
        Self::MoneyWrite,
        Self::CustomersWrite,
        Self::AuditRead,
        Self::ServerRead,
        Self::ServerWrite,
        Self::PeopleWrite,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MerchantsRead => "merchants:read",
            Self::MerchantsWrite => "merchants:write",
            Self::KeysWrite => "keys:write",
            Self::DeliveriesWrite => "deliveries:write",
            Self::MoneyRead => "money:read",
            Self::MoneyWrite => "money:write",
            Self::CustomersWrite => "customers:write",
            Self::AuditRead => "audit:read",
            Self::ServerRead => "server:read",
            Self::ServerWrite => "server:write",
            Self::PeopleWrite => "people:write",
        }
    }

    /// Whether this permission includes `needed`.
    pub fn grants(self, needed: Self) -> bool {
        self == needed
            || matches!(
                (self, needed),
                (Self::MerchantsWrite | Self::KeysWrite, Self::MerchantsRead)
                    | (Self::MoneyWrite, Self::MoneyRead)
                    | (Self::ServerWrite, Self::ServerRead)
            )
    }
}

impl fmt::Display for AdminPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be one of {}", AdminPermission::ALL.map(AdminPermission::as_str).join(", "))]
pub struct UnknownAdminPermission;

impl FromStr for AdminPermission {
    type Err = UnknownAdminPermission;

    fn from_str(text: &str) -> Result<Self, UnknownAdminPermission> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(UnknownAdminPermission)
    }
}

stored_as_text!(AdminPermission: AdminPermission::to_string);

/// What a person may do, for one workspace or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads, with customers' data masked.
    Viewer,
    /// Also sees customers' data, resends deliveries, and refunds up to a cap.
    Support,
    /// Also refunds without a cap, and handles payouts and settlements.
    Finance,
    /// May do everything.
    Admin,
}

/// A row of the table of roles, which are in the order of [`Role::ALL`].
struct Row {
    name: &'static str,
    /// With a workspace's data through the API.
    api: &'static [Permission],
    /// Through the administration API.
    admin: &'static [AdminPermission],
}

const ROLES: [Row; 4] = {
    use AdminPermission as A;
    use Permission as P;
    [
        Row {
            name: "viewer",
            api: &[P::PaymentsRead, P::AccountRead, P::WebhooksRead, P::PayoutsRead],
            admin: &[A::MerchantsRead, A::MoneyRead, A::ServerRead],
        },
        Row {
            name: "support",
            api: &[P::PaymentsRead, P::RefundsWrite, P::AccountRead, P::DeliveriesResend, P::PayoutsRead],
            admin: &[A::MerchantsRead, A::MoneyRead, A::ServerRead, A::DeliveriesWrite],
        },
        Row {
            name: "finance",
            api: &[P::PaymentsRead, P::RefundsWrite, P::AccountRead, P::DeliveriesResend, P::PayoutsWrite],
            admin: &[A::MerchantsRead, A::MoneyWrite, A::ServerRead, A::DeliveriesWrite, A::AuditRead],
        },
        Row { name: "admin", api: &P::ALL, admin: &A::ALL },
    ]
};

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Support, Self::Finance, Self::Admin];

    fn row(self) -> &'static Row {
        &ROLES[self as usize]
    }

    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// What the role may do through the API.
    pub fn permissions(self) -> &'static [Permission] {
        self.row().api
    }

    /// Whether the role may do this through the administration API.
    pub fn may(self, needed: AdminPermission) -> bool {
        self.row().admin.iter().any(|granted| granted.grants(needed))
    }

    /// Whether customers' data is masked for the role.
    pub fn is_masked(self) -> bool {
        self == Self::Viewer
    }

    /// Whether the role refunds only up to a cap.
    pub fn has_refund_cap(self) -> bool {
        self == Self::Support
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be viewer, support, finance or admin")]
pub struct UnknownRole;

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(UnknownRole)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

stored_as_text!(Role: Role::to_string);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_is_its_row_of_the_table_and_may_do_what_the_role_before_may() {
        assert_eq!(Role::ALL.map(Role::as_str), ["viewer", "support", "finance", "admin"]);
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        for pair in Role::ALL.windows(2) {
            let [less, more] = pair else { continue };
            let may = |role: &Role, needed| role.permissions().iter().any(|granted| granted.grants(needed));
            assert!(AdminPermission::ALL.iter().all(|it| !less.may(*it) || more.may(*it)), "{more}");
            assert!(Permission::ALL.iter().all(|it| !may(less, *it) || may(more, *it)), "{more}");
        }
        assert_eq!("owner".parse::<Role>(), Err(UnknownRole));
    }

    #[test]
    fn each_permission_is_read_as_it_is_written() {
        for permission in AdminPermission::ALL {
            assert_eq!(permission.as_str().parse(), Ok(permission));
        }
        let error = "money".parse::<AdminPermission>().unwrap_err().to_string();
        assert!(error.starts_with("it must be one of merchants:read, "), "{error}");
    }
}
