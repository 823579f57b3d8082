//! The operator's commands.

use std::{collections::HashSet, path::PathBuf};

use payments_core::{Day, Environment, Slot, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminReply, Directory, KeyRow, Record, Result, Service, ServiceError,
    audit::AuditFilter,
    books::BooksRequest,
    customers::CustomerRequest,
    disputes::DisputeRequest,
    gateway_pauses::GatewayRequest,
    keys::KeyLimits,
    manual_settlement::ManualOutcome,
    open_notices::NoticeRequest,
    operator_text::{MAX_NAME_BYTES, checked, invalid, named},
    payout_admin::{PayoutRequest, with_key},
    platform_keys::PlatformKeyRequest,
    retry_on_conflict,
    sessions::SessionRequest,
    settlements::{SettlementRequest, with_setting},
    workspace_limits::LimitsRequest,
};
use crate::{
    domain::{ApiKey, Brand, Colour, Edit, KeyHash, LogoUrl, ManualSettlement, Permission, unused_slug},
    gateway::Gateways,
    store::{Change, Write},
};

/// Maximum length of a settlement's reference or a review's note.
const MAX_TEXT_BYTES: usize = 500;

/// A command from the command line. Records are named by their ids, workspaces also by their names.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum AdminRequest {
    /// Creates a workspace for a merchant. The checkout page shows its name.
    CreateWorkspace { name: String },
    /// Sets the ways to pay that a workspace's customers see.
    SetWays { workspace: String, ways: Vec<String> },
    /// Sets and shows the limits of a workspace.
    Limits(LimitsRequest),
    /// Creates an API key for a workspace. An app binds the key to it; no scopes permit everything.
    CreateKey {
        workspace: String,
        #[serde(deserialize_with = "Environment::deserialize_closed")]
        environment: Environment,
        app: Option<String>,
        #[serde(default)]
        only_its_app: bool,
        name: Option<String>,
        #[serde(default)]
        scopes: Vec<Permission>,
        expires_at: Option<Timestamp>,
    },
    /// Lists all workspaces.
    ListWorkspaces,
    /// Lists the developer apps of all workspaces.
    ListApps,
    /// Lists the API keys of all workspaces.
    ListKeys,
    /// Revokes an API key, by its id or by the key itself.
    RevokeKey { id: String },
    /// Replaces an API key: one commit creates a new one and ends the old one, at once or after an overlap.
    RotateKey {
        id: String,
        #[serde(default)]
        overlap_seconds: u32,
    },
    /// Lists the refunds that need manual settlement, the oldest first. They are due after so many days, by default as the server
    /// is set.
    ListRefunds {
        #[serde(default)]
        due_days: Option<u16>,
    },
    /// Records the manual settlement of a refund, with the reference of the transfer.
    SettleRefund { refund: String, reference: String },
    /// Lists and records disputes.
    Disputes(DisputeRequest),
    /// Imports and lists settlements.
    Settlements(SettlementRequest),
    /// Approves, sends and lists payouts.
    Payouts(PayoutRequest),
    /// Exports and erases what is held on a customer.
    Customers(CustomerRequest),
    /// Records a change of the platform's own accounts.
    Books(BooksRequest),
    /// What covers the merchants' money, now or when a day had ended in Dhaka.
    Coverage { day: Option<Day> },
    /// Sends a delivery's event to its endpoint once more.
    ResendDelivery { delivery: String },
    /// Resends the deliveries to an endpoint that failed within a time range.
    RecoverWebhook { webhook: String, since: Timestamp, until: Option<Timestamp> },
    /// Lists the payments that need manual review.
    ListReviews,
    /// Records how a person resolved a discrepancy, and why. An open payment needs an outcome.
    ResolveReview {
        payment: String,
        note: String,
        outcome: Option<ManualOutcome>,
        /// The gateway's id of the transaction that paid it.
        #[serde(default)]
        transaction: Option<String>,
    },
    /// Backs up the store to a directory of the server's machine, by its absolute path.
    BackUp { directory: PathBuf },
    /// Creates a developer app for a workspace. Customers may return to its redirect URIs.
    CreateApp {
        workspace: String,
        name: String,
        redirect_uris: Vec<String>,
        webhook_url: Option<String>,
        #[serde(default)]
        brand: Brand,
    },
    /// Lists notices.
    Notices(NoticeRequest),
    /// Lists and pauses gateways, and fetches a token.
    Gateways(GatewayRequest),
    /// Creates, lists and revokes platform keys.
    PlatformKeys(PlatformKeyRequest),
    /// Lists entries of the audit log.
    Audit(AuditFilter),
    /// Lists and revokes people's sessions.
    Sessions(SessionRequest),
    /// Changes how a developer app looks on the checkout page.
    UpdateApp { id: String, logo_url: Option<Edit<LogoUrl>>, colour: Option<Edit<Colour>> },
}

