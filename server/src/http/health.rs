//! `/healthz`, `/readyz` and `/metrics`: for whoever watches the server. None is limited.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;
use warp::{
    Filter,
    filters::BoxedFilter,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    reply::Response,
};

use super::{
    Routes, Server, at, first_of,
    incoming::Incoming,
    limit::Verdict,
    reply::{self, Problem},
};

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    first_of([
        // The process is there and answers; it may still be without its store.
        watched(server, warp::path!("healthz").boxed(), async |_, _| ok()),
        watched(server, warp::path!("readyz").boxed(), ready),
    ])
}

/// Behind a proxy on the same machine every peer is local, so a public server has it on a listener of its own or not at
/// all.
pub(super) fn metrics_route(server: &Arc<Server>) -> Routes {
    watched(server, warp::path!("metrics").boxed(), metrics)
}

fn watched<H, F>(server: &Arc<Server>, path: BoxedFilter<()>, handler: H) -> Routes
where
    H: Fn(Arc<Server>, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let server = Arc::clone(server);
    let answer = move |(), incoming: Incoming| {
        let (server, handler) = (Arc::clone(&server), handler.clone());
        async move {
            let outcome = match incoming.method {
                Method::GET => handler(server, incoming).await,
                _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
            };
            let mut response = outcome.unwrap_or_else(Problem::into_response);
            Verdict::UNLIMITED.write(&mut response);
            response
        }
    };
    at(path.map(|| ()), answer)
}

fn ok() -> Result<Response, Problem> {
    reply::json(StatusCode::OK, &serde_json::json!({"status": "ok"}))
}

/// Ready for more: the store can be read, and nobody has told the server to stop.
async fn ready(server: Arc<Server>, _: Incoming) -> Result<Response, Problem> {
    if *server.is_stopping.borrow() {
        return Err(Problem::Unavailable("the server is shutting down".into()));
    }
    server.service.is_ready().await?;
    ok()
}

/// They tell of the business, so not everybody may read them; to the others there is no such path.
async fn metrics(server: Arc<Server>, incoming: Incoming) -> Result<Response, Problem> {
    if !may_read(&server.metrics_from, incoming.peer, &incoming.headers) {
        return Err(Problem::NotFound("no route has this path; the API lives under /api/v1".into()));
    }
    let observed = server.service.observe().await?;
    let text = server.metrics.text(&observed).map_err(|error| Problem::Internal(error.to_string()))?;
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
