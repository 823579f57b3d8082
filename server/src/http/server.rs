//! The running server, as its HTTP handlers see it.

use std::sync::Arc;

use ipnet::IpNet;
use tokio::sync::watch;

use super::{limit::RateLimits, reference::Reference};
use crate::{metrics::Metrics, service::Service};

/// What every handler works with.
pub(crate) struct Server {
    pub(crate) service: Arc<Service>,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) metrics: Metrics,
    /// Networks that may read the metrics.
    pub(crate) metrics_from: Arc<[IpNet]>,
    /// The API's reference.
    pub(crate) reference: Reference,
    /// Whether the server was told to stop.
    pub(crate) is_stopping: watch::Receiver<bool>,
}
