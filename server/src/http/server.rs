//! The state that all HTTP handlers share.

use std::sync::Arc;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use super::{limit::RateLimits, readiness::Readiness, reference::Reference};
use crate::{metrics::Metrics, service::Services};

pub(crate) struct Server {
    pub(crate) services: Arc<Services>,
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) metrics: Metrics,
    pub(crate) metrics_from: Arc<[IpNet]>,
    pub(crate) readiness: Readiness,
    pub(crate) reference: Arc<Reference>,
    pub(crate) stopping: CancellationToken,
}
