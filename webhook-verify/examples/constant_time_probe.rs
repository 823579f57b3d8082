//! Verifies 64 signatures, each with one changed digit, then the valid one. The test `constant_time` counts the
//! instructions of each verification.
#![forbid(unsafe_code)]

use webhook_verify::{Failure, Secret, Signer, Verifier};

const NOW: u64 = 1_700_000_000;
const BODY: &[u8] = br#"{"id":"evt_1","event":"test.ping","created_at":"2026-03-01T03:30:00.000Z","data":{}}"#;
const DIGITS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let verifier = Verifier::new(Secret::new("whsec_test")?);
    let mut header = Signer::new(Secret::new("whsec_test")?).sign_at(BODY, NOW).as_ref().to_vec();
    let first_digit = header.len() - DIGITS;
    // The test ignores the first verification, which also detects CPU features.
    assert!(counted(&verifier, &header));
    for place in 0..DIGITS {
        header[first_digit + place] ^= 1;
        assert!(!counted(&verifier, &header));
        header[first_digit + place] ^= 1;
    }
    assert!(counted(&verifier, &header));
    Ok(())
}

/// The test counts instructions in this function, by its name.
#[inline(never)]
fn counted(verifier: &Verifier, header: &[u8]) -> bool {
    match verifier.verify_at(header, BODY, NOW) {
        Ok(_) => true,
        Err(failure) => {
            assert_eq!(failure, Failure::SignatureMismatch);
            false
        }
    }
}
