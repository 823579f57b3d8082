//! Chooses the listener for `/metrics`.
//!
//! Metrics reveal business figures. Behind a proxy on the same machine every peer is local, so a public server's main
//! listener cannot tell the operator from others. So on a public server, `/metrics` has a separate listener or is off.

use std::{net::SocketAddr, sync::Arc};

use super::{
    client_address::TrustedProxies, listener::Limits, own_listener::OwnListener, parts::Parts, server::Server,
};
use crate::{cli::CommandError, process::reach::Reach};

pub enum MetricsAt {
    Main,
    Own(OwnListener),
    Nowhere,
}

impl MetricsAt {
    /// Binds the requested address. Without one, chooses the main listener of a local server, and none on a public one.
    pub async fn of(requested: Option<SocketAddr>, reach: Reach, bounds: Limits) -> Result<Self, CommandError> {
        match requested {
            Some(requested) => Ok(Self::Own(OwnListener::of_metrics(requested, bounds).await?)),
            None if reach == Reach::Local => Ok(Self::Main),
            None => {
                tracing::info!("/metrics is off, because this server is public; set --metrics-listen to enable it");
                Ok(Self::Nowhere)
            }
        }
    }

    pub fn parts(&self) -> Parts {
        match self {
            Self::Main => Parts::ApiAndMetrics,
            Self::Own(_) | Self::Nowhere => Parts::Api,
        }
    }

    pub async fn serve(self, server: &Arc<Server>, named: &[String]) {
        let Self::Own(own) = self else { return };
        own.serve(server, named, TrustedProxies::default()).await;
    }
}
