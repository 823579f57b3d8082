//! The state that all HTTP handlers share.

use std::sync::Arc;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use super::{limit::RateLimits, people::People, readiness::Readiness, reference::Reference};
use crate::{metrics::Metrics, service::Services};

pub struct Server {
    pub services: Arc<Services>,
    pub limits: Arc<RateLimits>,
    pub metrics: Metrics,
    pub metrics_from: Arc<[IpNet]>,
    pub readiness: Readiness,
    pub reference: Arc<Reference>,
    /// People who sign in, if the operator has set a provider of identities.
    pub people: Option<People>,
    pub stopping: CancellationToken,
}
