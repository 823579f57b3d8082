//! The listener of the administration API.

use std::{net::SocketAddr, sync::Arc};

use super::{
    by_address::ConnectionsByAddress,
    client_address::TrustedProxies,
    hosts::Hosts,
    listener::{Edge, Limits, Listener},
    routes::Parts,
    server::Server,
};
use crate::cli::CommandError;

pub struct AdministrationAt(Listener);

impl AdministrationAt {
    /// Maximum number of connections, in addition to the main listener's.
    const CONNECTIONS: usize = 32;

    /// Binds the address, if there is one.
    pub async fn of(requested: Option<SocketAddr>, bounds: Limits) -> Result<Option<Self>, CommandError> {
        let Some(requested) = requested else { return Ok(None) };
        let bounds = Limits { connections: Self::CONNECTIONS, ..bounds };
        let listener = Listener::bind(requested, bounds).await.map_err(|error| {
            format!("cannot listen on {requested} for /admin/v1: {error}; choose another with --admin-listen")
        })?;
        tracing::info!("/admin/v1 is on http://{}", listener.address()?);
        Ok(Some(Self(listener)))
    }

    pub async fn serve(self, server: &Arc<Server>, named: &[String], proxies: TrustedProxies) {
        let Self(listener) = self;
        let base_url = &server.services.lasting.settings.base_url;
        let addresses = ConnectionsByAddress::new(usize::MAX, proxies);
        let hosts = listener.address().map(|own| Hosts::of(own, base_url, named)).unwrap_or_default();
        let edge = Edge::new(server, Parts::Administration, addresses, hosts);
        listener.serve(edge, server.stopping.clone()).await;
    }
}
