//! Webhook receivers for `tower`, `axum`, `actix-web` and `warp`, each behind a feature of that name. For any other
//! framework, enable the feature `http` and use [`Receiver::begin`].
//!
//! Each adapter takes a [`Receiver`] and:
//!
//! 1. checks the header and its timestamp before it reads the body;
//! 2. hashes the body while it arrives, and stops reading at the size limit, with or without a `Content-Length`;
//! 3. passes the verified raw bytes to the handler as [`Verified<Bytes>`](crate::Verified);
//! 4. otherwise returns a [`Refusal`], which responds with 400, 401 or 413 and a reason.
//!
//! The adapters do not limit how long a body may take to arrive. Set a timeout in your server.

#[cfg(feature = "actix-web")]
pub mod actix_web;
#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "warp")]
pub mod warp;

use core::fmt;
use std::{string::String, sync::Arc, vec::Vec};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::{Failure, HeaderFault, StandardHeaders, Verification, Verified, Verifier, unix_time::unix_seconds};

/// The settings of a webhook receiver: verifier, header name and maximum body size. Cheap to clone.
///
/// ```
/// use webhook_verify::{Secret, Verifier, adapters::Receiver};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let receiver = Receiver::new(Verifier::new(Secret::new("whsec_8f2d1a")?)).max_body_bytes(64 * 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Receiver {
    verifier: Arc<Verifier>,
    header: HeaderName,
    max_body_bytes: usize,
}

impl Receiver {
    /// The default maximum body size, in bytes.
    pub const DEFAULT_MAX_BODY_BYTES: usize = 256 * 1024;

    /// Creates a receiver with this verifier that reads `X-Service-Signature`, or without it the headers of Standard Webhooks.
    #[must_use]
    pub fn new(verifier: Verifier) -> Self {
        Self {
            verifier: Arc::new(verifier),
            header: HeaderName::from_static("x-service-signature"),
            max_body_bytes: Self::DEFAULT_MAX_BODY_BYTES,
        }
    }

    /// Sets the name of the signature header, if the platform's operator has changed it.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// Sets the maximum body size, in bytes.
    #[must_use]
    pub const fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Returns the value of a request's signature header.
    ///
    /// # Errors
    /// [`HeaderFault::Missing`] or [`HeaderFault::Repeated`].
    pub fn signature<'h>(&self, headers: &'h HeaderMap) -> Result<&'h [u8], Failure> {
        only(headers.get_all(&self.header).iter().map(http::HeaderValue::as_bytes))
    }

    /// Begins to receive a request: checks the signature's format and timestamp, and the `Content-Length` if there is
    /// one.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use webhook_verify::{Verified, adapters::{Receiver, Refusal}};
    ///
    /// fn receive(receiver: &Receiver, headers: &HeaderMap, chunks: &[&[u8]]) -> Result<Verified<bytes::Bytes>, Refusal> {
    ///     let mut intake = receiver.begin(headers)?;
    ///     for chunk in chunks {
    ///         intake.take(chunk)?;
    ///     }
    ///     intake.finish()
    /// }
    /// # use webhook_verify::{Secret, Verifier, testing::Sender};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let receiver = Receiver::new(Verifier::new(Secret::new("whsec_8f2d1a")?)).max_body_bytes(4);
    /// # let mut headers = HeaderMap::new();
    /// # headers.insert("x-service-signature", Sender::new("whsec_8f2d1a")?.good(b"{ }").as_str().parse()?);
    /// # assert_eq!(receive(&receiver, &headers, &[b"{ ", b"}"])?.body(), "{ }");
    /// # assert_eq!(receive(&receiver, &headers, &[b"{ }", b"  "]).unwrap_err().status(), 413);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the signature header is missing, repeated, malformed or outside the tolerance, or the body is too large.
    pub fn begin<'r>(&'r self, headers: &'r HeaderMap) -> Result<Intake<'r>, Refusal> {
        let content_length = headers.get(http::header::CONTENT_LENGTH).map(http::HeaderValue::as_bytes);
        self.begin_with(|name| only(headers.get_all(name).iter().map(http::HeaderValue::as_bytes)), content_length)
    }

    /// Does the same as [`begin`](Self::begin) with a function that returns a header's only value.
    pub(crate) fn begin_with<'r>(
        &'r self,
        header: impl Fn(&str) -> Result<&'r [u8], Failure>,
        content_length: Option<&[u8]>,
    ) -> Result<Intake<'r>, Refusal> {
        let missing = Failure::MalformedHeader(HeaderFault::Missing);
        let verification = match (header(self.header.as_str()), header("webhook-signature")) {
            (Err(failure), Ok(signature)) if failure == missing => {
                let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
                self.verifier.begin_standard_at(StandardHeaders { id, timestamp, signature }, unix_seconds())?
            }
            (signature, _) => self.verifier.begin(signature?)?,
        };
        let length = content_length.and_then(parse_length);
        if length.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |bytes| bytes > self.max_body_bytes)) {
            return Err(self.too_large());
        }
        Ok(Intake { receiver: self, verification, body: Vec::new() })
    }

    fn too_large(&self) -> Refusal {
        Refusal::TooLarge { max_body_bytes: self.max_body_bytes }
    }
}

