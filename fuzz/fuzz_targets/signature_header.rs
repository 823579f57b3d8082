//! Compares the verification of a header with a slow and simple model.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webhook_verify::{Failure, Secret, Signer, Tolerance, Verifier};

const SECRET: &str = "whsec_fuzz";
const BODY: &[u8] = b"body";

/// The model's result, as a failure code. Does not check the timestamp.
fn model(header: &[u8]) -> &'static str {
    const MALFORMED: &str = "malformed_header";
    if header.is_empty() || header.len() > 4096 {
        return MALFORMED;
    }
    let parts: Vec<&[u8]> = header.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let times: Vec<&[u8]> = parts.iter().filter_map(|part| part.strip_prefix(b"t=")).collect();
    let signatures: Vec<&[u8]> = parts.iter().filter_map(|part| part.strip_prefix(b"v1=")).collect();
    let [time] = times[..] else { return MALFORMED };
    let digits = std::str::from_utf8(time).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(seconds) = digits.and_then(|text| text.parse::<u64>().ok()) else { return MALFORMED };
    if signatures.is_empty() {
        return MALFORMED;
    }
    // The signer writes no leading zeros, so a timestamp with leading zeros does not match.
    let valid = Signer::new(Secret::new(SECRET).unwrap()).sign_at(BODY, seconds);
    let (written, digest) = valid.as_str().split_once(",v1=").unwrap();
    let same_text = written.as_bytes()[2..] == *time;
    let matches = signatures.iter().take(16).any(|signature| signature.eq_ignore_ascii_case(digest.as_bytes()));
    if same_text && matches { "valid" } else { "signature_mismatch" }
}

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (splice, mut header) = input;
    let secret = || Secret::new(SECRET).unwrap();
    if splice {
        // Insert a valid signature, because the fuzzer cannot guess one.
        let valid = Signer::new(secret()).sign_at(BODY, 1_700_000_000);
        let at = header.len() / 2;
        header.splice(at..at, valid.as_str().bytes());
    }
    let verifier = Verifier::new(secret()).tolerance(Tolerance::OFF);
    let result = verifier.verify_at(&header, BODY, 0);
    let code = result.as_ref().map_or_else(Failure::code, |_| "valid");
    assert_eq!(code, model(&header));
    // The timestamp check only rejects more.
    let strict = Verifier::new(secret()).verify_at(&header, BODY, 1_700_000_000);
    assert!(strict.is_err() || result.is_ok());
});
