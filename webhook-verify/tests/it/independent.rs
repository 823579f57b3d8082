//! An independent HMAC-SHA256 after RFC 2104, to compare the crate with.

use sha2::{Digest, Sha256};

const BLOCK_BYTES: usize = 64;

/// H(K xor opad, H(K xor ipad, text)); a key longer than a block is hashed first.
pub(crate) fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

pub(crate) fn hmac_sha256_hex(key: &[u8], text: &[u8]) -> String {
    hmac_sha256(key, text).iter().map(|byte| format!("{byte:02x}")).collect()
}
