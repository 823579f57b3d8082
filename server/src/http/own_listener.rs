//! A listener of its own for some of the routes, beside the main one.

use std::{net::SocketAddr, sync::Arc};

use super::{
    by_address::ConnectionsByAddress,
    client_address::TrustedProxies,
    hosts::Hosts,
    listener::{Edge, Limits, Listener},
    parts::Parts,
    server::Server,
};
use crate::cli::CommandError;

/// What an own listener is for.
struct Purpose {
    routes: &'static str,
    flag: &'static str,
    /// Maximum number of connections, in addition to the main listener's.
    connections: usize,
}

pub struct OwnListener {
    listener: Listener,
    parts: Parts,
}

impl OwnListener {
    /// Binds a listener for the metrics.
    pub async fn of_metrics(address: SocketAddr, bounds: Limits) -> Result<Self, CommandError> {
        let purpose = Purpose { routes: "/metrics", flag: "--metrics-listen", connections: 8 };
        Self::bind(address, bounds, Parts::Metrics, purpose).await
    }

    /// Binds a listener for the administration API.
    pub async fn of_administration(address: SocketAddr, bounds: Limits) -> Result<Self, CommandError> {
        let purpose = Purpose { routes: "/admin/v1", flag: "--admin-listen", connections: 32 };
        Self::bind(address, bounds, Parts::Administration, purpose).await
    }

    async fn bind(
        address: SocketAddr,
        bounds: Limits,
        parts: Parts,
        Purpose { routes, flag, connections }: Purpose,
    ) -> Result<Self, CommandError> {
        let listener = Listener::bind(address, Limits { connections, ..bounds })
            .await
            .map_err(|error| format!("cannot listen on {address} for {routes}: {error}; choose another with {flag}"))?;
        tracing::info!("{routes} is on http://{}", listener.address()?);
        Ok(Self { listener, parts })
    }

    /// Serves until the server stops. It has budgets of its own: slow readers of the API leave room here for the operator.
    pub async fn serve(self, server: &Arc<Server>, named: &[String], proxies: TrustedProxies) {
        let Self { listener, parts } = self;
        let base_url = &server.services.lasting.settings.base_url;
        let addresses = ConnectionsByAddress::new(usize::MAX, proxies);
        let hosts = listener.address().map(|own| Hosts::of(own, base_url, named)).unwrap_or_default();
        listener.serve(Edge::new(server, parts, addresses, hosts), server.stopping.clone()).await;
    }
}
