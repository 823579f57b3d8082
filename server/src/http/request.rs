//! The request that handlers receive: parsed by warp, body not yet read.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use payments_core::{Invalid, PageRequest};
use tokio::time::timeout;
use warp::{
    Filter, Rejection,
    http::{HeaderMap, header},
};

use super::{reply::Problem, server::Server};
use crate::service::Service;

/// Maximum length of a body (413 beyond).
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long the whole body may take to arrive (408 after).
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// The peer's address. The listener adds it to each request's extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send>>;

/// Path parameters, by their names in the route's template.
#[derive(Debug, Clone, Default)]
pub(super) struct Params(Vec<(&'static str, String)>);

impl Params {
    pub(super) fn new<'p>(params: impl Iterator<Item = (&'static str, &'p str)>) -> Self {
        Self(params.map(|(name, value)| (name, value.to_owned())).collect())
    }

    pub(super) fn has_empty(&self) -> bool {
        self.0.iter().any(|(_, value)| value.is_empty())
    }

    /// Returns a parameter, not decoded; empty if the template does not have it.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// A parsed request.
pub(super) struct Request {
    pub(super) server: Arc<Server>,
    pub(super) path: String,
    pub(super) params: Params,
    pub(super) headers: HeaderMap,
    /// The peer's address: the client's, or its proxy's.
    pub(super) peer: IpAddr,
    query: String,
    body: Body,
}

/// Parses a request. Never rejects.
pub(super) fn request(server: Arc<Server>) -> impl Filter<Extract = (Request,), Error = Rejection> + Clone {
    warp::path::full()
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or_else(|_| async { Ok::<_, Infallible>((String::new(),)) }))
        .and(warp::ext::optional())
        .and(warp::body::stream())
        .map(move |path: warp::path::FullPath, headers, query, peer: Option<Peer>, body| Request {
            server: Arc::clone(&server),
            path: path.as_str().to_owned(),
            params: Params::default(),
            headers,
            // The listener sets the peer of every request.
            peer: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0),
            query,
            body: to_bytes(body),
        })
}

fn to_bytes(body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + 'static) -> Body {
    Box::pin(body.map(|chunk| chunk.map(|mut chunk| chunk.copy_to_bytes(chunk.remaining()))))
}

impl Request {
    pub(super) fn service(&self) -> &Arc<Service> {
        &self.server.service
    }

    /// Returns a path parameter, not decoded.
    pub(super) fn param(&self, name: &str) -> &str {
        self.params.get(name)
    }

    /// Reads the body: at most `MAX_BODY_BYTES`, within `BODY_DEADLINE`.
    pub(super) async fn read_body(&mut self) -> Result<Bytes, Problem> {
        let mut bytes = BytesMut::new();
        let all = async {
            while let Some(chunk) = self.body.next().await {
                let chunk = chunk.map_err(|_| Invalid::new("the body is incomplete; send the request again"))?;
                if bytes.len() + chunk.len() > MAX_BODY_BYTES {
                    return Err(Problem::BodyTooLarge);
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(())
        };
        timeout(BODY_DEADLINE, all).await.map_err(|_| Problem::BodyTimeout)??;
        Ok(bytes.freeze())
    }

    /// Reads a JSON body, which may be empty.
    pub(super) async fn read_json(&mut self) -> Result<Bytes, Problem> {
        let body = self.read_body().await?;
        let declared = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = declared.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        if body.is_empty() || essence.eq_ignore_ascii_case("application/json") {
            Ok(body)
        } else {
            Err(Invalid::new("Content-Type must be application/json").into())
        }
    }

    /// Returns the requested page of a list.
    pub(super) fn page(&self) -> Result<PageRequest, Invalid> {
        PageRequest::from_query(self.query("page").as_deref(), self.query("limit").as_deref())
    }

    /// Returns a query parameter, decoded; the first of several.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }
}
