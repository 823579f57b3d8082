//! A gateway's token between two starts.

use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

/// A gateway's token as it is kept: sealed under the gateway's secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptToken {
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) refresh: Option<Vec<u8>>,
    pub(crate) expires_at: Option<Timestamp>,
    /// When tokens were asked for, in the last hour.
    pub(crate) asked_at: Vec<Timestamp>,
}
