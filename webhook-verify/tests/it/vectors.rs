//! Published test vectors, for the HMAC of the `hmac` crate and the one in `independent`.
//!
//! The public API only signs `timestamp.body` with a text key; `properties` checks that it uses this HMAC.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::independent::hmac_sha256;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn both(key: &[u8], text: &[u8]) -> [[u8; 32]; 2] {
    let hmac = Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().into();
    [hmac, hmac_sha256(key, text)]
}

/// RFC 4231, section 4: key, data, HMAC-SHA-256.
#[test]
fn hmac_matches_the_seven_vectors_of_rfc_4231() {
    let long = "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be \
                hashed before being used by the HMAC algorithm.";
    let vectors: [(Vec<u8>, &[u8], &str); 7] = [
        (vec![0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (vec![0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        ((1..=25).collect(), &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        // The RFC truncates this one to 128 bits.
        (vec![0x0c; 20], b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (vec![0xaa; 131], long.as_bytes(), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
    ];
    for (key, data, expected) in vectors {
        let expected = bytes(expected);
        for digest in both(&key, data) {
            assert_eq!(digest[..expected.len()], expected);
        }
    }
}

#[test]
fn hmac_matches_the_174_vectors_of_wycheproof() {
    let file: Value = serde_json::from_str(include_str!("../data/wycheproof_hmac_sha256.json")).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for group in file["testGroups"].as_array().unwrap() {
        let tag_bytes = usize::try_from(group["tagSize"].as_u64().unwrap()).unwrap() / 8;
        for test in group["tests"].as_array().unwrap() {
            let field = |name: &str| bytes(test[name].as_str().unwrap());
            let matches = both(&field("key"), &field("msg")).map(|digest| digest[..tag_bytes] == field("tag"));
            match test["result"].as_str().unwrap() {
                "valid" => {
                    assert_eq!(matches, [true, true], "{}", test["tcId"]);
                    valid += 1;
                }
                _ => {
                    assert_eq!(matches, [false, false], "{}", test["tcId"]);
                    invalid += 1;
                }
            }
        }
    }
    assert_eq!(valid + invalid, file["numberOfTests"].as_u64().unwrap());
    assert_eq!(valid + invalid, 174);
    assert!(valid > 50 && invalid > 50, "{valid} valid, {invalid} invalid");
}
