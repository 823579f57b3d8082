//! A warp filter.
//!
//! ```
//! use bytes::Bytes;
//! use warp::{Filter, http::StatusCode};
//! use webhook_verify::{Secret, Verified, Verifier, adapters::{Receiver, Refusal, warp::verified}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let receiver = Receiver::new(Verifier::new(Secret::new("whsec_8f2d1a")?));
//! let hook = warp::path!("webhooks").and(warp::post()).and(verified(receiver));
//! let hook = hook.map(|body: Result<Verified<Bytes>, Refusal>| match body {
//!     Ok(verified) => StatusCode::OK,
//!     Err(refusal) => refusal.status(),
//! });
//! # Ok(())
//! # }
//! ```

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use warp::{
    Filter, Rejection, Reply,
    http::{HeaderMap, HeaderValue, header},
    reply::Response,
};

use super::{Receiver, Refusal};
use crate::Verified;

/// A filter that extracts the verified raw body of a request, or a [`Refusal`], which a handler can return as a reply.
/// The filter does not reject, because warp would then try the next route with a consumed body.
pub fn verified(
    receiver: Receiver,
) -> impl Filter<Extract = (Result<Verified<Bytes>, Refusal>,), Error = Rejection> + Clone {
    warp::header::headers_cloned().and(warp::body::stream()).then(move |headers, body| {
        let receiver = receiver.clone();
        async move { receive(&receiver, &headers, body).await }
    })
}

async fn receive(
    receiver: &Receiver,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<impl Buf, warp::Error>>,
) -> Result<Verified<Bytes>, Refusal> {
    let mut intake = receiver.begin(headers)?;
    let mut body = core::pin::pin!(body);
    while let Some(chunk) = body.next().await {
        let mut chunk = chunk.map_err(|_| Refusal::Broken)?;
        while chunk.has_remaining() {
            let piece = chunk.chunk();
            intake.take(piece)?;
            let taken = piece.len();
            chunk.advance(taken);
        }
    }
    intake.finish()
}

impl Reply for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.to_json().into());
        *response.status_mut() = self.status();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
