//! The operator's commands.

use std::path::PathBuf;

use payments_core::{AppId, DeveloperApp, Environment, Invalid, PaymentId, Timestamp, aliased::UnknownFields};
use serde::{Deserialize, Serialize};

use super::{
    Refused, Service,
    account::NO_APP,
    manual_settlement::{Ending, RefundRow, ReviewRow},
    retry_on_conflict,
};
use crate::domain::{ApiKey, App, KeyHash, Workspace};
use crate::store::{BackedUp, Change, Write};

/// A command from the command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub(crate) enum AdminRequest {
    /// Creates a workspace for a merchant.
    CreateWorkspace {
        /// The merchant's name, which the checkout page shows.
        name: String,
    },
    /// Creates an API key for a workspace.
    CreateKey {
        /// The workspace's id.
        workspace: String,
        /// The key's environment.
        environment: Environment,
        /// The id of the developer app to bind the key to.
        #[serde(default)]
        app: Option<String>,
    },
    /// Lists the API keys of all workspaces.
    ListKeys,
    /// Revokes an API key.
    RevokeKey {
        /// The key's id.
        id: String,
    },
    /// Replaces an API key: creates a new one and revokes the old one, in one commit.
    RotateKey {
        /// The old key's id.
        id: String,
    },
    /// Lists the refunds that need manual settlement.
    ListRefunds,
    /// Records the manual settlement of a refund.
    SettleRefund {
        /// The payment's id.
        payment: String,
        /// The reference of the transfer.
        reference: String,
    },
    /// Lists the payments that need manual review.
    ListReviews,
    /// Records how a person resolved a discrepancy.
    ResolveReview {
        /// The payment's id.
        payment: String,
        /// The reason.
        note: String,
        /// The payment's outcome. An open payment needs one.
        ending: Option<Ending>,
    },
    /// Backs up the store to a directory of the server's machine.
    BackUp {
        /// The directory's absolute path.
        directory: PathBuf,
    },
    /// Creates a developer app for a workspace.
    CreateApp {
        /// The workspace's id.
        workspace: String,
        /// The app's name.
        name: String,
        /// The URLs that customers may return to.
        redirect_uris: Vec<String>,
        /// The app's webhook URL.
        webhook_url: Option<String>,
    },
}

/// The reply to an [`AdminRequest`].
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum AdminReply {
    /// The created workspace.
    #[serde(rename_all = "camelCase")]
    Workspace {
        /// The id, for `keys create`.
        id: String,
        /// The developer its records belong to.
        developer_id: String,
        /// Its name.
        name: String,
    },
    /// The created key. The server shows it once and does not store it.
    Key {
        /// The key.
        key: String,
    },
    /// The API keys.
    Keys {
        /// Their records.
        keys: Vec<KeyRow>,
    },
    /// The revoked key.
    #[serde(rename_all = "camelCase")]
    Revoked {
        /// Its id.
        id: String,
        /// When it was revoked.
        revoked_at: Timestamp,
    },
    /// The refunds that need manual settlement.
    Refunds {
        /// One row each.
        refunds: Vec<RefundRow>,
    },
    /// The refund that a person settled.
    #[serde(rename_all = "camelCase")]
    Settled {
        /// Its payment.
        payment: PaymentId,
        /// The reference of the transfer.
        reference: String,
        /// When the settlement was recorded.
        settled_at: Timestamp,
    },
    /// The payments that need manual review.
    Reviews {
        /// One row each.
        reviews: Vec<ReviewRow>,
    },
    /// The payment whose discrepancy was resolved.
    #[serde(rename_all = "camelCase")]
    Resolved {
        /// The payment's id.
        resolved: PaymentId,
        /// Its internal status now.
        raw_status: String,
    },
    /// The backup.
    BackedUp(BackedUp),
    /// The created app.
    #[serde(rename_all = "camelCase")]
    App {
        /// Its id.
        app_id: String,
        /// Its name.
        app_name: String,
    },
    /// The command failed.
    Error {
        /// Why, and what to do.
        error: String,
    },
}

/// A row of `keys list`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) workspace: String,
    pub(crate) environment: Environment,
    pub(crate) last4: String,
    pub(crate) created_at: Timestamp,
    pub(crate) revoked_at: Option<Timestamp>,
    /// The developer app that the key is bound to.
    #[serde(default)]
    pub(crate) app: Option<AppId>,
}

impl Service {
    /// Runs a command from the command line.
    pub(crate) async fn administer(&self, request: AdminRequest) -> AdminReply {
        let outcome = match request {
            AdminRequest::CreateWorkspace { name } => self.create_workspace(name.trim()).await,
            AdminRequest::CreateKey { workspace, environment, app } => {
                self.create_key(&workspace, environment, app.as_deref()).await
            }
            AdminRequest::ListKeys => self.list_keys().await,
            AdminRequest::RevokeKey { id } => self.revoke_key(&id).await,
            AdminRequest::RotateKey { id } => self.rotate_key(&id).await,
            AdminRequest::ListRefunds => self.list_refunds().await,
            AdminRequest::SettleRefund { payment, reference } => self.settle_refund(&payment, reference.trim()).await,
            AdminRequest::ListReviews => self.list_reviews().await,
            AdminRequest::ResolveReview { payment, note, ending } => {
                self.resolve_review(&payment, note.trim(), ending).await
            }
            AdminRequest::BackUp { directory } => {
                let Some(maintenance) = self.store.maintenance() else {
                    return AdminReply::Error { error: "this store does not support backups".into() };
                };
                // The store's own error says what to do about the directory.
                return match maintenance.back_up(directory).await {
                    Ok(made) => AdminReply::BackedUp(made),
                    Err(error) => AdminReply::Error { error: error.to_string() },
                };
            }
            AdminRequest::CreateApp { workspace, name, redirect_uris, webhook_url } => {
                self.create_app(&workspace, name.trim(), redirect_uris, webhook_url).await
            }
        };
        outcome.unwrap_or_else(|refused| AdminReply::Error { error: refused.to_string() })
    }

