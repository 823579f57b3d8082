//! Signs webhook bodies.

use core::fmt;

use crate::{Secret, hex::HexDigest};

/// Signs webhook bodies, as the platform does for each delivery. Receivers use it in their tests.
///
/// ```
/// use webhook_verify::{Secret, Signer, Verifier};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let signer = Signer::new(Secret::new("whsec_8f2d1a")?);
/// let header = signer.sign_at(b"{}", 1_700_000_000);
/// assert!(header.as_str().starts_with("t=1700000000,v1="));
///
/// let verifier = Verifier::new(Secret::new("whsec_8f2d1a")?);
/// assert!(verifier.verify_at(&header, b"{}", 1_700_000_010).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Signer {
    secret: Secret,
}

impl Signer {
    /// Creates a signer with this secret.
    #[must_use]
    pub const fn new(secret: Secret) -> Self {
        Self { secret }
    }

    /// Signs the body with the current time.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn sign_now(&self, body: &[u8]) -> SignatureHeader {
        self.sign_at(body, crate::unix_time::unix_seconds())
    }

    /// Signs the body with a given Unix time.
    #[must_use]
    pub fn sign_at(&self, body: &[u8], unix_seconds: u64) -> SignatureHeader {
        let time = Decimal::new(unix_seconds);
        let digest = self.secret.key().digest([time.digits(), b".", body]);
        let mut header = SignatureHeader { text: [0; CAPACITY], length: 0 };
        for part in [b"t=", time.digits(), b",v1=", HexDigest::new(&digest).digits()] {
            header.push(part);
        }
        header
    }

    pub(crate) const fn secret(&self) -> &Secret {
        &self.secret
    }
}

/// A number's digits.
pub(crate) struct Decimal {
    text: [u8; 20],
    first: usize,
}

impl Decimal {
    pub(crate) fn new(mut rest: u64) -> Self {
        let (mut text, mut first) = ([0; 20], 20);
        loop {
            first -= 1;
            text[first] = b"0123456789"[(rest % 10) as usize];
            rest /= 10;
            if rest == 0 {
                return Self { text, first };
            }
        }
    }

    pub(crate) fn digits(&self) -> &[u8] {
        &self.text[self.first..]
    }
}

/// The maximum length: `t=` and 20 digits, `,v1=` and 64 digits.
const CAPACITY: usize = 2 + 20 + 4 + 64;

/// The value of the signature header: `t=<unix-seconds>,v1=<hex hmac>`. Does not allocate.
#[derive(Clone, PartialEq, Eq)]
pub struct SignatureHeader {
    text: [u8; CAPACITY],
    length: usize,
}

impl SignatureHeader {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.text[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// The header's value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

impl AsRef<[u8]> for SignatureHeader {
    fn as_ref(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl fmt::Display for SignatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Omits the signature, which is valid until it is too old.
impl fmt::Debug for SignatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignatureHeader(..)")
    }
}
