//! Chooses the listener for `/metrics`.
//!
//! Metrics reveal business figures. Behind a proxy on the same machine every peer is local, so a public server's main
//! listener cannot tell the operator from others. So on a public server, `/metrics` has a separate listener or is off.

use std::{net::SocketAddr, sync::Arc};

use super::{
    by_address::ConnectionsByAddress,
    client_address::TrustedProxies,
    hosts::Hosts,
    listener::{Edge, Limits, Listener},
    routes::Parts,
    server::Server,
};
use crate::{cli::CommandError, process::reach::Reach};

pub enum MetricsAt {
    Main,
    Own(Listener),
    Nowhere,
}

impl MetricsAt {
    /// Maximum number of connections to the separate listener, in addition to the main listener's.
    const CONNECTIONS: usize = 8;

    /// Binds the requested address. Without one, chooses the main listener of a local server, and none on a public one.
    pub async fn of(requested: Option<SocketAddr>, reach: Reach, bounds: Limits) -> Result<Self, CommandError> {
        let Some(requested) = requested else {
            if reach == Reach::Local {
                return Ok(Self::Main);
            }
            tracing::info!("/metrics is off, because this server is public; set --metrics-listen to enable it");
            return Ok(Self::Nowhere);
        };
        let bounds = Limits { connections: Self::CONNECTIONS, ..bounds };
        let listener = Listener::bind(requested, bounds).await.map_err(|error| {
            format!("cannot listen on {requested} for /metrics: {error}; choose another with --metrics-listen")
        })?;
        tracing::info!("/metrics is on http://{}", listener.address()?);
        Ok(Self::Own(listener))
    }

    pub fn parts(&self) -> Parts {
        match self {
            Self::Main => Parts::ApiAndMetrics,
            Self::Own(_) | Self::Nowhere => Parts::Api,
        }
    }

    pub async fn serve(self, server: &Arc<Server>, named: &[String]) {
        let Self::Own(listener) = self else { return };
        let base_url = &server.services.lasting.settings.base_url;
        let addresses = ConnectionsByAddress::new(usize::MAX, TrustedProxies::default());
        let hosts = listener.address().map(|own| Hosts::of(own, base_url, named)).unwrap_or_default();
        // This listener has budgets of its own: slow readers of the API leave room here for the operator.
        let edge = Edge::new(server, Parts::Metrics, addresses, hosts);
        listener.serve(edge, server.stopping.clone()).await;
    }
}
