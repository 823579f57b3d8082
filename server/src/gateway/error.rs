//! Why a gateway request failed.

use crate::domain::GatewayName;

/// A gateway request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GatewayError {
    /// The effect is unknown: no response, an incomplete one, or a server error. The caller must query again.
    #[error("{gateway} gave no usable response: {what}", gateway = gateway.title())]
    Unanswered { gateway: GatewayName, what: String },
    /// The gateway refused the request.
    #[error("{gateway} refused: {message} (code {code})", gateway = gateway.title())]
    Refused { gateway: GatewayName, code: String, message: String },
    /// The request was not sent, because recent ones got no response.
    #[error("{gateway} is not responding; retry in a few seconds", gateway = gateway.title())]
    CircuitOpen { gateway: GatewayName },
}

/// The gateways cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewaySetupError {
    #[error("cannot set up the HTTP client for the gateways: {0}")]
    Client(#[from] reqwest::Error),
    #[error("PAYMENTS_STRIPE_WEBHOOK_SECRET cannot be used: {0}")]
    WebhookSecret(#[from] webhook_verify::SecretError),
    #[error("--gateway-proxy must be an address like http://proxy.internal:3128")]
    Proxy,
}
