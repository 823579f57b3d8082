//! The commands about gateways.

use clap::Subcommand;
use payments_core::Timestamp;

use super::values::{one_of, time};
use crate::{domain::GatewayName, gateway::registry};

#[derive(Debug, Subcommand)]
pub enum GatewaysCommand {
    /// List all gateways with their ways to pay, their pauses, and how they answered the running server in the last hour.
    List,
    /// Let customers not choose a gateway until a time. Attempts that are open there are still queried.
    Disable {
        /// The gateway.
        #[arg(value_parser = one_of::<GatewayName>(registry().map(|it| it.name.as_str())))]
        gateway: GatewayName,
        /// When customers can choose it again, such as 2026-03-01T12:00:00Z.
        #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME", value_parser = time)]
        until: Timestamp,
    },
    /// Let customers choose a gateway again.
    Enable {
        /// The gateway.
        #[arg(value_parser = one_of::<GatewayName>(registry().map(|it| it.name.as_str())))]
        gateway: GatewayName,
    },
}
