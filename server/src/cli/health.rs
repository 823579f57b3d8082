//! The arguments of `health`.

use std::net::SocketAddr;

use clap::Args;

use super::values::address;

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Address that the server listens on, IP:PORT or a port.
    #[arg(long, env = "PAYMENTS_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = address)]
    pub(crate) listen: SocketAddr,
}
