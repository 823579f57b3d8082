//! The scheme of [Standard Webhooks](https://www.standardwebhooks.com), beside the platform's own: an endpoint that asks for
//! it gets the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` too. The key is what follows `whsec_`,
//! decoded from base64.

use core::fmt;

use crate::{
    Failure, SecretError, Signer, StandardHeaders, Verification, Verified, Verifier,
    base64::Base64Digest,
    signer::Decimal,
    standard_headers::StandardParts,
    verifier::{Matches, Parts},
};

impl Verifier {
    /// Verifies a raw body by Standard Webhooks, by the system clock.
    ///
    /// ```
    /// use webhook_verify::{Secret, Signer, StandardHeaders, Verifier};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    /// # let (body, now) = (br#"{"id":"evt_1"}"#, std::time::SystemTime::UNIX_EPOCH.elapsed()?.as_secs());
    /// # let signature = Signer::new(Secret::new(text)?).sign_standard_at("evt_1", body, now)?;
    /// # let time = now.to_string();
    /// let verifier = Verifier::new(Secret::new(text)?);
    /// let headers = StandardHeaders { id: b"evt_1", timestamp: time.as_bytes(), signature: signature.as_ref() };
    /// assert_eq!(verifier.verify_standard(headers, body)?.body(), body);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first [`Failure`] that applies.
    #[cfg(feature = "std")]
    pub fn verify_standard<'b>(
        &self,
        headers: StandardHeaders<'_>,
        body: &'b [u8],
    ) -> Result<Verified<&'b [u8]>, Failure> {
        self.verify_standard_at(headers, body, crate::unix_time::unix_seconds())
    }

    /// Verifies a raw body by Standard Webhooks as of a given Unix time.
    ///
    /// # Errors
    /// The first [`Failure`] that applies.
    pub fn verify_standard_at<'b>(
        &self,
        headers: StandardHeaders<'_>,
        body: &'b [u8],
        now_unix_seconds: u64,
    ) -> Result<Verified<&'b [u8]>, Failure> {
        let parts = self.read_standard(headers, now_unix_seconds)?;
        let [id, dot, time, _] = parts.prefix();
        let mut matches = Matches::default();
        for (nth, secret) in self.secrets().enumerate() {
            if let Some(key) = secret.standard_key() {
                matches.add(nth, parts.matches(&key.digest([id, dot, time, dot, body])));
            }
        }
        matches.finish(body, parts.timestamp, self.tolerance)
    }

    /// Begins to verify a body that arrives in chunks by Standard Webhooks, as of a given Unix time. Checks the headers and the
    /// timestamp immediately.
    ///
    /// # Errors
    /// [`Failure::MalformedHeader`], [`Failure::TimestampOutsideTolerance`] or [`Failure::MissingSecret`].
    pub fn begin_standard_at<'v>(
        &'v self,
        headers: StandardHeaders<'v>,
        now_unix_seconds: u64,
    ) -> Result<Verification<'v>, Failure> {
        let parts = self.read_standard(headers, now_unix_seconds)?;
        let prefix = parts.prefix();
        let macs = self.secrets().map(|secret| Some(secret.standard_key()?.begin(prefix)));
        Ok(self.verification(macs, Parts::Standard(parts)))
    }

    fn read_standard<'h>(&self, headers: StandardHeaders<'h>, now: u64) -> Result<StandardParts<'h>, Failure> {
        if self.secrets().all(|secret| secret.standard_key().is_none()) {
            return Err(SecretError::NotBase64.into());
        }
        let parts = StandardParts::parse(headers)?;
        self.check_age(parts.timestamp, now)?;
        Ok(parts)
    }
}

impl Signer {
    /// Signs an event's body by Standard Webhooks with a given Unix time.
    ///
    /// # Errors
    /// [`SecretError::NotBase64`].
    pub fn sign_standard_at(&self, id: &str, body: &[u8], unix_seconds: u64) -> Result<StandardSignature, SecretError> {
        let key = self.secret().standard_key().ok_or(SecretError::NotBase64)?;
        let time = Decimal::new(unix_seconds);
        let digest = key.digest([id.as_bytes(), b".", time.digits(), b".", body]);
        let mut text = *b"v1,____________________________________________";
        text[3..].copy_from_slice(Base64Digest::new(&digest).text());
        Ok(StandardSignature(text))
    }
}

/// The value of `webhook-signature`: `v1,` and a signature in base64. Does not allocate.
#[derive(Clone, PartialEq, Eq)]
pub struct StandardSignature([u8; 47]);

impl StandardSignature {
    /// The header's value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl AsRef<[u8]> for StandardSignature {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for StandardSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Omits the signature, which is valid until it is too old.
impl fmt::Debug for StandardSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandardSignature(..)")
    }
}
