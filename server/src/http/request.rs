//! The request that handlers receive: what the listener handed over, and the server's state.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use payments_core::{ErrorCode, Invalid, PageRequest, is_same_field};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use url::form_urlencoded;
use warp::{
    Filter, Rejection,
    http::{HeaderMap, Method, header},
};

use super::{
    head::{Found, Head},
    language::Language,
    parameters,
    parts::Parts,
    people::Person,
    reply::ApiError,
    server::Server,
};
use crate::{gateway::Declaration, service::Service};

/// Maximum length of a body (413 beyond).
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long the whole body may take to arrive (408 after).
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// How many bodies longer than `MAX_BODY_BYTES` are in memory at once. The server reads no further into another until one
/// ends.
const LARGE_BODIES: usize = 16;
static PLACES: Semaphore = Semaphore::const_new(LARGE_BODIES);
/// The headers by which browsers mark a request that they send before the user follows the link.
const PURPOSES: [&str; 4] = ["sec-purpose", "purpose", "x-purpose", "x-moz"];

#[derive(Default)]
pub(super) struct LargeBody {
    pub(super) bytes: Bytes,
    _place: Option<SemaphorePermit<'static>>,
}

/// A request whose body is not yet read.
pub(super) struct Request {
    pub(super) server: Arc<Server>,
    /// Which service handles the request: the lasting one, until the gate knows the caller.
    pub(super) service: Arc<Service>,
    pub(super) head: Arc<Head>,
    /// What the listener of the request serves.
    pub(super) parts: Parts,
    /// The person who asks, if a session authenticates the request.
    pub(super) person: Option<Person>,
}

/// Takes over a request that the listener hands in. Never rejects one.
pub(super) fn request(
    server: Arc<Server>,
    parts: Parts,
) -> impl Filter<Extract = (Request,), Error = Rejection> + Clone {
    warp::ext::get().map(move |head| Request {
        service: Arc::clone(&server.services.lasting),
        server: Arc::clone(&server),
        parts,
        head,
        person: None,
    })
}

impl Request {
    pub(super) fn service(&self) -> &Arc<Service> {
        &self.service
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.head.parts.headers
    }

    /// The route with its parameter: the same for a path with and without a slash at its end.
    pub(super) fn route_path(&self) -> String {
        self.head.found.as_ref().map(Found::path).unwrap_or_default()
    }

    /// The path parameter `{id}`, not decoded; empty if the route has none.
    pub(super) fn id(&self) -> &str {
        self.head.found.as_ref().map_or("", |found| &found.id)
    }

    pub(super) fn method(&self) -> &Method {
        &self.head.parts.method
    }

    /// What the gateway in the path declares.
    pub(super) fn gateway(&self) -> Option<&'static Declaration> {
        self.head.found.as_ref()?.gateway
    }

    /// Whether no user has followed the link yet: the request is a `HEAD`, or a browser prefetches.
    pub(super) fn is_ahead_of_its_user(&self) -> bool {
        let says = |name: &str| {
            let values = self.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
            let mut words = values.flat_map(|value| value.split([';', ',', ' ']));
            words.any(|word| ["prefetch", "prerender", "preview"].iter().any(|known| word.eq_ignore_ascii_case(known)))
        };
        self.head.parts.method == Method::HEAD || PURPOSES.into_iter().any(says)
    }

    /// The language of the page, and whether this request chose it. A cookie should store a choice.
    pub(super) fn language(&self) -> (Language, bool) {
        let chosen = self.query("lang");
        let language = Language::of(chosen.as_deref(), self.headers());
        (language, chosen.as_deref() == Some(language.code()))
    }

    /// Reads the body: at most `MAX_BODY_BYTES`, within `BODY_DEADLINE`.
    pub(super) async fn read_body(&mut self) -> Result<Bytes, ApiError> {
        Ok(self.read_large_body(MAX_BODY_BYTES).await?.bytes)
    }

    /// Reads a body of at most `at_most` bytes, within `BODY_DEADLINE`. A body longer than `MAX_BODY_BYTES` waits for one of
    /// `LARGE_BODIES` places.
    pub(super) async fn read_large_body(&mut self, at_most: usize) -> Result<LargeBody, ApiError> {
        let Some(mut body) = self.head.take_body() else { return Ok(LargeBody::default()) };
        let all = async {
            let mut bytes = BytesMut::new();
            let mut place = None;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| {
                    Invalid::new(ErrorCode::BodyIncomplete, "the body is incomplete; send the request again")
                })?;
                // The server ignores trailers.
                let Ok(chunk) = frame.into_data() else { continue };
                if body.is_refused() {
                    return Err(ApiError::busy());
                }
                let length = bytes.len() + chunk.len();
                if length > at_most {
                    let message = format!("the body must be at most {at_most} bytes");
                    return Err(ApiError::new(ErrorCode::BodyTooLarge, message));
                }
                if length > MAX_BODY_BYTES && place.is_none() {
                    // The semaphore is never closed.
                    place = PLACES.acquire().await.ok();
                }
                if bytes.is_empty() && body.is_end_stream() {
                    return Ok(LargeBody { bytes: chunk, _place: place });
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(LargeBody { bytes: bytes.freeze(), _place: place })
        };
        let late =
            |_| ApiError::new(ErrorCode::RequestTimeout, "the body did not arrive in time; send the request again");
        timeout(BODY_DEADLINE, all).await.map_err(late)?
    }

    pub(super) async fn read_json(&mut self) -> Result<Bytes, ApiError> {
        let body = self.read_body().await?;
        let declared = self.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = declared.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        let encoding = self.headers().get(header::CONTENT_ENCODING);
        if !body.is_empty() && encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            let message = "the body must not be compressed; send it as it is, without Content-Encoding";
            return Err(Invalid::new(ErrorCode::ContentTypeInvalid, message).into());
        }
        if body.is_empty() || essence.eq_ignore_ascii_case("application/json") {
            Ok(body)
        } else {
            Err(Invalid::new(ErrorCode::ContentTypeInvalid, "Content-Type must be application/json").into())
        }
    }

    pub(super) fn page(&self) -> Result<PageRequest, Invalid> {
        PageRequest::from_query(self.query("page").as_deref(), self.query("limit").as_deref())
    }

    /// Refuses query parameters, for a request that refunds money: no part of it may be ignored.
    pub(super) fn without_query(&self) -> Result<(), Invalid> {
        match self.query_pairs().next() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Invalid::field(name, ErrorCode::FieldUnknown, "is in the query; send fields in the body"))
            }
        }
    }

    /// Returns a decoded query parameter, the first if there are several. Reads its name in camelCase and in snake_case.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        debug_assert!(self.head.found.as_ref().is_none_or(|found| parameters::has(found.template, name)), "{name}");
        self.query_pairs().find(|(given, _)| is_same_field(given, name)).map(|(_, value)| value.into_owned())
    }

    fn query_pairs(&self) -> form_urlencoded::Parse<'_> {
        form_urlencoded::parse(self.head.parts.uri.query().unwrap_or_default().as_bytes())
    }
}
