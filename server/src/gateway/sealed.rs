//! Encryption of a gateway's token on disk, under the gateway's secret.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// Encrypts and decrypts with a key derived from a secret.
pub(super) struct Seal(RandomizedNonceKey);

impl Seal {
    /// Never `None` with a key of this length; the library's type allows it.
    pub(super) fn new(secret: &SecretString) -> Option<Self> {
        let key = Sha256::new().chain_update("gateway token\n").chain_update(secret.expose_secret()).finalize();
        RandomizedNonceKey::new(&AES_256_GCM, &key).ok().map(Self)
    }

    pub(super) fn seal(&self, text: &SecretString) -> Option<Vec<u8>> {
        let mut bytes = text.expose_secret().as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut bytes).ok()?;
        Some([nonce.as_ref().as_slice(), &bytes].concat())
    }

    /// `None` if it was sealed under another secret, or is corrupt.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<SecretString> {
        let (nonce, bytes) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = bytes.to_vec();
        let text = self.0.open_in_place(nonce, Aad::empty(), &mut bytes).ok()?;
        std::str::from_utf8(text).ok().map(SecretString::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_that_sealed_a_token_opens_it() {
        let seal = Seal::new(&"app secret".into()).unwrap();
        let sealed = seal.seal(&"token".into()).unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"token"));
        assert_eq!(seal.open(&sealed).unwrap().expose_secret(), "token");
        assert!(Seal::new(&"another".into()).unwrap().open(&sealed).is_none());
        let mut damaged = sealed.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(seal.open(&damaged).is_none());
        assert!(seal.open(b"short").is_none());
        assert_ne!(seal.seal(&"token".into()).unwrap(), sealed, "each seal has its own nonce");
    }
}
