//! The columns of the table `record`, beside the body.

use super::names::{self, Kind, RecordKey};
use crate::{
    domain::{ApiKey, App, Endpoint, LogPart, StoredToken, Workspace},
    store::Migration,
};

/// The columns that a record's row repeats.
pub(super) struct RecordColumns {
    pub(super) key: RecordKey,
    pub(super) parent: String,
    pub(super) version: u64,
}

impl RecordColumns {
    pub(super) fn of_workspace(it: &Workspace) -> Self {
        let key = (Kind::Workspace, it.id.to_string());
        Self { key, parent: it.developer_id.to_string(), version: it.version }
    }

    /// `hash` is the key's hash in hex.
    pub(super) fn of_api_key(hash: String, it: &ApiKey) -> Self {
        Self { key: (Kind::ApiKey, hash), parent: it.workspace_id.to_string(), version: it.version }
    }

    pub(super) fn of_app(it: &App) -> Self {
        let key = (Kind::App, names::app(&it.app.developer_id, &it.app.id));
        Self { key, parent: it.app.developer_id.to_string(), version: it.version }
    }

    pub(super) fn of_gateway_token(name: &str, it: &StoredToken) -> Self {
        Self { key: (Kind::GatewayToken, name.to_owned()), parent: String::new(), version: it.version }
    }

    pub(super) fn of_endpoint(it: &Endpoint) -> Self {
        let key = (Kind::Endpoint, it.endpoint.id.to_string());
        Self { key, parent: names::endpoints_of(&it.scope()), version: it.version }
    }

    pub(super) fn of_log_part(it: &LogPart) -> Self {
        Self { key: (Kind::LogPart, it.key()), parent: String::new(), version: it.version }
    }

    pub(super) fn of_migration(it: &Migration) -> Self {
        Self { key: names::migration(), parent: String::new(), version: it.version }
    }
}
