//! ID tokens: signed as they should be, or wrong in one way.

use std::{fmt, str::FromStr};

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};

use super::CLIENT_SECRET;
use crate::{bkash::base64, now};

/// What is wrong with an ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// It is for another client.
    Audience,
    /// It is of another sign-in.
    Nonce,
    /// Another provider made it.
    Issuer,
    /// It expired a minute ago.
    Expired,
    /// It has no signature, and its algorithm is `none`.
    Unsigned,
    /// Its algorithm is HS256, and its secret the public key.
    PublicKeyAsSecret,
    /// Its algorithm is HS256, and its secret the client's.
    ClientSecret,
    /// Its claims are not what was signed.
    Changed,
}

impl Wrong {
    /// Each way to be wrong, with its name.
    pub const ALL: [(&str, Self); 8] = [
        ("audience", Self::Audience),
        ("nonce", Self::Nonce),
        ("issuer", Self::Issuer),
        ("expired", Self::Expired),
        ("none", Self::Unsigned),
        ("public-key-as-secret", Self::PublicKeyAsSecret),
        ("client-secret", Self::ClientSecret),
        ("changed", Self::Changed),
    ];
}

impl FromStr for Wrong {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, wrong)| wrong).ok_or(())
    }
}

/// A key of the provider.
pub(super) struct Key {
    id: String,
    pair: Option<RsaKeyPair>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.id).finish()
    }
}

impl Key {
    pub(super) fn new(number: u64) -> Self {
        Self { id: format!("key-{number}"), pair: RsaKeyPair::generate(KeySize::Rsa2048).ok() }
    }

    /// The public key as the provider publishes it (RFC 7517).
    pub(super) fn public(&self) -> Value {
        json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id, "n": base64url(self.modulus()), "e": "AQAB"})
    }

    /// The number in `RSAPublicKey`: a sequence of it and 65,537, each with a tag and a length.
    fn modulus(&self) -> &[u8] {
        self.pair.as_ref().and_then(|pair| pair.public_key().as_ref().get(9..265)).unwrap_or_default()
    }

    /// A token of these claims. `None` if the system has no random numbers.
    pub(super) fn token(&self, mut claims: Value, wrong: Option<Wrong>) -> Option<String> {
        match wrong {
            Some(Wrong::Audience) => claims["aud"] = "another-client".into(),
            Some(Wrong::Nonce) => claims["nonce"] = "another-sign-in".into(),
            Some(Wrong::Issuer) => claims["iss"] = "https://another.example".into(),
            Some(Wrong::Expired) => claims["exp"] = (now() - 60).into(),
            _ => {}
        }
        let algorithm = match wrong {
            Some(Wrong::Unsigned) => "none",
            Some(Wrong::PublicKeyAsSecret | Wrong::ClientSecret) => "HS256",
            _ => "RS256",
        };
        let header = json!({"alg": algorithm, "typ": "JWT", "kid": self.id});
        let encode = |value: &Value| base64url(value.to_string().as_bytes());
        let mut text = format!("{}.{}", encode(&header), encode(&claims));
        let by_secret =
            |secret: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes()).as_ref().to_vec();
        let signature = match wrong {
            Some(Wrong::Unsigned) => Vec::new(),
            Some(Wrong::PublicKeyAsSecret) => by_secret(self.modulus()),
            Some(Wrong::ClientSecret) => by_secret(CLIENT_SECRET.as_bytes()),
            _ => {
                let pair = self.pair.as_ref()?;
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).ok()?;
                signature
            }
        };
        if wrong == Some(Wrong::Changed) {
            claims["groups"] = json!(["owners"]);
            text = format!("{}.{}", encode(&header), encode(&claims));
        }
        Some(format!("{text}.{}", base64url(&signature)))
    }
}

/// Base64 for URLs, without padding (RFC 4648, section 5).
pub(super) fn base64url(bytes: &[u8]) -> String {
    base64(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}
