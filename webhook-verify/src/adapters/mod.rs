//! Receiving webhooks in the usual frameworks, each by a feature of its own: `tower`, `axum`, `actix-web`, `warp`. For any
//! other the feature `http` alone has [`Receiver::begin`], on which these stand.
//!
//! All of them do the same, by the settings of a [`Receiver`]:
//!
//! 1. The header and its time are judged before the body is read.
//! 2. The body is hashed while it arrives, and not read beyond the limit, whether or not its length was announced.
//! 3. The handler gets the verified raw bytes as [`Verified<Bytes>`](crate::Verified).
//! 4. Anything else is a [`Refusal`], answered with its status and a reason: 400, 401 or 413.
//!
//! How long a body may take to arrive is the server's affair; set a timeout there.

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

use crate::{Failure, HeaderFault, Verification, Verified, Verifier};

/// How webhooks are received: with which secrets, under which header, and how much of a body at most. Cheap to clone.
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
    /// The longest body that is read unless said otherwise, in bytes.
    pub const DEFAULT_MAX_BODY_BYTES: usize = 256 * 1024;

    /// Receives what this verifier takes, signed in `X-Service-Signature`.
    #[must_use]
    pub fn new(verifier: Verifier) -> Self {
        Self {
            verifier: Arc::new(verifier),
            header: HeaderName::from_static("x-service-signature"),
            max_body_bytes: Self::DEFAULT_MAX_BODY_BYTES,
        }
    }

    /// Sets the header that holds the signature, where the platform's operator uses another word than `Service`.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// Sets the longest body that is read, in bytes.
    #[must_use]
    pub const fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// The signature out of a request's headers.
    ///
    /// # Errors
    /// [`HeaderFault::Missing`] or [`HeaderFault::Repeated`]: of two signature headers nobody can say which counts.
    pub fn signature<'h>(&self, headers: &'h HeaderMap) -> Result<&'h [u8], Failure> {
        only(headers.get_all(&self.header).iter().map(http::HeaderValue::as_bytes))
    }

    /// Begins to receive a request by its headers: the signature's form and time are judged, and the body's length where
    /// it is announced.
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
    /// A signature that is missing, repeated, malformed or not of now, or a length beyond the limit.
    pub fn begin<'r>(&'r self, headers: &'r HeaderMap) -> Result<Intake<'r>, Refusal> {
        let announced = headers.get(http::header::CONTENT_LENGTH).map(http::HeaderValue::as_bytes);
        self.begin_with(self.signature(headers)?, announced)
    }

    /// Begins to receive a body by its signature and the `Content-Length` that may announce it.
    pub(crate) fn begin_with<'r>(
        &'r self,
        signature: &'r [u8],
        content_length: Option<&[u8]>,
    ) -> Result<Intake<'r>, Refusal> {
        let verification = self.verifier.begin(signature)?;
        let announced = announced_length(content_length);
        if announced.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |bytes| bytes > self.max_body_bytes)) {
            return Err(self.too_large());
        }
        Ok(Intake { receiver: self, verification, body: Vec::new() })
    }

    fn too_large(&self) -> Refusal {
        Refusal::TooLarge { max_body_bytes: self.max_body_bytes }
    }
}

/// The one value of a header that must come once.
pub(crate) fn only<'h>(mut values: impl Iterator<Item = &'h [u8]>) -> Result<&'h [u8], Failure> {
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(HeaderFault::Missing.into()),
        (Some(_), Some(_)) => Err(HeaderFault::Repeated.into()),
    }
}

/// The length that a `Content-Length` announces; what is not a number announces none.
fn announced_length(value: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(value?).ok()?.parse().ok()
}

/// A body while it arrives: it is hashed, kept, and refused once it becomes longer than the limit.
#[must_use = "nothing is verified until `finish`"]
pub struct Intake<'r> {
    receiver: &'r Receiver,
    verification: Verification<'r>,
    body: Vec<u8>,
}

impl Intake<'_> {
    /// Takes the next piece of the body.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] if the body would become longer than the limit. Stop reading then.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        if self.body.len() + chunk.len() > self.receiver.max_body_bytes {
            return Err(self.receiver.too_large());
        }
        self.verification.update(chunk);
        self.body.extend_from_slice(chunk);
        Ok(())
    }

    /// The whole body, if its signature is genuine.
    ///
    /// # Errors
    /// [`Failure::SignatureMismatch`].
    pub fn finish(self) -> Result<Verified<Bytes>, Refusal> {
        Ok(self.verification.finish_with(self.body.into())?)
    }
}

/// Shows how much has arrived, and nothing of it.
impl fmt::Debug for Intake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not genuine, or not fresh.
    #[error(transparent)]
    Unverified(#[from] Failure),
    /// Its body is longer than [`Receiver::max_body_bytes`] (413).
    #[error("the body is longer than {max_body_bytes} bytes")]
    TooLarge {
        /// The longest body that is read.
        max_body_bytes: usize,
    },
    /// Its body broke off (400).
    #[error("the body broke off before its end")]
    Broken,
}

impl Refusal {
    /// The status to answer with: 400, 401 or 413; 500 where this receiver has no secret.
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

    /// The body to answer with: `{"statusCode", "message", "error"}`, as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let status = self.status();
        let reason = status.canonical_reason().unwrap_or_default();
        // Neither text holds a character that JSON would escape: both are this crate's own.
        std::format!(r#"{{"statusCode":{},"message":"{self}","error":"{reason}"}}"#, status.as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Secret, testing::Sender};

    #[test]
    fn what_is_shown_of_a_body_under_way_and_of_a_refusal_holds_nothing_of_it() {
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
        // In numbers, too, as a list of bytes would be shown.
        for hidden in ["5ecre7", "customer", "97, 45", &digest[..8]] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
