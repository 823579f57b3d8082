//! A gateway's access token in the store.

use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_first;

/// A gateway's stored token, encrypted under the gateway's secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    /// The account at the gateway. Earlier versions did not write it; then it is the server's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub token: Option<Vec<u8>>,
    pub refresh: Option<Vec<u8>>,
    pub expires_at: Option<Timestamp>,
    /// The times of the requests for tokens within the last hour.
    #[serde(rename = "asked_at")]
    pub requested_at: Vec<Timestamp>,
    /// The end of the lease of the server that requests a token. No other server may request one before then.
    #[serde(rename = "asking_until", default, skip_serializing_if = "Option::is_none")]
    pub requesting_until: Option<Timestamp>,
    /// The process that has this lease.
    #[serde(rename = "asking", default, skip_serializing_if = "Option::is_none")]
    pub requesting: Option<String>,
}
