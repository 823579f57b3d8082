//! The state that all HTTP handlers share.

use std::sync::Arc;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use super::{limit::RateLimits, readiness::Readiness, reference::Reference};
use crate::{metrics::Metrics, service::Services};

pub struct Server {
    pub services: Arc<Services>,
    pub limits: Arc<RateLimits>,
    pub metrics: Metrics,
    pub metrics_from: Arc<[IpNet]>,
    pub readiness: Readiness,
    pub reference: Arc<Reference>,
    pub stopping: CancellationToken,
}
