//! The answers to the operator's commands.

use payments_core::{
    AppId, AuditEntry, AuditId, DeliveryId, Environment, ErrorCode, KeyId, PaymentId, RawStatus, RefundId, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ServiceError,
    books::BooksRow,
    coverage::CoverageReply,
    customers::CustomerReply,
    disputes::DisputeRow,
    gateway_pauses::GatewayReply,
    manual_settlement::{RefundRow, ReviewRow},
    merchants::{AppRow, WorkspaceRow},
    open_notices::NoticeRow,
    payout_admin::PayoutReply,
    platform_keys::PlatformKeyReply,
    sessions::SessionReply,
    settlements::SettlementReply,
    workspace_limits::LimitsRow,
};
use crate::{
    domain::{Brand, Permission},
    store::BackedUp,
};

/// The reply to an [`AdminRequest`](super::AdminRequest).
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum AdminReply {
    /// The created workspace.
    Workspace { id: String, developer_id: String, name: String },
    /// The created key. The server shows it once and does not store it.
    Key { key: String },
    /// All workspaces.
    Workspaces { workspaces: Vec<WorkspaceRow> },
    /// The ways to pay that a workspace chose; none for all.
    Ways { ways: Vec<String> },
    /// The limits of a workspace.
    Limits { limits: LimitsRow },
    /// The developer apps.
    Apps { apps: Vec<AppRow> },
    /// The API keys.
    Keys { keys: Vec<KeyRow> },
    /// The revoked key.
    Revoked { id: String, revoked_at: Timestamp },
    /// The refunds that need manual settlement.
    Refunds { refunds: Vec<RefundRow> },
    /// The payment whose refund a person settled.
    Settled { payment: PaymentId, refund: RefundId, reference: String, settled_at: Timestamp },
    /// The disputes that are not decided.
    Disputes { disputes: Vec<DisputeRow> },
    /// The dispute after a command.
    Dispute { dispute: Box<DisputeRow> },
    /// Settlements.
    Settlements { settlements: SettlementReply },
    /// Payouts.
    Payouts { payouts: PayoutReply },
    /// What is held on a customer, or was erased.
    Customers { customers: CustomerReply },
    /// The recorded change.
    Booked { booked: BooksRow },
    /// What covers the merchants' money.
    Coverage { coverage: CoverageReply },
    /// The delivery that was resent, and the new delivery.
    Resent { resent: String, delivery: DeliveryId },
    /// How many deliveries were resent.
    Recovered { recovered: u32 },
    /// The payments that need manual review.
    Reviews { reviews: Vec<ReviewRow> },
    /// The payment whose discrepancy was resolved, and its internal status now.
    Resolved { resolved: String, raw_status: RawStatus },
    /// The backup.
    BackedUp(BackedUp),
    /// The open notices.
    Notices { notices: Vec<NoticeRow> },
    /// The answer about people's sessions.
    Sessions { sessions: SessionReply },
    /// The answer about gateways.
    Gateways { gateways: GatewayReply },
    /// The created or changed app.
    App {
        app_id: String,
        app_name: String,
        #[serde(flatten)]
        brand: Brand,
    },
    /// Platform keys.
    PlatformKeys { platform_keys: PlatformKeyReply },
    /// Entries of the audit log, newest first, and where the next part begins.
    Audit { audit: Vec<AuditEntry>, next: Option<AuditId> },
    /// Why the command failed, and what to do.
    Error {
        #[schemars(with = "String")]
        code: ErrorCode,
        #[serde(rename = "message")]
        error: String,
    },
}

/// A row of `keys list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRow {
    pub id: String,
    pub workspace: String,
    pub environment: Environment,
    pub last4: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// The developer app that the key is bound to.
    pub app: Option<AppId>,
    /// Whether it sees only the payments of that app.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_its_app: bool,
    pub name: Option<String>,
    /// The permissions of the key; `None` for all.
    pub scopes: Option<Vec<Permission>>,
    pub expires_at: Option<Timestamp>,
    /// When the key was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The key that replaces this one, if this one still works until it expires.
    pub replaced_by: Option<KeyId>,
}

impl AdminReply {
    pub fn error(code: ErrorCode, error: impl Into<String>) -> Self {
        Self::Error { code, error: error.into() }
    }
}

impl From<ServiceError> for AdminReply {
    fn from(error: ServiceError) -> Self {
        Self::error(error.code(), error.to_string())
    }
}
