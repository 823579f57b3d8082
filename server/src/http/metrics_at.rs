//! Where `/metrics` is answered.
//!
//! They tell of the business. Behind a proxy on the same machine every peer is local, so on a public server the main
//! listener cannot tell an operator from a stranger: `/metrics` has a listener of its own there, or is off.

use std::{io, net::SocketAddr, sync::Arc};

use super::{
    by_address::ConnectionsByAddress,
    client_address::TrustedProxies,
    listener::{Edge, Limits, Listener},
    routes::{Parts, routes},
    server::Server,
};
use crate::reach::Reach;

/// The address for `/metrics` cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for /metrics: {source}; choose another with --metrics-listen")]
pub(crate) struct CannotListen {
    address: SocketAddr,
    source: io::Error,
}

/// Where `/metrics` is answered.
pub(crate) enum MetricsAt {
    /// Where everything else is.
    Main,
    /// On a listener of its own.
    Own(Listener),
    /// Nowhere.
    Nowhere,
}

impl MetricsAt {
    /// Connections of whoever reads the metrics. They count as the server's own.
    const CONNECTIONS: usize = 8;

    /// On the address that was asked for; else on the main listener of a local server, and on none of a public one.
    pub(crate) async fn of(asked: Option<SocketAddr>, reach: Reach, bounds: Limits) -> Result<Self, CannotListen> {
        let Some(asked) = asked else {
            if reach == Reach::Local {
                return Ok(Self::Main);
            }
            tracing::info!("/metrics is off, because this server is public; give it an address with --metrics-listen");
            return Ok(Self::Nowhere);
        };
        let bounds = Limits { connections: Self::CONNECTIONS, ..bounds };
        let cannot = |source| CannotListen { address: asked, source };
        let listener = Listener::bind(asked, bounds).await.map_err(cannot)?;
        tracing::info!("/metrics is on http://{}", listener.address().map_err(cannot)?);
        Ok(Self::Own(listener))
    }

    /// What the main listener answers.
    pub(crate) fn parts(&self) -> Parts {
        match self {
            Self::Main => Parts::ApiAndMetrics,
            Self::Own(_) | Self::Nowhere => Parts::Api,
        }
    }

    /// Serves the listener of its own, if there is one, until the server stops.
    pub(crate) async fn serve(self, server: &Arc<Server>) {
        let Self::Own(listener) = self else { return };
        let edge = Edge {
            routes: routes(server, Parts::Metrics),
            ambient: Arc::clone(&server.service.ambient),
            limits: Arc::clone(&server.limits),
            addresses: ConnectionsByAddress::new(usize::MAX, TrustedProxies::default()),
            metrics: server.metrics.requests.clone(),
            tasks: server.service.tasks.clone(),
        };
        listener.serve(edge, server.stopping.cancelled()).await;
    }
}
