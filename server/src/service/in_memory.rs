//! A service on a store in memory, for tests.

use std::{sync::Arc, time::Duration};

use payments_core::FeeRate;
use tokio_util::task::TaskTracker;

use super::{Caller, Service, Settings};
use crate::{
    ambient::{Ambient, OperatingSystem},
    delivery::{Sender, TargetPolicy},
    domain::{ApiKey, Scope},
    gateway::Gateways,
    metrics::Metrics,
    process::descriptors::Shares,
    store::layout::MemoryStore,
};

/// How long a gateway may take.
pub(super) const BOUND: Duration = Duration::from_millis(10);

pub(super) fn service() -> Arc<Service> {
    service_with(Gateways::none())
}

pub(super) fn service_with(gateways: Gateways) -> Arc<Service> {
    let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
    let targets = TargetPolicy::new(false);
    let sender = Arc::new(Sender::new(Arc::clone(&ambient), targets.clone(), "Service", Shares::default()).unwrap());
    let settings = Settings {
        base_url: String::new(),
        session_ttl_seconds: 0,
        delivery_body_days: None,
        audit_days: None,
        fee_rate: FeeRate::from_basis_points(0).unwrap(),
        gateway_timeout: BOUND,
        targets,
        has_sandbox: false,
        is_local: false,
        max_webhook_endpoints: 100,
        merchants_bear_costs: false,
        disputes_return_fee: false,
        payouts: super::payouts::PayoutSettings::default(),
        retention: super::Retention::default(),
    };
    let (store, metrics) = (MemoryStore::default().into_store(), Metrics::new());
    Arc::new(Service::new(store, ambient, sender, gateways, settings, &metrics, TaskTracker::new()))
}

/// The caller with a key of this scope.
pub(super) fn caller(scope: Scope) -> Caller {
    let mut key: ApiKey = serde_json::from_value(serde_json::json!({"id": "key_1", "workspace_id": "ws_1",
        "scope": {"developer_id": "dev_1", "environment": "test"}, "last4": "cafe",
        "created_at": "2026-03-01T03:30:00.000Z", "revoked_at": null}))
    .unwrap();
    key.scope = scope;
    Arc::new(key)
}