impl AdminRequest {
    /// Whether the reply contains a key, which cannot be shown again.
    pub fn shows_key(&self) -> bool {
        let is_platforms = matches!(self, Self::PlatformKeys(PlatformKeyRequest::Create { .. }));
        is_platforms || matches!(self, Self::CreateKey { .. } | Self::RotateKey { .. })
    }
}

impl Service {
    /// Runs a command from the command line on a running server.
    pub async fn administer(&self, request: AdminRequest) -> AdminReply {
        let request = with_setting(request, self.settings.merchants_bear_costs);
        let mut request = with_key(request, self.settings.payouts.seal_key.as_ref());
        if let AdminRequest::ListRefunds { due_days } = &mut request {
            due_days.get_or_insert(self.settings.retention.manual_refund_days);
        }
        let reply = self.directory.administer(&self.gateways, request).await;
        self.fan_out.notify();
        reply
    }
}

impl Directory {
    /// Runs a command from the command line. These are the gateways that it may ask about payments.
    pub async fn administer(&self, gateways: &Gateways, request: AdminRequest) -> AdminReply {
        self.run(gateways, request).await.unwrap_or_else(AdminReply::from)
    }

    async fn run(&self, gateways: &Gateways, request: AdminRequest) -> Result<AdminReply> {
        Ok(match request {
            AdminRequest::CreateWorkspace { name } => self.create_workspace(&name).await?,
            AdminRequest::SetWays { workspace, ways } => self.set_ways(&workspace, ways).await?,
            AdminRequest::Limits(request) => AdminReply::Limits { limits: self.limits(request).await?.into() },
            AdminRequest::CreateKey { workspace, environment, app, only_its_app, name, scopes, expires_at } => {
                let name = name.as_deref().map(|name| named("name", name).map(str::to_owned)).transpose()?;
                let permissions = (!scopes.is_empty()).then_some(scopes);
                let permissions = if only_its_app { Some(of_an_app(permissions)?) } else { permissions };
                let limits = KeyLimits { name, permissions, expires_at, app_id: None, only_its_app };
                self.create_key(&workspace, environment, app, limits).await?
            }
            AdminRequest::ListWorkspaces => AdminReply::Workspaces { workspaces: self.list_workspaces().await? },
            AdminRequest::ListApps => AdminReply::Apps { apps: self.list_apps().await? },
            AdminRequest::ListKeys => self.list_keys().await?,
            AdminRequest::RevokeKey { id } => self.revoke_key(&id).await?,
            AdminRequest::RotateKey { id, overlap_seconds } => self.rotate_key(&id, overlap_seconds).await?,
            AdminRequest::ListRefunds { due_days } => {
                AdminReply::Refunds { refunds: self.list_refunds(due_days).await? }
            }
            AdminRequest::SettleRefund { refund, reference } => {
                let reference = checked("reference", &reference, MAX_TEXT_BYTES)?;
                let (payment, settled) = self.settle_refund(&refund, reference).await?;
                let ManualSettlement { refund, reference, settled_at } = settled;
                AdminReply::Settled { payment, refund, reference, settled_at }
            }
            AdminRequest::Disputes(request) => self.dispute(request).await?,
            AdminRequest::Settlements(request) => self.settlements(gateways, request).await?,
            AdminRequest::Payouts(request) => self.payouts(request).await?,
            AdminRequest::Customers(request) => AdminReply::Customers { customers: self.customers(request).await? },
            AdminRequest::Books(request) => AdminReply::Booked { booked: self.record_in_books(request).await? },
            AdminRequest::Coverage { day } => AdminReply::Coverage { coverage: self.coverage(day).await? },
            AdminRequest::ResendDelivery { delivery } => {
                let again = self.resend_any_delivery(&delivery).await?;
                AdminReply::Resent { resent: delivery, delivery: again }
            }
            AdminRequest::RecoverWebhook { webhook, since, until } => {
                AdminReply::Recovered { recovered: self.recover_any_webhook(&webhook, since, until).await? }
            }
            AdminRequest::ListReviews => AdminReply::Reviews { reviews: self.list_reviews().await? },
            AdminRequest::ResolveReview { payment, note, outcome, transaction } => {
                let note = checked("note", &note, MAX_TEXT_BYTES)?;
                let transaction =
                    transaction.as_deref().map(|it| checked("transaction", it, MAX_NAME_BYTES)).transpose()?;
                let raw_status = self.resolve_review(gateways, &payment, note, outcome, transaction).await?;
                AdminReply::Resolved { resolved: payment, raw_status }
            }
            AdminRequest::BackUp { directory } => {
                let backups = self.store.backups().ok_or_else(|| {
                    invalid(
                        "this command copies a directory; back up a database with its own tools, such as pg_basebackup",
                    )
                })?;
                AdminReply::BackedUp(backups.back_up(directory).await.map_err(|error| invalid(error.to_string()))?)
            }
            AdminRequest::CreateApp { workspace, name, redirect_uris, webhook_url, brand } => {
                self.create_app(&workspace, &name, redirect_uris, webhook_url, brand).await?
            }
            AdminRequest::Notices(request) => AdminReply::Notices { notices: self.notices(request).await? },
            AdminRequest::Gateways(request) => {
                AdminReply::Gateways { gateways: self.of_gateways(gateways, request).await? }
            }
            AdminRequest::PlatformKeys(request) => {
                AdminReply::PlatformKeys { platform_keys: self.platform_keys(request).await? }
            }
            AdminRequest::Audit(filter) => self.audit(filter).await?,
            AdminRequest::Sessions(request) => AdminReply::Sessions { sessions: self.sessions(request).await? },
            AdminRequest::UpdateApp { id, logo_url, colour } => self.update_app(&id, logo_url, colour).await?,
        })
    }

