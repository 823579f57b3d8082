//! Workspaces, API keys, apps and endpoints: each record and its index agree.

use super::{super::keys, Check};
use crate::{
    domain::{ApiKey, App, Endpoint, KeyHash, Workspace},
    store::StoreError,
};

impl Check<'_> {
    pub(super) fn of_a_merchant(&mut self, kind: &[u8], key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let holds = match kind {
            b"workspace" => {
                let Some(workspace) = self.parse::<Workspace>(key, value) else { return Ok(()) };
                let id = workspace.id.to_string();
                key == keys::workspace(&id)
                    && self.other::<String>(&keys::workspace_of(&workspace.developer_id))? == Some(id)
            }
            b"workspace-of" => {
                let Some(id) = self.parse::<String>(key, value) else { return Ok(()) };
                let workspace = self.other::<Workspace>(&keys::workspace(&id))?;
                workspace.is_some_and(|workspace| key == keys::workspace_of(&workspace.developer_id))
            }
            b"key" => {
                let Some(api_key) = self.parse::<ApiKey>(key, value) else { return Ok(()) };
                let hash = key.get(b"key/".len()..).unwrap_or_default();
                self.holds(&keys::api_key_id(&api_key.workspace_id, &api_key.id), hash)?
                    && self
                        .other::<Workspace>(&keys::workspace(api_key.workspace_id.as_str()))?
                        .is_some_and(|workspace| workspace.developer_id == api_key.scope.developer_id)
            }
            b"key-of" => {
                let hash = <[u8; 32]>::try_from(value).ok().map(KeyHash::from_bytes);
                let api_key = hash.map(|hash| self.other::<ApiKey>(&keys::api_key(&hash))).transpose()?.flatten();
                api_key.is_some_and(|found| key == keys::api_key_id(&found.workspace_id, &found.id))
            }
            _ => {
                let Some(app) = self.parse::<App>(key, value) else { return Ok(()) };
                let app = app.app;
                key == keys::app(&app.developer_id, &app.id) && self.is_there(&keys::workspace_of(&app.developer_id))?
            }
        };
        self.expect(holds, key, "and its other half do not agree");
        Ok(())
    }

    pub(super) fn endpoint(&mut self, kind: &[u8], key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let holds = if kind == b"endpoint" {
            let Some(endpoint) = self.parse::<Endpoint>(key, value) else { return Ok(()) };
            key == keys::endpoint(&endpoint.endpoint.id)
                && self.is_there(&keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id))?
        } else {
            let id = Self::parts(key).get(2).and_then(|id| id.parse().ok());
            let endpoint = id.map(|id| self.other::<Endpoint>(&keys::endpoint(&id))).transpose()?.flatten();
            endpoint.is_some_and(|found| key == keys::endpoint_of(&found.scope(), &found.endpoint.id))
        };
        self.expect(holds, key, "and its other half do not agree");
        Ok(())
    }
}
