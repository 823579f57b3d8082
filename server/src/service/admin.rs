//! What an operator does from the command line.

use payments_core::Environment;
use serde::{Deserialize, Serialize};

use super::{Refused, Service};
use crate::store::{Change, Write};

/// What the command line asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub(crate) enum AdminRequest {
    /// Makes a workspace for a merchant.
    CreateWorkspace {
        /// What its customers read on the checkout page.
        name: String,
    },
    /// Makes an API key for a workspace.
    CreateKey {
        /// The workspace's id.
        workspace: String,
        /// Which of its two worlds the key opens.
        environment: Environment,
    },
}

/// What it gets.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum AdminReply {
    /// A workspace was made.
    #[serde(rename_all = "camelCase")]
    Workspace {
        /// Its id, for `keys create`.
        id: String,
        /// The developer its records belong to.
        developer_id: String,
        /// Its name.
        name: String,
    },
    /// A key was made. It is shown this once and kept nowhere.
    Key {
        /// The key itself.
        key: String,
    },
    /// It was not done.
    Error {
        /// Why, and what to do.
        error: String,
    },
}

impl Service {
    /// Does what the command line asks for.
    pub(crate) async fn administer(&self, request: AdminRequest) -> AdminReply {
        let outcome = match request {
            AdminRequest::CreateWorkspace { name } => self.create_workspace(name.trim()).await,
            AdminRequest::CreateKey { workspace, environment } => self.create_key(&workspace, environment).await,
        };
        outcome.unwrap_or_else(|refused| AdminReply::Error { error: refused.to_string() })
    }

    async fn create_workspace(&self, name: &str) -> Result<AdminReply, Refused> {
        if name.is_empty() || name.len() > 200 {
            return Err(payments_core::Invalid::new("the name must be 1 to 200 bytes long").into());
        }
        let workspace = self.new_workspace(name, &slug(name));
        let reply = AdminReply::Workspace {
            id: workspace.id.to_string(),
            developer_id: workspace.developer_id.to_string(),
            name: workspace.name.clone(),
        };
        self.store.commit(Change::of(Write::Workspace(workspace))).await?;
        Ok(reply)
    }

    async fn create_key(&self, workspace: &str, environment: Environment) -> Result<AdminReply, Refused> {
        let found = self.store.workspace(workspace).await?;
        let workspace = found.ok_or(Refused::NotFound { what: "workspace" })?;
        let key = self.new_key_text(environment);
        self.store.commit(Change::of(self.new_api_key(&workspace, environment, &key))).await?;
        Ok(AdminReply::Key { key })
    }
}

/// A name as it can stand in an address: ASCII letters and digits in lower case, joined by hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "workspace".into() } else { slug }
}