/// The value of a header that must occur exactly once.
pub(crate) fn only<'h>(mut values: impl Iterator<Item = &'h [u8]>) -> Result<&'h [u8], Failure> {
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(HeaderFault::Missing.into()),
        (Some(_), Some(_)) => Err(HeaderFault::Repeated.into()),
    }
}

/// Parses a `Content-Length`.
fn parse_length(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Hashes and buffers a body while it arrives, up to the size limit.
#[must_use = "nothing is verified until `finish`"]
pub struct Intake<'r> {
    receiver: &'r Receiver,
    verification: Verification<'r>,
    body: Vec<u8>,
}

impl Intake<'_> {
    /// Adds the next chunk of the body.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] if the body exceeds the limit. Stop reading then.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        if self.body.len() + chunk.len() > self.receiver.max_body_bytes {
            return Err(self.receiver.too_large());
        }
        self.verification.update(chunk);
        self.body.extend_from_slice(chunk);
        Ok(())
    }

    /// Checks the signatures and returns the whole body.
    ///
    /// # Errors
    /// [`Failure::SignatureMismatch`].
    pub fn finish(self) -> Result<Verified<Bytes>, Refusal> {
        Ok(self.verification.finish_with(self.body.into())?)
    }
}

/// Shows only the number of bytes received.
impl fmt::Debug for Intake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Why the receiver refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Verification failed.
    #[error(transparent)]
    Unverified(#[from] Failure),
    /// The body is longer than [`Receiver::max_body_bytes`] (413).
    #[error("the body is longer than {max_body_bytes} bytes")]
    TooLarge {
        /// The maximum body size.
        max_body_bytes: usize,
    },
    /// The connection failed before the end of the body (400).
    #[error("the body ended early")]
    Broken,
}

impl Refusal {
    /// The HTTP status to respond with: 400, 401 or 413, or 500 if the receiver has no secret.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Unverified(Failure::SignatureMismatch) => StatusCode::UNAUTHORIZED,
            Self::Unverified(Failure::MissingSecret(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unverified(Failure::MalformedHeader(_) | Failure::TimestampOutsideTolerance { .. })
            | Self::Broken => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    /// The JSON body to respond with: `statusCode`, `message` and `error`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let status = self.status();
        let reason = status.canonical_reason().unwrap_or_default();
        // Both texts are constants of this crate or `http` without characters that JSON escapes.
        std::format!(r#"{{"statusCode":{},"message":"{self}","error":"{reason}"}}"#, status.as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Secret, testing::Sender};

    #[test]
    fn debug_and_errors_show_no_part_of_a_body() {
        let receiver = Receiver::new(Verifier::new(Secret::new("whsec_5ecre7").unwrap())).max_body_bytes(20);
        let mut headers = HeaderMap::new();
        let signature = Sender::new("whsec_5ecre7").unwrap().forged(b"a-customers-name");
        headers.insert("x-service-signature", signature.as_str().parse().unwrap());
        let mut intake = receiver.begin(&headers).unwrap();
        intake.take(b"a-customers-name").unwrap();
        let too_large = intake.take(b"a-customers-name").unwrap_err();
        let mut shown = std::format!("{receiver:?} {intake:?}");
        for refusal in [too_large, intake.finish().unwrap_err(), Refusal::Broken] {
            shown.push_str(&std::format!("{refusal} {refusal:?} {}", refusal.to_json()));
        }
        assert!(shown.contains("bytes: 16"), "{shown}");
        let digest = signature.as_str().split_once("v1=").unwrap().1;
        // `97, 45` is how `Debug` shows these bytes as a list.
        for hidden in ["5ecre7", "customer", "97, 45", &digest[..8]] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
