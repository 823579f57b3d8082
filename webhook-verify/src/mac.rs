//! HMAC-SHA256 (RFC 2104) over the signed bytes: the time as it is written, a dot, and the body.

use hmac::{
    Hmac, KeyInit, Mac as _,
    block_api::HmacCore,
    digest::{
        InvalidLength,
        array::Array,
        block_api::{Buffer, CoreProxy, FixedOutputCore, UpdateCore},
    },
};
use sha2::Sha256;

/// A digest that is expected.
pub(crate) type Digest = [u8; 32];

/// A secret's two key blocks, already hashed. Wiped on drop.
#[derive(Clone)]
pub(crate) struct Key(HmacCore<Sha256>);

impl Key {
    pub(crate) fn new(secret: &[u8]) -> Result<Self, InvalidLength> {
        HmacCore::new_from_slice(secret).map(Self)
    }

    /// Hashes a whole body.
    #[inline]
    pub(crate) fn digest(&self, timestamp_text: &[u8], body: &[u8]) -> Digest {
        // State and buffer stand apart: an `Hmac` of both is moved to finish it, a tenth of a verification of 256 bytes.
        let mut core = self.0.clone();
        let mut buffer = Buffer::<HmacCore<Sha256>>::default();
        for part in [timestamp_text, b".", body] {
            buffer.digest_blocks(part, |blocks| core.update_blocks(blocks));
        }
        let mut digest = Array::default();
        core.finalize_fixed_core(&mut buffer, &mut digest);
        digest.into()
    }

    /// Begins with a body that is still arriving.
    pub(crate) fn begin(&self, timestamp_text: &[u8]) -> Mac {
        let mut mac = Mac(Hmac::compose(self.0.clone(), Default::default()));
        mac.update(timestamp_text);
        mac.update(b".");
        mac
    }
}

/// A digest under way.
pub(crate) struct Mac(Hmac<Sha256>);

impl Mac {
    #[inline]
    pub(crate) fn update(&mut self, chunk: &[u8]) {
        self.0.update(chunk);
    }

    #[inline]
    pub(crate) fn finish(self) -> Digest {
        self.0.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_secret_is_wiped_when_it_is_dropped() {
        // HMAC is made of two states of the hash and a block that is not full yet. Each wipes itself, by the feature
        // `zeroize` of hmac and sha2; this does not compile without it.
        fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
        is_wiped::<Sha256>();
        assert!(core::mem::needs_drop::<Key>() && core::mem::needs_drop::<Mac>());
    }
}
