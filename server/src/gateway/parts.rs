//! What a gateway is made of.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::{call::GatewayClient, contract::Gateway, error::GatewaySetupError, settings::Settings};
use crate::{ambient::Ambient, store::Store};

/// What a gateway is made of.
pub struct Parts {
    pub settings: Settings,
    pub(super) client: GatewayClient,
    pub store: Arc<Store>,
    pub ambient: Arc<dyn Ambient>,
    pub tasks: TaskTracker,
}

/// Makes a gateway.
pub(super) type Make = fn(Parts) -> Result<Box<dyn Gateway>, GatewaySetupError>;
