//! The permissions of a restricted API key.

use std::{fmt, str::FromStr};

use super::stored_as_text;

/// A permission, as `keys create --scope` names it. Permission to write a kind of record includes permission to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    PaymentsRead,
    PaymentsWrite,
    RefundsWrite,
    /// Retrieve the account, its balance, its apps and its keys.
    AccountRead,
    /// List webhook endpoints, without their secrets, and deliveries.
    WebhooksRead,
    /// Create, change, test and remove webhook endpoints, see their secrets, and resend deliveries.
    WebhooksWrite,
    /// Resend deliveries. It includes permission to list them.
    DeliveriesResend,
    /// List payouts, and where and when they go.
    PayoutsRead,
    /// Request and cancel payouts, and set where and when they go.
    PayoutsWrite,
    /// Move the time of the workspace's sandbox, and empty the sandbox with its endpoints.
    SandboxWrite,
}

impl Permission {
    pub const ALL: [Self; 10] = [
        Self::PaymentsRead,
        Self::PaymentsWrite,
        Self::RefundsWrite,
        Self::AccountRead,
        Self::WebhooksRead,
        Self::WebhooksWrite,
        Self::DeliveriesResend,
        Self::PayoutsRead,
        Self::PayoutsWrite,
        Self::SandboxWrite,
    ];
    /// The permissions that a key of only one app may have. The others are about the whole workspace.
    pub const OF_AN_APP: [Self; 3] = [Self::PaymentsRead, Self::PaymentsWrite, Self::RefundsWrite];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentsRead => "payments:read",
            Self::PaymentsWrite => "payments:write",
            Self::RefundsWrite => "refunds:write",
            Self::AccountRead => "account:read",
            Self::WebhooksRead => "webhooks:read",
            Self::WebhooksWrite => "webhooks:write",
            Self::DeliveriesResend => "deliveries:resend",
            Self::PayoutsRead => "payouts:read",
            Self::PayoutsWrite => "payouts:write",
            Self::SandboxWrite => "sandbox:write",
        }
    }

    /// Whether this permission includes `needed`.
    pub fn grants(self, needed: Self) -> bool {
        self == needed
            || matches!(
                (self, needed),
                (Self::PaymentsWrite, Self::PaymentsRead)
                    | (Self::WebhooksWrite, Self::WebhooksRead | Self::DeliveriesResend)
                    | (Self::DeliveriesResend, Self::WebhooksRead)
                    | (Self::PayoutsWrite, Self::PayoutsRead)
            )
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be one of {}", Permission::ALL.map(Permission::as_str).join(", "))]
pub struct UnknownPermission;

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, UnknownPermission> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(UnknownPermission)
    }
}

stored_as_text!(Permission: Permission::to_string);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_permission_is_read_as_it_is_written_and_write_includes_read() {
        for permission in Permission::ALL {
            assert_eq!(permission.as_str().parse(), Ok(permission));
            let granted: Vec<_> = Permission::ALL.into_iter().filter(|needed| permission.grants(*needed)).collect();
            let others: Vec<_> = granted.iter().filter(|it| **it != permission).map(|it| it.as_str()).collect();
            let expected: &[&str] = match permission {
                Permission::PaymentsWrite => &["payments:read"],
                Permission::WebhooksWrite => &["webhooks:read", "deliveries:resend"],
                Permission::DeliveriesResend => &["webhooks:read"],
                Permission::PayoutsWrite => &["payouts:read"],
                _ => &[],
            };
            assert_eq!(others, expected);
        }
        let error = "payments".parse::<Permission>().unwrap_err().to_string();
        assert!(error.starts_with("it must be one of payments:read, "), "{error}");
    }

    #[test]
    fn a_permission_is_stored_and_shown_as_it_is_written() {
        let stored = serde_json::to_string(&Permission::PaymentsWrite).unwrap();
        assert_eq!(stored, r#""payments:write""#);
        assert_eq!(Permission::PaymentsWrite.to_string(), "payments:write");
        assert_eq!(serde_json::from_str::<Permission>(&stored).unwrap(), Permission::PaymentsWrite);
        serde_json::from_str::<Permission>(r#""payments""#).unwrap_err();
    }
}
