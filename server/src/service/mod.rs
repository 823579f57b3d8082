//! The use cases, one function each. They decide with `payments_core` and commit to the store. They know neither HTTP
//! nor a storage engine.

mod account;
mod acting;
mod activity;
mod admin;
mod admin_reply;
mod apps;
mod audit;
mod books;
mod canonical;
mod check_permits;
mod checkout;
mod claims;
mod confirm;
mod coverage;
mod customers;
mod disputes;
mod error;
mod events;
mod expiry;
mod gateway_disputes;
mod gateway_lists;
mod gateway_pauses;
mod gateway_refunds;
mod held_up;
mod idempotency;
mod import_file;
#[cfg(test)]
mod in_memory;
mod key_uses;
mod keys;
mod late_money;
mod manual_settlement;
mod merchants;
mod next_check;
mod notices;
mod open_notices;
mod operator_text;
mod page_bytes;
mod pay;
mod payment_list;
mod payments;
mod payout_admin;
mod payout_steps;
mod payout_worker;
mod payouts;
mod platform_keys;
mod prune;
mod receipts;
mod reconcile;
mod records;
mod recover;
mod recoveries;
mod refund;
mod request_log;
mod request_log_retention;
mod resend;
mod retry;
mod sandbox;
mod sandbox_reset;
mod sandbox_time;
mod services;
mod sessions;
mod settlements;
mod simulate_payment;
mod statement;
mod test_event;
mod timeline;
mod transactions;
mod turns;
mod unknown_keys;
mod webhooks;
mod workspace_limits;

use std::{sync::Arc, time::Duration};

use payments_core::{FeeRate, Timestamp};
use tokio_util::task::TaskTracker;

use crate::{
    ambient::Ambient,
    delivery::{FanOutSignal, Sender, TargetPolicy},
    gateway::Gateways,
    metrics::Metrics,
    store::Store,
};

pub use acting::{Acting, actor};
pub use admin::AdminRequest;
pub use admin_reply::{AdminReply, KeyRow};
pub use audit::AuditFilter;
pub use books::{BooksRequest, BooksRow};
use check_permits::CheckPermits;
pub use checkout::{CheckoutView, Receipt};
pub use claims::Claims;
pub use coverage::{CoverRow, CoverageReply};
pub use customers::{CustomerName, CustomerReply, CustomerRequest, Erased};
pub use disputes::{DisputeOutcome, DisputeRequest, DisputeRow};
use error::Record;
pub use error::{Result, ServiceError};
pub use gateway_pauses::{GatewayReply, GatewayRequest, GatewayRow};
pub use idempotency::{Answer, IdempotentRequest};
pub use import_file::Imported;
use key_uses::KeyUses;
pub use keys::{Caller, SANDBOX_KEY};
pub use manual_settlement::{ManualOutcome, RefundRow, ReviewRow};
pub use merchants::{AppRow, WorkspaceRow};
pub use open_notices::{LastBackup, NoticeRequest, NoticeRow, NoticeSettings, NoticesWebhook};
pub use pay::Paying;
pub use payout_admin::{ListedPayout, PayoutOutcome, PayoutReply, PayoutRequest, PayoutRow, SentPayout};
pub use payouts::PayoutSettings;
pub use platform_keys::{PlatformKeyReply, PlatformKeyRequest, PlatformKeyRow};
pub use records::Directory;
use recoveries::Recoveries;
pub use refund::RefundCaps;
use request_log::RequestLog;
use retry::retry_on_conflict;
pub use services::{Sandbox, Services};
pub use sessions::{SessionReply, SessionRequest, SessionRow, SignedIn};
pub use settlements::{MAX_ROWS, SettlementReply, SettlementRequest, WaitingRow};
pub use statement::{SeenRows, Statement, csv_error};
pub use timeline::Told;
use turns::Turns;
use unknown_keys::UnknownKeys;
pub use webhooks::verify_signature;
pub use workspace_limits::{LimitsRequest, LimitsRow};

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server's public URL, without a trailing slash.
    pub base_url: String,
    pub session_ttl_seconds: u32,
    /// After how many days a delivery is redacted; never if `None`.
    pub delivery_body_days: Option<u16>,
    /// After how many days an entry of the audit log is dropped; never if `None`.
    pub audit_days: Option<u16>,
    pub fee_rate: FeeRate,
    pub gateway_timeout: Duration,
    pub targets: TargetPolicy,
    /// Whether the public sandbox key and demo sessions work.
    pub has_sandbox: bool,
    /// Whether only this machine can reach the server.
    pub is_local: bool,
    pub max_webhook_endpoints: usize,
    /// Whether merchants bear what gateways keep, instead of the platform.
    pub merchants_bear_costs: bool,
    /// Whether the platform returns its fee on what a gateway withdraws for a dispute.
    pub disputes_return_fee: bool,
    pub payouts: PayoutSettings,
    pub retention: Retention,
}

