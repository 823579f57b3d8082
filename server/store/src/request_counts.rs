//! Counts of requests that all servers on a store share.

use std::time::Duration;

use async_trait::async_trait;

use super::error::Result;

/// How long a window of requests lasts.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Counts the requests of each subject in windows of [`WINDOW`], which all servers share.
#[async_trait]
pub trait RequestCounts: Send + Sync {
    /// Adds the requests that a server has admitted and those that wait. Returns each subject's window, in the order of the
    /// reports. A subject without a window starts one. Requests that were admitted before another server started the window
    /// do not count in it.
    async fn count(&self, reports: &[Report]) -> Result<Vec<SharedWindow>>;
}

/// A server's requests of one subject.
#[derive(Debug, Clone)]
pub struct Report {
    /// A key or an address. Each is in one report only.
    pub subject: String,
    /// The window to which the admitted requests belong, if the server knows it.
    pub window: Option<WindowId>,
    /// How long ago the first of them came.
    pub age: Duration,
    /// Requests that the server has admitted since its last report.
    pub admitted: u32,
    /// Requests that wait for the answer to this report.
    pub waiting: u32,
}

/// The time at which a window started, by the store's clock, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowId(pub i64);

/// A window as it is after a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedWindow {
    pub id: WindowId,
    pub age: Duration,
    /// All requests in the window, including those that wait.
    pub requests: u64,
}
