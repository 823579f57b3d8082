//! The listening sockets of a running server, its public address and its connection limits.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{CommandError, ServeArgs},
    http::{
        self, ConnectionsByAddress, Edge, Hosts, Limits, Listener, MetricsAt, OwnListener, People, RateLimits,
        Readiness, Reference, TrustedProxies,
    },
    metrics::Metrics,
    process::{
        descriptors::{self, Shares},
        reach::Reach,
    },
    service::Services,
};

/// Bound sockets. Connections wait until [`serve`](Self::serve).
pub(super) struct Front {
    listener: Listener,
    metrics_at: MetricsAt,
    administration_at: Option<OwnListener>,
    pub(super) address: SocketAddr,
    /// URL at which customers reach this server, without a trailing slash.
    pub(super) base_url: String,
    pub(super) reach: Reach,
    pub(super) shares: Shares,
    /// The share of the sandbox if it has a store of its own, as on a public server with an open sandbox.
    pub(super) own_sandbox: Option<Shares>,
}

impl Front {
    pub(super) async fn bind(args: &ServeArgs) -> Result<Self, CommandError> {
        let shares = descriptors::divide(descriptors::raise_limit(), args.max_connections)?;
        let drain = Duration::from_secs(args.drain.into());
        let bounds = Limits { connections: shares.connections, drain, ..Limits::default() };
        let listener = Listener::bind(args.listen, bounds)
            .await
            .map_err(|error| format!("cannot listen on {}: {error}; choose another with --listen", args.listen))?;
        let address = listener.address()?;
        let base_url = args.base_url.clone().unwrap_or_else(|| format!("http://{address}"));
        let reach = Reach::of(&base_url, address);
        let (shares, of_sandbox) = shares.divided(args.sandbox && reach == Reach::Public);
        let metrics_at = MetricsAt::of(args.metrics_listen, reach, bounds).await?;
        let administration_at = match args.admin_listen {
            Some(address) => Some(OwnListener::of_administration(address, bounds).await?),
            None => None,
        };
        Ok(Self { listener, metrics_at, administration_at, address, base_url, reach, shares, own_sandbox: of_sandbox })
    }

    /// Serves until `stopping`, then lets requests in flight finish.
    pub(super) async fn serve(
        self,
        args: &ServeArgs,
        services: Arc<Services>,
        metrics: Metrics,
        people: Option<People>,
        stopping: CancellationToken,
    ) {
        let Self { listener, metrics_at, administration_at, address, shares, .. } = self;
        let proxies = TrustedProxies::new(args.trusted_proxies.clone());
        let per_address = descriptors::per_address(shares.connections, args.max_connections_per_address);
        let addresses = ConnectionsByAddress::new(per_address, proxies.clone());
        metrics.requests.connections_at_most.set(i64::try_from(shares.connections).unwrap_or(i64::MAX));
        let evicted = &metrics.requests.rate_windows_evicted;
        let mut limits = RateLimits::new(args.rate_limit, args.keyless_rate_limit, proxies, evicted);
        let service = &services.lasting;
        limits.share(&service.store);
        let server = Arc::new(http::Server {
            readiness: Readiness::default(),
            reference: Arc::new(Reference::new(&service.settings.base_url)),
            people,
            services,
            limits: Arc::new(limits),
            metrics,
            metrics_from: args.metrics_from.clone().into(),
            stopping,
        });
        let hosts = Hosts::of(address, &server.services.lasting.settings.base_url, &args.allowed_hosts);
        let edge = Edge::new(&server, metrics_at.parts(), addresses, hosts);
        let administration = async {
            if let Some(at) = administration_at {
                at.serve(&server, &args.allowed_hosts, TrustedProxies::new(args.trusted_proxies.clone())).await;
            }
        };
        let metrics = metrics_at.serve(&server, &args.allowed_hosts);
        tokio::join!(listener.serve(edge, server.stopping.clone()), metrics, administration);
    }
}