/// How long records are kept, and refunds may wait for a person.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// After how many days without a change a payment loses its customer's data; never if `None`.
    pub customer_data_days: Option<u16>,
    pub request_log_days: u16,
    /// Within how many days a refund must be sent by hand.
    pub manual_refund_days: u16,
}

impl Retention {
    /// Logged requests from before this time are not shown any more.
    fn oldest_request(self, now: Timestamp) -> Timestamp {
        days_before(now, self.request_log_days)
    }
}

/// The time so many days before another.
fn days_before(now: Timestamp, days: u16) -> Timestamp {
    Timestamp::from_millis(now.as_millis() - i64::from(days) * 24 * 60 * 60 * 1000).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Default for Retention {
    fn default() -> Self {
        Self { customer_data_days: None, request_log_days: 7, manual_refund_days: 3 }
    }
}

/// The use cases, with the store, the gateways and everything else that they call.
pub struct Service {
    /// The payments, webhook endpoints and deliveries.
    pub store: Arc<Store>,
    /// The workspaces, API keys and apps.
    pub directory: Directory,
    pub ambient: Arc<dyn Ambient>,
    pub sender: Arc<Sender>,
    pub gateways: Gateways,
    pub claims: Arc<Claims>,
    /// Permits to ask a gateway about due payments.
    pub check_permits: Arc<CheckPermits>,
    /// The turns of requests without a key that lead to a call at a gateway.
    pub turns: Turns,
    /// The recoveries of endpoints in progress.
    pub recoveries: Arc<Recoveries>,
    /// The keys used since their last uses were stored.
    pub key_uses: Arc<KeyUses>,
    /// The keys that the store did not know a moment ago.
    pub unknown_keys: Arc<UnknownKeys>,
    /// The requests noted since the log was last stored.
    pub request_log: RequestLog,
    /// Wakes the fan-out worker when an event became pending.
    pub fan_out: Arc<FanOutSignal>,
    /// Tasks that outlive their request. The server waits for them before it closes the store.
    pub tasks: TaskTracker,
    pub settings: Settings,
}

impl Service {
    /// A service whose workspaces, API keys and apps are in its own store.
    pub fn new(
        store: Arc<Store>,
        ambient: Arc<dyn Ambient>,
        sender: Arc<Sender>,
        gateways: Gateways,
        settings: Settings,
        metrics: &Metrics,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            directory: Directory { store: Arc::clone(&store), ambient: Arc::clone(&ambient) },
            store,
            sender,
            gateways,
            claims: Arc::new(Claims::new(&metrics.outside_effects)),
            check_permits: Arc::new(CheckPermits::new(&metrics.gateway_checks)),
            turns: Turns::default(),
            recoveries: Arc::default(),
            key_uses: Arc::default(),
            unknown_keys: Arc::default(),
            request_log: RequestLog::new(metrics.requests.not_logged.clone()),
            fan_out: Arc::default(),
            tasks,
            settings,
            ambient,
        }
    }

    /// A service with the same workspaces, API keys and apps. Its payments are in another store and move no money.
    pub fn of_sandbox(&self, store: Arc<Store>, sender: Arc<Sender>, claims: Arc<Claims>) -> Self {
        Self {
            store,
            directory: self.directory.clone(),
            ambient: Arc::clone(&self.ambient),
            sender,
            gateways: Gateways::none(),
            claims,
            check_permits: Arc::clone(&self.check_permits),
            turns: Turns::default(),
            recoveries: Arc::default(),
            key_uses: Arc::clone(&self.key_uses),
            unknown_keys: Arc::clone(&self.unknown_keys),
            request_log: self.request_log.another(),
            fan_out: Arc::default(),
            tasks: self.tasks.clone(),
            settings: self.settings.clone(),
        }
    }
}
