//! Reads the records of merchants and of the operator: keys, workspaces, apps, endpoints, tokens, logs.

use std::sync::Arc;

use payments_core::{AppId, DeveloperId, Slot, WebhookId, WorkspaceId};
use tokio::time::Instant;

use super::{Store, key_cache::Moment, keys, reads::parse};
use crate::{
    Result,
    bytes::with_prefix,
    domain::{
        ApiKey, App, Endpoint, GatewayName, GatewayPause, KeyHash, LogPart, Notices, PersonSession, Place, PlatformKey,
        Scope, StoredToken, Workspace,
    },
};

impl Store {
    /// The API key with this hash, revoked or not.
    pub async fn api_key(&self, hash: &KeyHash) -> Result<Option<Arc<ApiKey>>> {
        // Taken before the read, so that a key that changes meanwhile is read again.
        let now = Moment { commit: self.bytes.last_commit(), at: Instant::now() };
        if let Some(key) = self.keys.get(hash, now) {
            return Ok(Some(key));
        }
        let record = self.of(hash.slot).one(keys::api_key(hash)).await?;
        record.map(|record| self.keys.parse(hash, record, now)).transpose()
    }

    /// Every API key's record, oldest first within a workspace. For an operator, not for a request.
    pub async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>> {
        let mut found = Vec::new();
        for workspace in self.workspace_ids().await? {
            found.extend(self.api_keys_of(&workspace).await?);
        }
        Ok(found)
    }

    /// The API keys of one workspace, oldest first.
    pub async fn api_keys_of(&self, workspace: &WorkspaceId) -> Result<Vec<(KeyHash, ApiKey)>> {
        let reads = self.of(workspace.slot());
        let ids = reads.all_with(&keys::api_keys_of(workspace)).await?;
        let slot = workspace.slot();
        let hash = |digest: Vec<u8>| Some(KeyHash { slot, digest: digest.try_into().ok()? });
        let hashes: Vec<_> = ids.into_iter().filter_map(|(_, digest)| hash(digest)).collect();
        let records = reads.get(hashes.iter().map(keys::api_key).collect()).await?;
        let found = hashes.into_iter().zip(records);
        let found =
            found.filter_map(|(hash, record)| Some(parse(&keys::api_key(&hash), &record?).map(|it| (hash, it))));
        found.collect()
    }

    pub async fn workspace(&self, id: &str) -> Result<Option<Workspace>> {
        let Ok(id) = id.parse::<WorkspaceId>() else { return Ok(None) };
        self.of(id.slot()).json(keys::workspace(&id)).await
    }

    /// All workspaces, oldest first. For an operator, not for a request.
    pub async fn workspaces(&self) -> Result<Vec<Workspace>> {
        let mut found = Vec::new();
        for id in self.workspace_ids().await? {
            found.extend(self.of(id.slot()).json(keys::workspace(&id)).await?);
        }
        Ok(found)
    }

    pub async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>> {
        let reads = self.of(developer.slot());
        let Some(id) = reads.one(keys::workspace_of(developer)).await? else { return Ok(None) };
        let id = str::from_utf8(&id).ok().and_then(|id| id.parse::<WorkspaceId>().ok());
        match id {
            Some(id) => reads.json(keys::workspace(&id)).await,
            None => Ok(None),
        }
    }

    pub async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<App>> {
        self.of(developer.slot()).json(keys::app(developer, id)).await
    }

    /// A developer's apps, oldest first.
    pub async fn apps(&self, developer: &DeveloperId) -> Result<Vec<App>> {
        let found = self.of(developer.slot()).all_with(&keys::apps_of(developer)).await?;
        found.iter().map(|(key, value)| parse(key, value)).collect()
    }

    /// A part of the log of a scope's requests.
    pub async fn log_part(&self, scope: &Scope, place: Place) -> Result<Option<LogPart>> {
        self.of_scope(scope).json(keys::log_part(scope, place)).await
    }

    pub async fn gateway_token(&self, name: &str) -> Result<Option<StoredToken>> {
        self.of(Slot::FIRST).json(keys::gateway_token(name)).await
    }

    /// The last pause of a gateway.
    pub async fn gateway_pause(&self, gateway: GatewayName) -> Result<Option<GatewayPause>> {
        self.of(Slot::FIRST).json(keys::gateway_pause(gateway)).await
    }

    /// The platform key with a hash.
    pub async fn platform_key(&self, hash: &str) -> Result<Option<PlatformKey>> {
        self.of(Slot::FIRST).json(keys::platform_key(hash)).await
    }

    /// All platform keys, oldest first.
    pub async fn platform_keys(&self) -> Result<Vec<PlatformKey>> {
        let found = self.of(Slot::FIRST).all_with(&keys::platform_keys()).await?;
        let mut keys = found.iter().map(|(key, value)| parse(key, value)).collect::<Result<Vec<PlatformKey>>>()?;
        keys.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(keys)
    }

    /// The notices, if there was one.
    pub async fn notices(&self) -> Result<Option<Notices>> {
        self.of(Slot::FIRST).json(keys::notices()).await
    }

    /// The webhook endpoints that fail or that the server disabled, at most `at_most` of each cell.
    pub async fn troubled_endpoints(&self, at_most: usize) -> Result<Vec<Endpoint>> {
        let mut found = Vec::new();
        for reads in self.cells()? {
            let ids = reads.range(with_prefix(&keys::troubled_endpoints()), at_most).await?;
            let ids = ids.iter().filter_map(|(key, _)| keys::id_at_end(key));
            let keys = ids.map(|id| keys::endpoint(&id)).collect();
            found.extend(reads.records(keys, |key, record| parse(key, &record)).await?);
        }
        Ok(found)
    }

    /// The session whose token has this hash, ended or not.
    pub async fn person_session(&self, token_hash: &str) -> Result<Option<PersonSession>> {
        self.of(Slot::FIRST).json(keys::person_session(token_hash)).await
    }

    /// At most `at_most` sessions of people, in no order. Some of them may have ended.
    pub async fn person_sessions(&self, at_most: usize) -> Result<Vec<PersonSession>> {
        let found = self.of(Slot::FIRST).range(with_prefix(&keys::person_sessions()), at_most).await?;
        found.iter().map(|(key, value)| parse(key, value)).collect()
    }

    /// A webhook endpoint, in any scope.
    pub async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>> {
        self.of(id.slot()).json(keys::endpoint(id)).await
    }

    /// At most `at_most` webhook endpoints of a developer, oldest first, strictly after `after`.
    pub async fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>, at_most: usize) -> Result<Vec<Endpoint>> {
        let reads = self.of_scope(scope);
        let mut range = with_prefix(&keys::endpoints_of(scope));
        if let Some(after) = after {
            range.start = [&keys::endpoint_of(scope, after)[..], &[0]].concat();
        }
        let ids = reads.range(range, at_most).await?;
        let ids = ids.iter().filter_map(|(key, _)| keys::id_at_end(key));
        reads.records(ids.map(|id| keys::endpoint(&id)).collect(), |key, record| parse(key, &record)).await
    }

    /// The ids of all workspaces, in their order in each cell.
    async fn workspace_ids(&self) -> Result<Vec<WorkspaceId>> {
        let mut found = Vec::new();
        for reads in self.cells()? {
            found.extend(reads.all_with(&keys::workspaces()).await?.iter().filter_map(|(key, _)| keys::id_at_end(key)));
        }
        found.sort();
        Ok(found)
    }
}
