//! A tower layer, for hyper and frameworks based on tower.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use tower_layer::Layer;
//! use webhook_verify::{Secret, Verified, Verifier, adapters::{Receiver, tower::VerifyLayer}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # fn service_fn<F>(f: F) -> F { f }
//! async fn handle(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
//!     let verified: Option<&Verified<Bytes>> = request.extensions().get();
//!     Ok(Response::new(Full::default()))
//! }
//! let receiver = Receiver::new(Verifier::new(Secret::new("whsec_8f2d1a")?));
//! let service = VerifyLayer::new(receiver).layer(service_fn(handle));
//! # Ok(())
//! # }
//! ```

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use std::boxed::Box;

use bytes::{Buf, Bytes};
use http::{Request, Response, header};
use http_body::Body;
use http_body_util::{BodyExt, Either, Full};
use tower_layer::Layer;
use tower_service::Service;

use super::{Receiver, Refusal};
use crate::Verified;

/// A layer that passes only verified requests to the inner service, and responds to others with a [`Refusal`]. The
/// inner service gets the raw body, and a `Verified<Bytes>` in the request's extensions.
#[derive(Debug, Clone)]
pub struct VerifyLayer {
    receiver: Receiver,
}

impl VerifyLayer {
    /// Creates a layer with a receiver's settings.
    #[must_use]
    pub const fn new(receiver: Receiver) -> Self {
        Self { receiver }
    }
}

impl<S> Layer<S> for VerifyLayer {
    type Service = Verify<S>;

    fn layer(&self, inner: S) -> Verify<S> {
        Verify { receiver: self.receiver.clone(), inner }
    }
}

/// The service that [`VerifyLayer`] makes.
#[derive(Debug, Clone)]
pub struct Verify<S> {
    receiver: Receiver,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Verify<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Either<R, Full<Bytes>>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The ready service handles this request; its clone handles the next.
        let clone = self.inner.clone();
        let mut inner = core::mem::replace(&mut self.inner, clone);
        let receiver = self.receiver.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match receive(&receiver, &parts.headers, body).await {
                Ok(verified) => {
                    let body = Full::new(verified.body().clone());
                    parts.extensions.insert(verified);
                    Ok(inner.call(Request::from_parts(parts, body)).await?.map(Either::Left))
                }
                Err(refusal) => Ok(answer(refusal).map(Either::Right)),
            }
        })
    }
}

async fn receive<B: Body>(receiver: &Receiver, headers: &http::HeaderMap, body: B) -> Result<Verified<Bytes>, Refusal> {
    let mut intake = receiver.begin(headers)?;
    let mut body = core::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame.map_err(|_| Refusal::Broken)?.into_data() else { continue };
        while data.has_remaining() {
            let chunk = data.chunk();
            intake.take(chunk)?;
            let taken = chunk.len();
            data.advance(taken);
        }
    }
    intake.finish()
}

fn answer(refusal: Refusal) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(refusal.to_json()));
    *response.status_mut() = refusal.status();
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
