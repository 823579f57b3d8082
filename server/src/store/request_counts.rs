//! Counting requests for all servers on a store.

use std::time::Duration;

use async_trait::async_trait;

use super::error::Result;

/// How long a window of requests lasts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// Counts the requests of each subject in windows of [`WINDOW`], which all servers share.
#[async_trait]
pub(crate) trait RequestCounts: Send + Sync {
    /// Adds what a server has admitted and what waits. Returns each subject's window, in the order of the reports. A subject
    /// without a window starts one. What was admitted before a window that another server started does not count in it.
    async fn count(&self, reports: &[Report]) -> Result<Vec<SharedWindow>>;
}

/// A server's requests of one subject.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// A key or an address. Each is in one report only.
    pub(crate) subject: String,
    /// The window to which the admitted requests belong, if the server knows it.
    pub(crate) window: Option<WindowId>,
    /// How long ago the first of them came.
    pub(crate) age: Duration,
    /// Requests that the server has admitted since its last report.
    pub(crate) admitted: u32,
    /// Requests that wait for the answer.
    pub(crate) waiting: u32,
}

/// The time at which a window started, by the store's clock, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowId(pub(crate) i64);

/// A window as it is after a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedWindow {
    pub(crate) id: WindowId,
    pub(crate) age: Duration,
    /// All requests in it, with those that wait.
    pub(crate) requests: u64,
}
