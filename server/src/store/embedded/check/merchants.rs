//! Workspaces, API keys, apps and endpoints: each record and its index agree.

use super::{super::keys, Check, part};
use crate::{
    domain::{ApiKey, App, Endpoint, Workspace, endpoint_faults, owner_of},
    store::StoreError,
};

impl Check<'_> {
    /// Whether a record and its other half name each other. An unreadable record is reported by itself.
    pub(super) fn agrees(&mut self, kind: &[u8], key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        Ok(match kind {
            b"workspace" => {
                let Some(Workspace { id, developer_id, .. }) = self.parse(key, value) else { return Ok(true) };
                let index: Option<String> = self.other(&keys::workspace_of(&developer_id))?;
                key == keys::workspace(id.as_str()) && index.as_deref() == Some(id.as_str())
            }
            b"workspace-of" => {
                let Some(id) = self.parse::<String>(key, value) else { return Ok(true) };
                let workspace: Option<Workspace> = self.other(&keys::workspace(&id))?;
                workspace.is_some_and(|workspace| key == keys::workspace_of(&workspace.developer_id))
            }
            b"key" => {
                let Some(ApiKey { id, workspace_id, scope, .. }) = self.parse(key, value) else { return Ok(true) };
                let workspace: Option<Workspace> = self.other(&keys::workspace(workspace_id.as_str()))?;
                self.get(&keys::api_key_id(&workspace_id, &id))?.as_deref() == key.strip_prefix(b"key/")
                    && workspace.is_some_and(|workspace| workspace.developer_id == owner_of(&scope.developer_id))
            }
            b"key-of" => {
                let api_key: Option<ApiKey> = self.other(&[b"key/", value].concat())?;
                api_key.is_some_and(|found| key == keys::api_key_id(&found.workspace_id, &found.id))
            }
            b"app" => {
                let Some(App { app, .. }) = self.parse(key, value) else { return Ok(true) };
                let has_owner = self.get(&keys::workspace_of(&app.developer_id))?.is_some();
                has_owner && key == keys::app(&app.developer_id, &app.id)
            }
            b"endpoint" => {
                let Some(found) = self.parse::<Endpoint>(key, value) else { return Ok(true) };
                endpoint_faults(&found).into_iter().for_each(|fault| self.find(key, fault));
                let id = &found.endpoint.id;
                key == keys::endpoint(id) && self.get(&keys::endpoint_of(&found.scope(), id))?.is_some()
            }
            _ => {
                let endpoint: Option<Endpoint> = self.named(part(key, 3), keys::endpoint)?;
                endpoint.is_some_and(|found| key == keys::endpoint_of(&found.scope(), &found.endpoint.id))
            }
        })
    }
}
