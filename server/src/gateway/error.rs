//! Why a gateway request failed.

use payments_core::Timestamp;

use super::title;
use crate::domain::GatewayName;

/// A gateway did not answer what the request asked. The error ends nothing: the caller asks again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// The effect is unknown: no response, an incomplete one, a server error, or a response about something else.
    #[error("{gateway} gave no usable response: {what}", gateway = title(*gateway))]
    Unanswered {
        gateway: GatewayName,
        what: String,
        /// False only if there was no connection to send the request on.
        was_sent: bool,
    },
    /// The request was not sent, because recent ones got no response.
    #[error("{gateway} is not responding; retry in a few seconds", gateway = title(*gateway))]
    CircuitOpen { gateway: GatewayName },
    /// The operator has paused the gateway.
    #[error("payments by {gateway} are paused until {until}; try again then", gateway = title(*gateway))]
    Paused { gateway: GatewayName, until: Timestamp },
}

impl GatewayError {
    /// Whether the request may have reached the gateway.
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Unanswered { was_sent, .. } => *was_sent,
            Self::CircuitOpen { .. } | Self::Paused { .. } => false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GatewaySetupError {
    #[error("cannot set up the HTTP client for the gateways: {0}")]
    Client(#[from] reqwest::Error),
    #[error("{variable} cannot be used: {error}")]
    NoticeSecret { variable: String, error: webhook_verify::SecretError },
    #[error("--gateway-proxy must be an address like http://proxy.internal:3128")]
    Proxy,
}
