//! An actix-web extractor.
//!
//! ```
//! use actix_web::{HttpResponse, Responder};
//! use webhook_verify::adapters::actix_web::VerifiedBody;
//!
//! // With `App::new().app_data(receiver.clone()).route("/webhooks", web::post().to(handle))`:
//! async fn handle(body: VerifiedBody) -> impl Responder {
//!     println!("{} verified bytes", body.0.body().len());
//!     HttpResponse::Ok()
//! }
//! ```

use core::{future::Future, pin::Pin};
use std::boxed::Box;

use actix_web::{
    FromRequest, HttpRequest, HttpResponse, ResponseError,
    dev::Payload,
    http::{StatusCode, header},
    web,
};
use bytes::Bytes;
use futures_util::StreamExt;

use super::{Receiver, Refusal, only};
use crate::{Failure, SecretError, Verified};

/// Extracts the verified raw body of a request, or responds with a [`Refusal`]. The app data must contain a
/// [`Receiver`], plain or as `web::Data`; otherwise the extractor responds with 500.
#[derive(Debug, Clone)]
pub struct VerifiedBody(pub Verified<Bytes>);

impl FromRequest for VerifiedBody {
    type Error = Refusal;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Refusal>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let shared = || request.app_data::<web::Data<Receiver>>().map(web::Data::get_ref);
            let receiver = request.app_data::<Receiver>().or_else(shared);
            let receiver = receiver.ok_or(Failure::MissingSecret(SecretError::NoneGiven))?;
            let headers = request.headers();
            let only = |name: &str| only(headers.get_all(name).map(header::HeaderValue::as_bytes));
            let content_length = headers.get(header::CONTENT_LENGTH).map(header::HeaderValue::as_bytes);
            let mut intake = receiver.begin_with(only, content_length)?;
            while let Some(chunk) = payload.next().await {
                intake.take(&chunk.map_err(|_| Refusal::Broken)?)?;
            }
            intake.finish().map(Self)
        })
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        // actix-web uses another version of `http`.
        StatusCode::from_u16(self.status().as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).content_type("application/json").body(self.to_json())
    }
}
