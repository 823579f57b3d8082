//! An axum extractor.
//!
//! ```
//! use axum_core::extract::FromRef;
//! use webhook_verify::{Secret, Verifier, adapters::{Receiver, axum::VerifiedBody}};
//!
//! // With `Router::new().route("/webhooks", post(handle)).with_state(receiver)`:
//! async fn handle(VerifiedBody(verified): VerifiedBody) {
//!     println!("{} verified bytes", verified.body().len());
//! }
//! ```

use axum_core::{
    body::Body,
    extract::{FromRef, FromRequest, Request},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::BodyExt;

use super::{Receiver, Refusal};
use crate::Verified;

/// Extracts the verified raw body of a request, or responds with a [`Refusal`]. The router's state must contain a
/// [`Receiver`] (`FromRef`).
#[derive(Debug, Clone)]
pub struct VerifiedBody(pub Verified<Bytes>);

impl<S> FromRequest<S> for VerifiedBody
where
    Receiver: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let receiver = Receiver::from_ref(state);
        let (parts, mut body) = request.into_parts();
        let mut intake = receiver.begin(&parts.headers)?;
        while let Some(frame) = body.frame().await {
            if let Ok(chunk) = frame.map_err(|_| Refusal::Broken)?.into_data() {
                intake.take(&chunk)?;
            }
        }
        intake.finish().map(Self)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json()));
        *response.status_mut() = self.status();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
