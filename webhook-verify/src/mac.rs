//! Computes HMAC-SHA256 (RFC 2104) over a prefix, such as the timestamp's text and a dot, and the body.

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

/// A computed digest.
pub(crate) type Digest = [u8; 32];

/// The HMAC state after a secret's two key blocks. Wiped on drop.
#[derive(Clone)]
pub(crate) struct Key(HmacCore<Sha256>);

impl Key {
    pub(crate) fn new(secret: &[u8]) -> Result<Self, InvalidLength> {
        HmacCore::new_from_slice(secret).map(Self)
    }

    /// Hashes a prefix and a whole body.
    #[inline]
    pub(crate) fn digest<const N: usize>(&self, parts: [&[u8]; N]) -> Digest {
        // Finishing an `Hmac` moves its state and buffer. Keeping them apart saves a tenth of a 256-byte verification.
        let mut core = self.0.clone();
        let mut buffer = Buffer::<HmacCore<Sha256>>::default();
        for part in parts {
            buffer.digest_blocks(part, |blocks| core.update_blocks(blocks));
        }
        let mut digest = Array::default();
        core.finalize_fixed_core(&mut buffer, &mut digest);
        digest.into()
    }

    /// Begins to hash a body that arrives in chunks.
    pub(crate) fn begin<const N: usize>(&self, prefix: [&[u8]; N]) -> Mac {
        let mut mac = Mac(Hmac::compose(self.0.clone(), Default::default()));
        prefix.into_iter().for_each(|part| mac.update(part));
        mac
    }
}

/// An HMAC in progress.
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
    fn dropping_a_key_wipes_its_state() {
        // The feature `zeroize` of hmac and sha2 wipes the hash states and the buffer; without it this does not compile.
        fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
        is_wiped::<Sha256>();
        assert!(core::mem::needs_drop::<Key>() && core::mem::needs_drop::<Mac>());
    }
}
