//! `/healthz`, `/readyz` and `/metrics`, for monitoring. They have no rate limit.

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;
use payments_core::ErrorCode;
use tokio::time::timeout;
use warp::http::{HeaderMap, StatusCode, header};

use super::{
    reply::{self, ApiError, Outcome},
    request::Request,
};
use crate::{service::ServiceError, store::StoreError};

/// How long the metrics wait for the store. Scrapers usually wait for ten seconds.
const STORE_PATIENCE: Duration = Duration::from_secs(4);

/// Liveness: the process responds, with or without its store.
pub(super) async fn alive(_: Request) -> Outcome {
    reply::ok_text(r#"{"status":"ok"}"#)
}

/// Readiness: the store can be read and written, and the server is not shutting down.
pub(super) async fn ready(request: Request) -> Outcome {
    if request.server.stopping.is_cancelled() {
        return Err(ApiError::new(ErrorCode::ServiceUnavailable, "the server is shutting down"));
    }
    let ask = async {
        match request.service().is_ready().await {
            // Tell the monitoring what the operator has to grant.
            Err(ServiceError::Unavailable(cause @ StoreError::Denied(_))) => {
                tracing::error!(%cause, "the server is not ready");
                Err(ApiError::new(ErrorCode::ServiceUnavailable, cause.to_string()))
            }
            outcome => Ok(outcome?),
        }
    };
    request.server.readiness.of(ask).await?;
    alive(request).await
}

/// Returns the metrics to the allowed networks, and 404 to everyone else, because metrics reveal business figures.
pub(super) async fn metrics(request: Request) -> Outcome {
    if !may_read(&request.server.metrics_from, request.head.addresses.peer, request.headers()) {
        return Err(ApiError::no_such_path());
    }
    let observed = timeout(STORE_PATIENCE, request.server.services.observe()).await;
    let observed = observed.ok().and_then(|observed| {
        observed
            .inspect_err(|error| tracing::warn!(%error, "the metrics of the store are those of the last scrape"))
            .ok()
    });
    let text = request.server.metrics.text(observed.as_ref()).map_err(ApiError::internal)?;
    let kind = (header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(reply::response(StatusCode::OK, text, [kind]))
}

/// Rejects proxied requests, because behind a proxy on this machine every peer is local.
fn may_read(networks: &[IpNet], peer: IpAddr, headers: &HeaderMap) -> bool {
    let is_forwarded = ["x-forwarded-for", "forwarded", "via"].iter().any(|name| headers.contains_key(*name));
    !is_forwarded && networks.iter().any(|network| network.contains(&peer.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_networks_read_metrics_but_never_through_a_proxy() {
        let networks = ["127.0.0.0/8".parse().unwrap(), "10.1.0.0/16".parse().unwrap()];
        let plain = HeaderMap::new();
        let mut forwarded = HeaderMap::new();
        forwarded.insert("x-forwarded-for", "127.0.0.1".parse().unwrap());
        for (peer, may) in [("127.0.0.1", true), ("::ffff:127.0.0.1", true), ("10.1.2.3", true), ("10.2.0.1", false)] {
            assert_eq!(may_read(&networks, peer.parse().unwrap(), &plain), may, "{peer}");
            assert!(!may_read(&networks, peer.parse().unwrap(), &forwarded));
        }
    }
}
