//! The records of merchants: workspaces, API keys, apps, endpoints, gateway tokens, and the logs of their requests.

use super::{
    entry::{Entry, Record, key_alone},
    keys::{self, SCHEDULES},
    limits::limits_of,
};
use crate::{
    Migration,
    domain::{
        ApiKey, App, Coverage, Destination, Endpoint, GatewayPause, KeyHash, LogPart, Notices, PersonSession,
        PlatformKey, StoredToken, Workspace,
    },
};

pub(super) trait Versioned {
    fn version(&self) -> u64;
}

/// Defines records that are stored as their JSON.
macro_rules! records {
    ($(|$it:ident: $type:ty| $key:expr, $json:expr, $version:expr => $entries:expr;)+) => {
        $(
            impl Record for $type {
                fn key(&self) -> Vec<u8> {
                    let $it = self;
                    let _ = $it;
                    $key
                }
                fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
                    let $it = self;
                    serde_json::to_vec(&$json)
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

pub(super) struct KeyOf {
    pub(super) hash: KeyHash,
    pub(super) key: ApiKey,
}

pub(super) struct TokenOf {
    pub(super) gateway: String,
    pub(super) token: StoredToken,
}

records! {
    |it: Destination| keys::destination(&it.scope, it.currency), it, it.version => {
        let owner = keys::destination(&it.scope, it.currency);
        it.schedule.next_at.map(|time| Entry::At { index: SCHEDULES, time, owner }).into_iter().collect()
    };
    |it: Workspace| keys::workspace(&it.id), it, it.version => {
        let own = Entry::Key { key: keys::workspace_of(&it.developer_id), value: it.id.as_str().into() };
        [own, key_alone(keys::workspace_in_cell(&it.id))].into_iter().chain(limits_of(it)).collect()
    };
    |it: KeyOf| keys::api_key(&it.hash), it.key, it.key.version => vec![
        Entry::Key { key: keys::api_key_of(&it.key.workspace_id, &it.key.id), value: it.hash.digest.into() },
    ];
    |it: App| keys::app(&it.app.developer_id, &it.app.id), it, it.version => Vec::new();
    |it: Endpoint| keys::endpoint(&it.endpoint.id), it, it.version => {
        let is_troubled = it.failing_since.is_some() || it.endpoint.disabled_reason.is_some();
        let troubled = is_troubled.then(|| key_alone(keys::troubled_endpoint(&it.endpoint.id)));
        let all = [
            key_alone(keys::endpoint_of(&it.scope(), &it.endpoint.id)),
            Entry::Sum { head: keys::head_of_scope(&it.scope()), name: ENDPOINTS.to_owned(), amount: 1 },
        ];
        all.into_iter().chain(troubled).collect()
    };
    |it: TokenOf| keys::gateway_token(&it.gateway), it.token, it.token.version => Vec::new();
    |it: LogPart| keys::log_part(&it.scope, it.place), it, it.version => Vec::new();
    |it: Coverage| keys::coverage(it.day), it, { let _ = it; 0 } => Vec::new();
    |it: GatewayPause| keys::gateway_pause(it.gateway), it, it.version => Vec::new();
    |it: PlatformKey| keys::platform_key(&it.hash), it, it.version => Vec::new();
    |it: Notices| keys::notices(), it, it.version => Vec::new();
    |it: PersonSession| keys::person_session(&it.token_hash), it, it.version => Vec::new();
    |it: Migration| keys::migration(), it, it.version => Vec::new();
}

/// The name of the sum that counts a scope's endpoints.
pub(super) const ENDPOINTS: &str = "endpoints";
