//! Encryption of a text on disk, under a secret and for one purpose.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::ambient::Ambient;

/// Encrypts a text. The random nonce comes from `ambient`, so that a replayed simulation has the same nonces.
pub(crate) fn seal(
    secret: &SecretString,
    purpose: &str,
    text: &SecretString,
    ambient: &dyn Ambient,
) -> Option<Vec<u8>> {
    let nonce: [u8; NONCE_LEN] = ambient.random();
    let mut bytes = text.expose_secret().as_bytes().to_vec();
    key(secret, purpose)?
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
        .ok()?;
    Some([nonce.as_slice(), &bytes].concat())
}

/// Decrypts a text. `None` if it was sealed under another secret or for another purpose, or is corrupt.
pub(crate) fn open(secret: &SecretString, purpose: &str, sealed: &[u8]) -> Option<SecretString> {
    let (nonce, bytes) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut bytes = bytes.to_vec();
    let text = key(secret, purpose)?.open_in_place(nonce, Aad::empty(), &mut bytes).ok()?;
    std::str::from_utf8(text).ok().map(SecretString::from)
}

/// Names an account without revealing anything about it. Its parts contain no newline.
pub(crate) fn name(secret: &SecretString, parts: &[&str]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let text = format!("gateway account\n{}", parts.join("\n"));
    hex::encode(&hmac::sign(&key, text.as_bytes()).as_ref()[..16])
}

/// Returns `None` only because the library's type allows it: a digest always has the right length.
fn key(secret: &SecretString, purpose: &str) -> Option<LessSafeKey> {
    let key = Sha256::new().chain_update(purpose).chain_update("\n").chain_update(secret.expose_secret()).finalize();
    UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::OperatingSystem;

    #[test]
    fn only_the_secret_and_the_purpose_that_sealed_a_text_open_it() {
        let secret = "app secret".into();
        let sealed = seal(&secret, "tokens", &"token".into(), &OperatingSystem).unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"token"));
        assert_eq!(open(&secret, "tokens", &sealed).unwrap().expose_secret(), "token");
        assert!(open(&"another".into(), "tokens", &sealed).is_none());
        assert!(open(&secret, "numbers", &sealed).is_none());
        let mut damaged = sealed.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(open(&secret, "tokens", &damaged).is_none());
        assert!(open(&secret, "tokens", b"short").is_none());
        assert_ne!(
            seal(&secret, "tokens", &"token".into(), &OperatingSystem).unwrap(),
            sealed,
            "each seal has its own nonce"
        );
    }
}
