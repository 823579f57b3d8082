//! What the operator sees of the merchants: workspaces and developer apps.

use payments_core::{AppId, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminReply, Directory, Result, operator_text::invalid, retry_on_conflict};
use crate::{
    domain::{Brand, Workspace},
    gateway::registry,
    store::{Change, Write},
};

/// A row of `workspaces list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRow {
    pub id: WorkspaceId,
    pub developer_id: String,
    pub name: String,
    pub created_at: Timestamp,
}

/// A row of `apps list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppRow {
    pub id: AppId,
    pub workspace: WorkspaceId,
    pub name: String,
    pub redirect_uris: Vec<String>,
    pub webhook_url: Option<String>,
    pub created_at: Timestamp,
    #[serde(flatten)]
    pub brand: Brand,
}

impl Directory {
    /// All workspaces, oldest first.
    pub(super) async fn list_workspaces(&self) -> Result<Vec<WorkspaceRow>> {
        let rows = self.store.workspaces().await?.into_iter().map(|workspace| WorkspaceRow {
            id: workspace.id,
            developer_id: workspace.developer_id.to_string(),
            name: workspace.name,
            created_at: workspace.created_at,
        });
        Ok(rows.collect())
    }

    /// The developer apps of all workspaces, oldest first within a workspace.
    pub(super) async fn list_apps(&self) -> Result<Vec<AppRow>> {
        let mut rows = Vec::new();
        for workspace in self.store.workspaces().await? {
            let apps = self.store.apps(&workspace.developer_id).await?;
            rows.extend(apps.into_iter().map(|app| AppRow {
                id: app.app.id,
                workspace: workspace.id.clone(),
                name: app.app.name,
                redirect_uris: app.app.redirect_uris,
                webhook_url: app.app.webhook_url,
                created_at: app.app.created_at,
                brand: app.brand,
            }));
        }
        Ok(rows)
    }

    /// Sets the ways to pay that a workspace's customers see, in this order.
    pub(super) async fn set_ways(&self, workspace: &str, ways: Vec<String>) -> Result<AdminReply> {
        let is_known = |way: &String| registry().any(|it| it.ways.iter().any(|known| known.name == way));
        if let Some(unknown) = ways.iter().find(|way| !is_known(way)) {
            return Err(invalid(format!("no way to pay has the name {unknown}")));
        }
        retry_on_conflict(|| async {
            let mut workspace = self.named_workspace(workspace).await?;
            workspace.version += 1;
            workspace.ways.clone_from(&ways);
            self.commit(Change::of(Write::Workspace(workspace))).await?;
            Ok(AdminReply::Ways { ways: ways.clone() })
        })
        .await
    }

    /// The id of a workspace that is named by its id or its name.
    pub async fn workspace_id(&self, text: &str) -> Result<WorkspaceId> {
        Ok(self.named_workspace(text).await?.id)
    }

    /// A workspace that the operator names by its id, or by its name if no other has it.
    pub(super) async fn named_workspace(&self, text: &str) -> Result<Workspace> {
        if let Some(workspace) = self.store.workspace(text).await? {
            return Ok(workspace);
        }
        let mut named = self.store.workspaces().await?;
        named.retain(|workspace| workspace.name == text.trim());
        match named.len() {
            0 => Err(invalid("no workspace has this id or name; `payments-server workspaces list` shows them")),
            1 => Ok(named.remove(0)),
            _ => {
                let ids: Vec<_> = named.iter().map(|workspace| workspace.id.as_str()).collect();
                Err(invalid(format!("{} workspaces have this name; give the id: {}", ids.len(), ids.join(", "))))
            }
        }
    }
}
