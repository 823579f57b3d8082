//! A gateway's token between two starts.

use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::version::is_first;

/// A gateway's token as it is kept: sealed under the gateway's secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptToken {
    /// How often it has changed: a change is made only to the version it was decided on.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) version: u64,
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) refresh: Option<Vec<u8>>,
    pub(crate) expires_at: Option<Timestamp>,
    /// When tokens were asked for, in the last hour.
    pub(crate) asked_at: Vec<Timestamp>,
    /// Until when nobody else may ask, while a server asks for a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asking_until: Option<Timestamp>,
}