    async fn create_workspace(&self, name: &str) -> Result<AdminReply> {
        let name = named("name", name)?;
        let taken: HashSet<String> = self.store.workspaces().await?.into_iter().map(|known| known.slug).collect();
        let slot = Slot::of_random(self.ambient.random());
        let workspace = self.new_workspace(slot, name, &unused_slug(name, &taken));
        let (id, developer_id) = (workspace.id.to_string(), workspace.developer_id.to_string());
        self.commit(Change::of(Write::Workspace(workspace))).await?;
        Ok(AdminReply::Workspace { id, developer_id, name: name.to_owned() })
    }

    async fn list_keys(&self) -> Result<AdminReply> {
        let keys = self.store.api_keys().await?.into_iter().map(|(_, key)| KeyRow {
            id: key.id.to_string(),
            workspace: key.workspace_id.to_string(),
            environment: key.scope.environment,
            last4: key.last4,
            created_at: key.created_at,
            revoked_at: key.revoked_at,
            app: key.app_id,
            only_its_app: key.only_its_app,
            name: key.name,
            scopes: key.permissions,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            replaced_by: key.replaced_by,
        });
        Ok(AdminReply::Keys { keys: keys.collect() })
    }

    async fn revoke_key(&self, id: &str) -> Result<AdminReply> {
        retry_on_conflict(|| async {
            let (hash, mut key) = self.api_key(id).await?;
            let revoked_at = key.revoked_at.unwrap_or_else(|| self.ambient.now());
            let key_id = key.id.to_string();
            // Revoking a key again does not change the time.
            if key.revoked_at.replace(revoked_at).is_none() {
                key.version += 1;
                self.commit(Change::of(Write::ApiKey(hash, Box::new(key)))).await?;
            }
            Ok(AdminReply::Revoked { id: key_id, revoked_at })
        })
        .await
    }

    async fn rotate_key(&self, id: &str, overlap_seconds: u32) -> Result<AdminReply> {
        retry_on_conflict(|| async {
            let (hash, mut old) = self.api_key(id).await?;
            if old.revoked_at.is_some() {
                return Err(invalid("this key is already revoked; create a new one with keys create"));
            }
            if let (Some(by), Some(end)) = (&old.replaced_by, old.expires_at) {
                let works = format!("{by} has replaced this key, which works until {end}");
                return Err(invalid(format!(
                    "{works}; keys revoke ends it now, and keys rotate {by} replaces the new one"
                )));
            }
            let workspace = self.workspace(old.workspace_id.as_str()).await?;
            let key = self.new_key_text(workspace.developer_id.slot(), old.scope.environment);
            let ApiKey { name, app_id, only_its_app, permissions, expires_at, .. } = old.clone();
            let limits = KeyLimits { name, app_id, only_its_app, permissions, expires_at };
            let (new_hash, new) = self.new_api_key(&workspace, old.scope.environment, limits, &key);
            old.replace(new.id.clone(), overlap_seconds, self.ambient.now());
            let writes = vec![Write::ApiKey(new_hash, new), Write::ApiKey(hash, Box::new(old))];
            self.commit(Change { writes, ..Change::default() }).await?;
            Ok(AdminReply::Key { key })
        })
        .await
    }

    /// Finds a key by its id or by its text.
    async fn api_key(&self, id: &str) -> Result<(KeyHash, ApiKey)> {
        let (keys, itself) = (self.store.api_keys().await?, KeyHash::of(id));
        let key = keys.into_iter().find(|(hash, key)| key.id.as_str() == id || *hash == itself);
        key.ok_or(ServiceError::NotFound { what: Record::ApiKey })
    }
}

/// Checks the permissions of a key that sees only one app's payments. Other permissions concern the whole workspace.
fn of_an_app(granted: Option<Vec<Permission>>) -> Result<Vec<Permission>> {
    let granted = granted.unwrap_or_else(|| Permission::OF_AN_APP.to_vec());
    match granted.iter().find(|permission| !Permission::OF_AN_APP.contains(permission)) {
        None => Ok(granted),
        Some(other) => {
            let known = Permission::OF_AN_APP.map(Permission::as_str).join(", ");
            Err(invalid(format!("{other} is about the whole workspace; a key for one app alone may have {known}")))
        }
    }
}
