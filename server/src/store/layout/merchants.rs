//! The records of merchants: workspaces, API keys, apps, endpoints, gateway tokens, and the logs of their requests.

use serde::Serialize;

use super::{
    entry::{Entry, Record, key_alone},
    keys,
};
use crate::{
    domain::{ApiKey, App, Endpoint, KeyHash, LogPart, StoredToken, Workspace},
    store::Migration,
};

/// A record that has a version.
pub(super) trait Versioned {
    fn version(&self) -> u64;
}

/// Defines the records that are their own JSON.
macro_rules! records {
    ($($type:ty { key: |$it:ident| $key:expr, json: $json:expr, version: $version:expr, entries: $entries:expr })+) => {
        $(
            impl Record for $type {
                fn key(&self) -> Vec<u8> {
                    let $it = self;
                    $key
                }
                fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
                    let $it = self;
                    json($json)
                }
                fn entries(&self) -> Vec<Entry> {
                    let $it = self;
                    let _ = $it;
                    $entries
                }
            }

            impl Versioned for $type {
                fn version(&self) -> u64 {
                    let $it = self;
                    $version
                }
            }
        )+
    };
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(value)
}

/// An API key under its hash.
pub(super) struct KeyOf {
    pub(super) hash: KeyHash,
    pub(super) key: ApiKey,
}

/// A gateway's token.
pub(super) struct TokenOf {
    pub(super) gateway: String,
    pub(super) token: StoredToken,
}

records! {
    Workspace {
        key: |it| keys::workspace(&it.id),
        json: it,
        version: it.version,
        entries: {
            let value = it.id.as_str().as_bytes().to_vec();
            vec![Entry::Key { key: keys::workspace_of(&it.developer_id), value }, key_alone(keys::workspace_in_cell(&it.id))]
        }
    }
    KeyOf {
        key: |it| keys::api_key(&it.hash),
        json: &it.key,
        version: it.key.version,
        entries: vec![Entry::Key { key: keys::api_key_of(&it.key.workspace_id, &it.key.id), value: it.hash.digest.to_vec() }]
    }
    App { key: |it| keys::app(&it.app.developer_id, &it.app.id), json: it, version: it.version, entries: Vec::new() }
    Endpoint {
        key: |it| keys::endpoint(&it.endpoint.id),
        json: it,
        version: it.version,
        entries: {
            let (scope, id) = (it.scope(), &it.endpoint.id);
            let count = Entry::Sum { head: keys::head_of_scope(&scope), name: ENDPOINTS.to_owned(), amount: 1 };
            vec![key_alone(keys::endpoint_of(&scope, id)), count]
        }
    }
    TokenOf { key: |it| keys::gateway_token(&it.gateway), json: &it.token, version: it.token.version, entries: Vec::new() }
    LogPart { key: |it| keys::log_part(&it.scope, it.place), json: it, version: it.version, entries: Vec::new() }
}

impl Record for Migration {
    fn key(&self) -> Vec<u8> {
        keys::migration()
    }
    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        json(self)
    }
    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }
}

impl Versioned for Migration {
    fn version(&self) -> u64 {
        self.version
    }
}

/// The sum of a scope that counts its endpoints.
pub(super) const ENDPOINTS: &str = "endpoints";
