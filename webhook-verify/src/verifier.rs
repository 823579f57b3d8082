//! Verifies a signature header against a body, whole or in chunks.

use core::fmt;

use crate::{
    Failure, Secret, SecretError, Tolerance,
    header::SignatureParts,
    mac::{Digest, Mac},
    standard_headers::StandardParts,
};

/// The maximum number of secrets of a verifier. Each costs one HMAC per request.
pub const MAX_SECRETS: usize = 8;

/// Verifies webhook signatures with one secret, or several during a rotation. Create one and share it between threads.
///
/// ```
/// use webhook_verify::{Secret, Tolerance, Verifier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let verifier = Verifier::new(Secret::new("whsec_new")?)
///     .also_accept(Secret::new("whsec_old")?)?
///     .tolerance(Tolerance::seconds(120));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Verifier {
    first: Secret,
    others: [Option<Secret>; MAX_SECRETS - 1],
    pub(crate) tolerance: Tolerance,
}

impl Verifier {
    /// Creates a verifier with this secret and the default tolerance of 300 seconds.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self { first: secret, others: [const { None }; MAX_SECRETS - 1], tolerance: Tolerance::default() }
    }

    /// Creates a verifier with these secrets, in order.
    ///
    /// # Errors
    /// [`Failure::MissingSecret`] if the list is empty or any entry is not a valid secret.
    pub fn from_secrets<'s>(texts: impl IntoIterator<Item = &'s str>) -> Result<Self, Failure> {
        let mut verifier: Option<Self> = None;
        for text in texts {
            let secret = Secret::new(text)?;
            verifier = Some(match verifier {
                None => Self::new(secret),
                Some(verifier) => verifier.also_accept(secret)?,
            });
        }
        verifier.ok_or(Failure::MissingSecret(SecretError::NoneGiven))
    }

    /// Accepts another secret, for a rotation.
    ///
    /// # Errors
    /// [`SecretError::TooMany`] if the verifier already has [`MAX_SECRETS`].
    pub fn also_accept(mut self, secret: Secret) -> Result<Self, SecretError> {
        let free = self.others.iter_mut().find(|slot| slot.is_none()).ok_or(SecretError::TooMany)?;
        *free = Some(secret);
        Ok(self)
    }

    /// Sets how far a signature's timestamp may be from now.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies a raw body against the value of its `X-Service-Signature` header, by the system clock.
    ///
    /// # Errors
    /// The first [`Failure`] that applies.
    #[cfg(feature = "std")]
    pub fn verify<'b>(&self, header: impl AsRef<[u8]>, body: &'b [u8]) -> Result<Verified<&'b [u8]>, Failure> {
        self.verify_at(header, body, crate::unix_time::unix_seconds())
    }

    /// Verifies a raw body as of a given Unix time.
    ///
    /// # Errors
    /// The first [`Failure`] that applies.
    pub fn verify_at<'b>(
        &self,
        header: impl AsRef<[u8]>,
        body: &'b [u8],
        now_unix_seconds: u64,
    ) -> Result<Verified<&'b [u8]>, Failure> {
        let parts = self.read_header(header.as_ref(), now_unix_seconds)?;
        let mut matches = Matches::default();
        for (nth, secret) in self.secrets().enumerate() {
            matches.add(nth, parts.matches(&secret.key().digest([parts.timestamp_text, b".", body])));
        }
        matches.finish(body, parts.timestamp, self.tolerance)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        core::iter::once(&self.first).chain(self.others.iter().map_while(Option::as_ref))
    }

    /// Parses the header and checks the timestamp.
    #[inline]
    fn read_header<'h>(&self, header: &'h [u8], now: u64) -> Result<SignatureParts<'h>, Failure> {
        let parts = SignatureParts::parse(header)?;
        self.check_age(parts.timestamp, now)?;
        Ok(parts)
    }

    pub(crate) fn check_age(&self, timestamp: u64, now: u64) -> Result<(), Failure> {
        let Some(tolerance_seconds) = self.tolerance.as_seconds() else {
            return Ok(());
        };
        let off_by_seconds = timestamp.abs_diff(now);
        if off_by_seconds <= tolerance_seconds {
            return Ok(());
        }
        Err(Failure::TimestampOutsideTolerance {
            off_by_seconds,
            in_the_future: timestamp > now,
            tolerance_seconds,
            looks_like_milliseconds: (timestamp / 1000).abs_diff(now) <= tolerance_seconds,
        })
    }

    /// Begins to verify a body that arrives in chunks, by the system clock. Checks the header and the timestamp
    /// immediately, so you can reject a request before you read its body.
    ///
    /// # Errors
    /// [`Failure::MalformedHeader`] or [`Failure::TimestampOutsideTolerance`].
    #[cfg(feature = "std")]
    pub fn begin<'v>(&'v self, header: &'v (impl AsRef<[u8]> + ?Sized)) -> Result<Verification<'v>, Failure> {
        self.begin_at(header, crate::unix_time::unix_seconds())
    }

    /// Begins to verify a body that arrives in chunks, as of a given Unix time.
    ///
    /// # Errors
    /// [`Failure::MalformedHeader`] or [`Failure::TimestampOutsideTolerance`].
    pub fn begin_at<'v>(
        &'v self,
        header: &'v (impl AsRef<[u8]> + ?Sized),
        now_unix_seconds: u64,
    ) -> Result<Verification<'v>, Failure> {
        let parts = self.read_header(header.as_ref(), now_unix_seconds)?;
        let prefix = parts.prefix();
        let macs = self.secrets().map(|secret| Some(secret.key().begin(prefix)));
        Ok(self.verification(macs, Parts::Service(parts)))
    }

    /// A verification with the HMAC of each secret that has a key for its scheme.
    pub(crate) fn verification<'v>(
        &self,
        begun: impl Iterator<Item = Option<Mac>>,
        parts: Parts<'v>,
    ) -> Verification<'v> {
        let mut macs = [const { None }; MAX_SECRETS];
        macs.iter_mut().zip(begun).for_each(|(slot, mac)| *slot = mac);
        Verification { parts, macs, tolerance: self.tolerance }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("secrets", &self.secrets().count())
            .field("tolerance", &self.tolerance)
            .finish()
    }
}

