//! What the server knows beside the API's resources. Pure: no clock, no randomness, no store.

mod delivery;
mod effects;
mod fan_out;
mod gateway_token;
mod idempotency;
mod merchant;
mod session;

pub(crate) use delivery::{Endpoint, Outgoing};
pub(crate) use effects::{Effects, effects};
pub(crate) use fan_out::{PendingEvent, fan_out};
pub(crate) use gateway_token::KeptToken;
pub(crate) use idempotency::{ClaimToken, IdempotencyKey, KeptResponse, KeyClaim};
pub(crate) use merchant::{ApiKey, Figures, KeyHash, Scope, Workspace};
pub(crate) use session::{Attempt, GatewayName, RefundAsked, Resolution, Review, Session, Settlement};
