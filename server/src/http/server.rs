//! The state that all HTTP handlers share.

use std::sync::Arc;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use super::{limit::RateLimits, readiness::Readiness, reference::Reference};
use crate::{metrics::Metrics, service::Services};

/// The state that all handlers share.
pub(crate) struct Server {
    pub(crate) services: Arc<Services>,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) metrics: Metrics,
    /// Networks that may read the metrics.
    pub(crate) metrics_from: Arc<[IpNet]>,
    /// Whether the store was ready a moment ago.
    pub(crate) readiness: Readiness,
    /// The API's reference.
    pub(crate) reference: Arc<Reference>,
    /// Cancelled on shutdown.
    pub(crate) stopping: CancellationToken,
}