/// A verification whose header and timestamp passed and whose body is still arriving.
///
/// ```
/// use webhook_verify::{Secret, Signer, Verifier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let header = Signer::new(Secret::new("whsec_8f2d1a")?).sign_now(b"{\"id\":1}");
/// let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
/// let mut verification = verifier.begin(&header)?;
/// verification.update(b"{\"id\"");
/// verification.update(b":1}");
/// verification.finish()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is verified until `finish`"]
pub struct Verification<'v> {
    parts: Parts<'v>,
    macs: [Option<Mac>; MAX_SECRETS],
    tolerance: Tolerance,
}

/// The headers of one of the two schemes.
pub(crate) enum Parts<'v> {
    Service(SignatureParts<'v>),
    Standard(StandardParts<'v>),
}

impl Parts<'_> {
    const fn timestamp(&self) -> u64 {
        match self {
            Self::Service(parts) => parts.timestamp,
            Self::Standard(parts) => parts.timestamp,
        }
    }

    fn matches(&self, expected: &Digest) -> u8 {
        match self {
            Self::Service(parts) => parts.matches(expected),
            Self::Standard(parts) => parts.matches(expected),
        }
    }
}

impl Verification<'_> {
    /// Adds the next chunk of the body. Chunks may have any size.
    pub fn update(&mut self, chunk: &[u8]) {
        for mac in self.macs.iter_mut().flatten() {
            mac.update(chunk);
        }
    }

    /// Ends the body and checks the signatures.
    ///
    /// # Errors
    /// [`Failure::SignatureMismatch`]. Discard the body you have read.
    pub fn finish(self) -> Result<Verified<()>, Failure> {
        self.finish_with(())
    }

    /// Does the same as [`finish`](Self::finish) with the body that the caller has buffered.
    pub(crate) fn finish_with<B>(self, body: B) -> Result<Verified<B>, Failure> {
        let mut matches = Matches::default();
        for (nth, mac) in self.macs.into_iter().enumerate() {
            if let Some(mac) = mac {
                matches.add(nth, self.parts.matches(&mac.finish()));
            }
        }
        matches.finish(body, self.parts.timestamp(), self.tolerance)
    }
}

/// Records which secrets have matched so far. Compares every signature with every secret's digest and ORs the results, so the
/// time depends only on their numbers.
#[derive(Default)]
pub(crate) struct Matches {
    /// One bit per secret; the first secret has the lowest bit.
    secrets: u8,
}

impl Matches {
    #[inline]
    pub(crate) fn add(&mut self, nth_secret: usize, matched: u8) {
        self.secrets |= matched << nth_secret;
    }

    pub(crate) fn finish<B>(self, body: B, timestamp: u64, tolerance: Tolerance) -> Result<Verified<B>, Failure> {
        if self.secrets == 0 {
            return Err(Failure::SignatureMismatch);
        }
        let matched_secret = self.secrets.trailing_zeros() as usize;
        Ok(Verified { body, timestamp, tolerance, matched_secret })
    }
}

impl fmt::Debug for Verification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").field("timestamp", &self.parts.timestamp()).finish_non_exhaustive()
    }
}

/// A verified body: it was signed with a known secret within the tolerance. Only this crate can create one.
///
/// ```compile_fail
/// use webhook_verify::Verified;
///
/// let forged = Verified { body: b"{}", timestamp: 0, tolerance: Default::default(), matched_secret: 0 };
/// ```
#[derive(Clone, Copy)]
pub struct Verified<B> {
    body: B,
    timestamp: u64,
    tolerance: Tolerance,
    matched_secret: usize,
}

impl<B> Verified<B> {
    /// The verified body.
    pub const fn body(&self) -> &B {
        &self.body
    }

    /// Returns the verified body.
    pub fn into_body(self) -> B {
        self.body
    }

    /// When the body was signed, in Unix seconds.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The tolerance that applied. An attacker can replay the request for twice as long, so a replay guard remembers the
    /// event for that time.
    pub const fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// The index of the secret that matched, in the order given to the verifier. During a rotation, drop the old secret once
    /// nothing matches it any more.
    pub const fn matched_secret(&self) -> usize {
        self.matched_secret
    }
}

/// Omits the body, which holds customer data.
impl<B> fmt::Debug for Verified<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("timestamp", &self.timestamp)
            .field("matched_secret", &self.matched_secret)
            .finish_non_exhaustive()
    }
}
