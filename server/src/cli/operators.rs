//! The arguments of `platform-keys` and `audit`.

use clap::Subcommand;
use payments_core::Timestamp;

use super::values::time;
use crate::domain::AdminPermission;

#[derive(Debug, Subcommand)]
pub enum PlatformKeysCommand {
    /// Create a key. Prints it once.
    Create {
        /// Whose it is, or what it is for.
        #[arg(long, env = "PAYMENTS_KEY_NAME", value_name = "TEXT")]
        name: String,
        /// What the key may do, separated by commas: merchants:read, merchants:write, keys:write, deliveries:write, money:read,
        /// money:write, customers:write, audit:read, server:read, server:write, people:write. Writing includes reading.
        #[arg(long = "scope", env = "PAYMENTS_SCOPE", value_delimiter = ',', required = true, value_name = "S")]
        scopes: Vec<AdminPermission>,
        /// When the key stops working, such as 2027-03-01.
        #[arg(long, env = "PAYMENTS_EXPIRES", value_name = "TIME", value_parser = time)]
        expires: Timestamp,
    },
    /// List keys: id, last four characters, created, expires, revoked, scopes, name.
    List,
    /// Revoke a key at once.
    Revoke {
        /// The key's id.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List changes, the newest first: when, who, from where, the request, the record, and each field before and after. With
    /// --json, a line for each change.
    List {
        /// Only changes of this merchant's records, by id or name.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: Option<String>,
        /// Only changes by this actor: a key's id, a person's e-mail address, or a user such as `uid 0`.
        #[arg(long, env = "PAYMENTS_ACTOR", value_name = "ID")]
        actor: Option<String>,
        /// Only requests whose method and path contain this text.
        #[arg(long, env = "PAYMENTS_REQUEST", value_name = "TEXT")]
        request: Option<String>,
        /// Only changes at this time or later, such as 2026-03-01.
        #[arg(long, env = "PAYMENTS_SINCE", value_name = "TIME", value_parser = time)]
        since: Option<Timestamp>,
        /// Only changes before this time.
        #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME", value_parser = time)]
        until: Option<Timestamp>,
    },
}
