//! `/healthz`, `/readyz` and `/metrics`: for whoever watches the server. None is limited.

use std::net::IpAddr;

use ipnet::IpNet;
use warp::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    reply::Response,
};

use super::{
    reply::{self, Problem},
    request::Request,
    route::Outcome,
};

/// Alive: the process answers; it may still be without its store.
pub(super) async fn alive(_: Request) -> Outcome {
    ok()
}

fn ok() -> Outcome {
    reply::json(StatusCode::OK, &serde_json::json!({"status": "ok"}))
}

/// Ready for more: the store can be read, and nobody has told the server to stop.
pub(super) async fn ready(request: Request) -> Outcome {
    if request.server.stopping.is_cancelled() {
        return Err(Problem::Unavailable("the server is shutting down".into()));
    }
    request.service().is_ready().await?;
    ok()
}

/// They tell of the business, so not everybody may read them; to the others there is no such path. Behind a proxy on the
/// same machine every peer is local, so a public server has them on a listener of its own or not at all.
pub(super) async fn metrics(request: Request) -> Outcome {
    if !may_read(&request.server.metrics_from, request.peer, &request.headers) {
        return Err(Problem::no_such_path());
    }
    let observed = request.service().observe().await?;
    let text = request.server.metrics.text(&observed).map_err(|error| Problem::Internal(error.to_string()))?;
    let mut response = Response::new(text.into());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// Behind a proxy on this machine every peer is this machine; what came through one says so.
fn may_read(networks: &[IpNet], peer: IpAddr, headers: &HeaderMap) -> bool {
    let is_forwarded = ["x-forwarded-for", "forwarded", "via"].iter().any(|name| headers.contains_key(*name));
    !is_forwarded && networks.iter().any(|network| network.contains(&peer.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_for_the_named_networks_and_never_through_a_proxy() {
        let networks = ["127.0.0.0/8".parse().unwrap(), "10.1.0.0/16".parse().unwrap()];
        let plain = HeaderMap::new();
        let mut forwarded = HeaderMap::new();
        forwarded.insert("x-forwarded-for", HeaderValue::from_static("127.0.0.1"));
        for (peer, may) in [("127.0.0.1", true), ("::ffff:127.0.0.1", true), ("10.1.2.3", true), ("10.2.0.1", false)] {
            assert_eq!(may_read(&networks, peer.parse().unwrap(), &plain), may, "{peer}");
            assert!(!may_read(&networks, peer.parse().unwrap(), &forwarded));
        }
    }
}
