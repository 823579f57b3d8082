//! Verifying a signature header against a body, whole or in pieces.

use core::fmt;

use crate::{
    Failure, Secret, SecretError, Tolerance,
    header::SignatureParts,
    hex::HexDigest,
    mac::{Digest, Mac},
};

/// How many secrets a verifier takes at most: enough for any rotation, few enough that a request stays cheap.
pub const MAX_SECRETS: usize = 8;

/// Verifies webhooks with one secret, or with several while one replaces the other. Made once, used for every request
/// from any thread.
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
    tolerance: Tolerance,
}

impl Verifier {
    /// A verifier with this secret and the default tolerance of 300 seconds.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self { first: secret, others: [const { None }; MAX_SECRETS - 1], tolerance: Tolerance::default() }
    }

    /// A verifier with the secrets of a list, in its order, such as a configuration names them during a rotation.
    ///
    /// # Errors
    /// [`Failure::MissingSecret`] if the list is empty or any entry of it cannot be a secret: a half-set rotation is
    /// a mistake to hear about at start.
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

    /// Takes a further secret: while an endpoint's secret is being replaced, both the old and the new one count.
    ///
    /// # Errors
    /// When there are [`MAX_SECRETS`] already.
    pub fn also_accept(mut self, secret: Secret) -> Result<Self, SecretError> {
        let free = self.others.iter_mut().find(|slot| slot.is_none()).ok_or(SecretError::TooMany)?;
        *free = Some(secret);
        Ok(self)
    }

    /// Sets how far a signature's time may lie from now.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies a body by the system's clock. The header is the value of `X-Service-Signature`; the body is the bytes
    /// as they arrived.
    ///
    /// # Errors
    /// The first of [`Failure`]'s reasons that applies.
    #[cfg(feature = "std")]
    pub fn verify<'b>(&self, header: impl AsRef<[u8]>, body: &'b [u8]) -> Result<Verified<&'b [u8]>, Failure> {
        self.verify_at(header, body, crate::unix_time::unix_seconds())
    }

    /// Verifies a body as of a time in seconds since 1970.
    ///
    /// # Errors
    /// The first of [`Failure`]'s reasons that applies.
    pub fn verify_at<'b>(
        &self,
        header: impl AsRef<[u8]>,
        body: &'b [u8],
        now_unix_seconds: u64,
    ) -> Result<Verified<&'b [u8]>, Failure> {
        let parts = self.read_header(header.as_ref(), now_unix_seconds)?;
        let mut matches = Matches::default();
        for secret in self.secrets() {
            matches.look_for(&secret.key().digest(parts.timestamp_text, body), &parts);
        }
        matches.prove(body, &parts, self.tolerance)
    }

    fn secrets(&self) -> impl Iterator<Item = &Secret> {
        core::iter::once(&self.first).chain(self.others.iter().map_while(Option::as_ref))
    }

    /// What can be judged before the body is there.
    #[inline]
    fn read_header<'h>(&self, header: &'h [u8], now: u64) -> Result<SignatureParts<'h>, Failure> {
        let parts = SignatureParts::parse(header)?;
        check_age(parts.timestamp, now, self.tolerance)?;
        Ok(parts)
    }

    /// Begins with a body that arrives in pieces, by the system's clock. Header and time are judged at once, so a
    /// request that cannot pass need not be read.
    ///
    /// # Errors
    /// [`Failure::MalformedHeader`] or [`Failure::TimestampOutsideTolerance`].
    #[cfg(feature = "std")]
    pub fn begin<'v>(&'v self, header: &'v (impl AsRef<[u8]> + ?Sized)) -> Result<Verification<'v>, Failure> {
        self.begin_at(header, crate::unix_time::unix_seconds())
    }

    /// Begins with a body that arrives in pieces, as of a time in seconds since 1970.
    ///
    /// # Errors
    /// [`Failure::MalformedHeader`] or [`Failure::TimestampOutsideTolerance`].
    pub fn begin_at<'v>(
        &'v self,
        header: &'v (impl AsRef<[u8]> + ?Sized),
        now_unix_seconds: u64,
    ) -> Result<Verification<'v>, Failure> {
        let parts = self.read_header(header.as_ref(), now_unix_seconds)?;
        let mut macs = [const { None }; MAX_SECRETS];
        for (slot, secret) in macs.iter_mut().zip(self.secrets()) {
            *slot = Some(secret.key().begin(parts.timestamp_text));
        }
        Ok(Verification { parts, macs, tolerance: self.tolerance })
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

