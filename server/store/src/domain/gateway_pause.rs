//! A pause of a gateway: customers cannot choose it.

use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{GatewayName, is_first};

/// The last pause of a gateway. Attempts that are open there are still queried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayPause {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub gateway: GatewayName,
    /// When it ends or ended.
    pub until: Timestamp,
}
