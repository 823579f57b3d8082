//! Which routes a listener serves.

pub(super) const METRICS: &str = "/metrics";
/// All paths of the administration API, which has a table of its own.
pub(super) const ADMINISTRATION: &str = "/admin/v1/{*id}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// All routes except `/metrics`.
    Api,
    ApiAndMetrics,
    Metrics,
    /// Only the administration API.
    Administration,
}

impl Parts {
    pub(super) fn include(self, template: &str) -> bool {
        match self {
            Self::Api => template != METRICS,
            Self::ApiAndMetrics => true,
            Self::Administration => template == ADMINISTRATION,
            Self::Metrics => template == METRICS,
        }
    }
}