fn check_age(timestamp: u64, now: u64, tolerance: Tolerance) -> Result<(), Failure> {
    let Some(tolerance_seconds) = tolerance.as_seconds() else {
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

/// A verification under way: its header was read and its time is good; the body is still arriving.
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
    parts: SignatureParts<'v>,
    macs: [Option<Mac>; MAX_SECRETS],
    tolerance: Tolerance,
}

impl Verification<'_> {
    /// Takes the next piece of the body. Where the pieces are cut makes no difference.
    pub fn update(&mut self, chunk: &[u8]) {
        for mac in self.macs.iter_mut().flatten() {
            mac.update(chunk);
        }
    }

    /// Ends the body and says whether any signature matches.
    ///
    /// # Errors
    /// [`Failure::SignatureMismatch`]. What was read of the body must then be thrown away.
    pub fn finish(self) -> Result<Verified<()>, Failure> {
        self.finish_with(())
    }

    /// Ends the body, which the caller has kept.
    pub(crate) fn finish_with<B>(self, body: B) -> Result<Verified<B>, Failure> {
        let mut matches = Matches::default();
        for mac in self.macs.into_iter().map_while(|mac| mac) {
            matches.look_for(&mac.finish(), &self.parts);
        }
        matches.prove(body, &self.parts, self.tolerance)
    }
}

/// What has matched so far. Every signature is compared with every secret's digest, whatever matched before, and the
/// outcomes are OR-ed: the time taken tells how many there are, which the sender knows, and nothing else.
#[derive(Default)]
struct Matches {
    /// A bit for each secret, the first one's lowest.
    secrets: u8,
    looked_for: u32,
}

impl Matches {
    #[inline]
    fn look_for(&mut self, expected: &Digest, parts: &SignatureParts<'_>) {
        let expected = HexDigest::new(expected);
        let matched = parts.digests().iter().fold(0, |any, digest| any | expected.ct_eq(digest).unwrap_u8());
        self.secrets |= matched << self.looked_for;
        self.looked_for += 1;
    }

    fn prove<B>(self, body: B, parts: &SignatureParts<'_>, tolerance: Tolerance) -> Result<Verified<B>, Failure> {
        if self.secrets == 0 {
            return Err(Failure::SignatureMismatch);
        }
        let matched_secret = self.secrets.trailing_zeros() as usize;
        Ok(Verified { body, timestamp: parts.timestamp, tolerance, matched_secret })
    }
}

impl fmt::Debug for Verification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").field("timestamp", &self.parts.timestamp).finish_non_exhaustive()
    }
}

/// The proof that a body was signed with a known secret within the tolerance. Only this crate can make one.
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

    /// Gives the verified body away, and the proof with it.
    pub fn into_body(self) -> B {
        self.body
    }

    /// The time of signing, in seconds since 1970.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The tolerance that the time of signing passed. For twice as long the same request could be taken again, so the
    /// guard against replays remembers the event for that long.
    pub const fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// Which secret matched, counted from 0 in the order in which the verifier got them. During a rotation: when
    /// nothing matches the old one any more, it can be dropped.
    pub const fn matched_secret(&self) -> usize {
        self.matched_secret
    }
}

/// Shows when it was signed and with which secret, and nothing of the body: it holds a customer's data.
impl<B> fmt::Debug for Verified<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("timestamp", &self.timestamp)
            .field("matched_secret", &self.matched_secret)
            .finish_non_exhaustive()
    }
}
