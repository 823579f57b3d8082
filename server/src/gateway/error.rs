//! Why a gateway did not do its part.

use super::proxy::ProxyAddressError;
use crate::domain::GatewayName;

/// A gateway did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GatewayError {
    /// Nobody knows whether it was done: no answer, half an answer, a server error. It must be asked again.
    #[error("{gateway} did not answer: {what}", gateway = gateway.title())]
    Unanswered { gateway: GatewayName, what: String },
    /// It was not done, and the gateway says why.
    #[error("{gateway} refused: {message} (code {code})", gateway = gateway.title())]
    Refused { gateway: GatewayName, code: String, message: String },
    /// It was not even asked, because it has not answered for a while.
    #[error("{gateway} has not answered for a while; it is asked again in a moment", gateway = gateway.title())]
    CircuitOpen { gateway: GatewayName },
}

/// A gateway cannot be set up with what it was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewaySetupError {
    #[error("the connection to the gateways cannot be prepared: {0}")]
    Client(#[from] reqwest::Error),
    #[error("PAYMENTS_STRIPE_WEBHOOK_SECRET cannot be used: {0}")]
    WebhookSecret(#[from] webhook_verify::SecretError),
    #[error(transparent)]
    Proxy(#[from] ProxyAddressError),
    #[error("PAYMENTS_BKASH_APP_SECRET cannot be made a key")]
    Seal,
}