    async fn create_workspace(&self, name: &str) -> Result<AdminReply, Refused> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Invalid::new("the name must be 1 to 200 bytes long").into());
        }
        let workspace = self.new_workspace(name, &slug(name));
        let reply = AdminReply::Workspace {
            id: workspace.id.to_string(),
            developer_id: workspace.developer_id.to_string(),
            name: workspace.name.clone(),
        };
        self.commit(Change::of(Write::Workspace(workspace))).await?;
        Ok(reply)
    }

    async fn create_key(
        &self,
        workspace: &str,
        environment: Environment,
        app: Option<&str>,
    ) -> Result<AdminReply, Refused> {
        let workspace = self.workspace(workspace).await?;
        let app = match app {
            Some(id) => Some(self.own_app(&workspace.developer_id, &id.parse().map_err(|_| NO_APP)?).await?.id),
            None => None,
        };
        let key = self.new_key_text(environment);
        self.commit(Change::of(self.new_api_key(&workspace, environment, app, &key))).await?;
        Ok(AdminReply::Key { key })
    }

    async fn list_keys(&self) -> Result<AdminReply, Refused> {
        let keys = self.store.api_keys().await?.into_iter().map(|(_, key)| KeyRow {
            id: key.id.to_string(),
            workspace: key.workspace_id.to_string(),
            environment: key.scope.environment,
            last4: key.last4,
            created_at: key.created_at,
            revoked_at: key.revoked_at,
            app: key.app_id,
        });
        Ok(AdminReply::Keys { keys: keys.collect() })
    }

    async fn revoke_key(&self, id: &str) -> Result<AdminReply, Refused> {
        retry_on_conflict(|| async {
            let (hash, mut key) = self.api_key(id).await?;
            // Revoking a key again keeps the first time.
            let revoked_at = match key.revoked_at {
                Some(revoked_at) => revoked_at,
                None => {
                    let now = self.ambient.now();
                    (key.version, key.revoked_at) = (key.version + 1, Some(now));
                    self.commit(Change::of(Write::ApiKey(hash, key))).await?;
                    now
                }
            };
            Ok(AdminReply::Revoked { id: id.to_owned(), revoked_at })
        })
        .await
    }

    async fn rotate_key(&self, id: &str) -> Result<AdminReply, Refused> {
        retry_on_conflict(|| async {
            let (hash, mut old) = self.api_key(id).await?;
            if old.revoked_at.is_some() {
                return Err(Invalid::new("this key is already revoked; create a new one with keys create").into());
            }
            let workspace = self.workspace(old.workspace_id.as_str()).await?;
            let key = self.new_key_text(old.scope.environment);
            let new = self.new_api_key(&workspace, old.scope.environment, old.app_id.clone(), &key);
            (old.version, old.revoked_at) = (old.version + 1, Some(self.ambient.now()));
            let writes = vec![new, Write::ApiKey(hash, old)];
            self.commit(Change { writes, ..Change::default() }).await?;
            Ok(AdminReply::Key { key })
        })
        .await
    }

    async fn create_app(
        &self,
        workspace: &str,
        name: &str,
        redirect_uris: Vec<String>,
        webhook_url: Option<String>,
    ) -> Result<AdminReply, Refused> {
        let workspace = self.workspace(workspace).await?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Invalid::new("the name must be 1 to 200 bytes long").into());
        }
        for url in redirect_uris.iter().chain(&webhook_url) {
            url::Url::parse(url).map_err(|_| Invalid::new(format!("{url} is not an absolute URL")))?;
        }
        let now = self.ambient.now();
        let app = DeveloperApp {
            id: AppId::new(now, self.ambient.id_bytes()),
            developer_id: workspace.developer_id,
            name: name.into(),
            description: None,
            redirect_uris,
            webhook_url,
            status: "active".into(),
            is_active: true,
            created_at: now,
            updated_at: now,
            unknown: UnknownFields::default(),
        };
        let reply = AdminReply::App { app_id: app.id.to_string(), app_name: app.name.clone() };
        self.commit(Change::of(Write::App(Box::new(App { version: 0, app })))).await?;
        Ok(reply)
    }

    async fn workspace(&self, id: &str) -> Result<Workspace, Refused> {
        self.store.workspace(id).await?.ok_or(Refused::NotFound { what: "workspace" })
    }

    async fn api_key(&self, id: &str) -> Result<(KeyHash, ApiKey), Refused> {
        let keys = self.store.api_keys().await?;
        let key = keys.into_iter().find(|(_, key)| key.id.as_str() == id);
        key.ok_or(Refused::NotFound { what: "API key" })
    }
}

const MAX_NAME_BYTES: usize = 200;

/// Turns a name into a URL slug: lower-case ASCII letters and digits, joined by hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "workspace".into() } else { slug }
}
