//! Invalid signatures. Each case is a bug that a published verifier had.

use webhook_verify::{MAX_SIGNATURES, Secret, Verifier};

use crate::{BODY, NOW, digest, failure_code, verify};

fn bogus() -> String {
    "0".repeat(64)
}

/// RUSTSEC-2024-0010: the verifier compared only a prefix.
#[test]
fn a_truncated_or_empty_signature_matches_nothing() {
    for length in [0, 1, 2, 32, 62, 63] {
        assert_eq!(failure_code(format!("t={NOW},v1={}", &digest()[..length])), "signature_mismatch", "{length}");
    }
}

#[test]
fn a_signature_of_another_length_than_64_digits_matches_nothing() {
    let digest = digest();
    for signature in [&digest[..62], &digest[..63], &format!("{digest}0"), &format!("{digest}00"), &digest.repeat(2)] {
        assert_eq!(failure_code(format!("t={NOW},v1={signature}")), "signature_mismatch", "{}", signature.len());
    }
}

#[test]
fn hex_matches_in_either_case() {
    let mixed: String =
        digest().char_indices().map(|(at, c)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c }).collect();
    for signature in [digest().to_uppercase(), mixed] {
        assert!(verify(format!("t={NOW},v1={signature}")).is_ok());
    }
}

#[test]
fn a_signature_that_is_not_hex_matches_nothing() {
    for signature in ["g".repeat(64), "é".repeat(32), "\0".repeat(64), format!("{}\0", &digest()[..63])] {
        assert_eq!(failure_code(format!("t={NOW},v1={signature}")), "signature_mismatch");
    }
    let mut raw = format!("t={NOW},v1=").into_bytes();
    raw.extend([0xff; 64]);
    assert_eq!(failure_code(raw), "signature_mismatch");
}

/// stripe-node throws an error of another type.
#[test]
fn a_v1_without_its_equals_sign_is_malformed() {
    for header in [format!("t={NOW},v1"), format!("t={NOW},v1{}", digest()), format!("t={NOW},v1:{}", digest())] {
        assert_eq!(failure_code(header), "malformed_header");
    }
}

#[test]
fn a_header_with_only_another_scheme_is_malformed() {
    assert_eq!(failure_code(format!("t={NOW},v0={}", digest())), "malformed_header");
    assert_eq!(failure_code(format!("t={NOW},v1a={0},V1={0},v11={0}", digest())), "malformed_header");
}

#[test]
fn one_valid_signature_among_others_is_enough() {
    for header in [
        format!("t={NOW},v1={},v1={}", digest(), bogus()),
        format!("t={NOW},v1={},v1={}", bogus(), digest()),
        format!("t={NOW},v1={0},v1={1},v1={0}", bogus(), digest()),
    ] {
        assert!(verify(header).is_ok());
    }
    assert_eq!(failure_code(format!("t={NOW},v1={0},v1={0}", bogus())), "signature_mismatch");
}

/// A sender that repeats its signature is still genuine.
#[test]
fn a_valid_signature_may_occur_twice() {
    for count in 1..=MAX_SIGNATURES {
        assert!(verify(format!("t={NOW}{}", format!(",v1={}", digest()).repeat(count))).is_ok(), "{count}");
    }
}

#[test]
fn an_undecodable_signature_does_not_invalidate_a_valid_one() {
    for other in ["", "zz", "é", &"g".repeat(64)] {
        assert!(verify(format!("t={NOW},v1={other},v1={}", digest())).is_ok());
        assert!(verify(format!("t={NOW},v1={},v1={other}", digest())).is_ok());
    }
}

/// The registry's webhook-verify computes one HMAC for each signature.
#[test]
fn signatures_after_the_sixteenth_are_ignored() {
    let many = |count: usize| format!(",v1={}", bogus()).repeat(count);
    assert!(verify(format!("t={NOW}{},v1={}", many(MAX_SIGNATURES - 1), digest())).is_ok());
    assert_eq!(failure_code(format!("t={NOW}{},v1={}", many(MAX_SIGNATURES), digest())), "signature_mismatch");
    assert_eq!(failure_code(format!("t={NOW},v1={}{}", digest(), many(10_000))), "malformed_header");
    // Signatures of any other length count too.
    let short = ",v1=".repeat(900);
    assert_eq!(failure_code(format!("t={NOW}{short},v1={}", digest())), "signature_mismatch");
    assert!(verify(format!("t={NOW},v1={}{short}", digest())).is_ok());
}

#[test]
fn a_header_longer_than_4096_bytes_is_malformed() {
    assert_eq!(failure_code("x".repeat(1 << 20)), "malformed_header");
    let good = format!("t={NOW},v1={}", digest());
    let padded = |length: usize| format!("{good},{}", "x".repeat(length - good.len() - 1));
    assert!(verify(padded(4096)).is_ok());
    assert_eq!(failure_code(padded(4097)), "malformed_header");
}

#[test]
fn a_base64_signature_matches_nothing() {
    for signature in ["n4bQgYhMfWWaL+qgxVrQFaO/TxsrC0Is0V1sFbDwCgg=", "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC0Is0V1sFbDwCgg"] {
        assert_eq!(failure_code(format!("t={NOW},v1={signature}")), "signature_mismatch");
    }
}

#[test]
fn a_digest_without_v1_is_malformed() {
    assert_eq!(failure_code(digest()), "malformed_header");
    assert_eq!(failure_code(format!("t={NOW},{}", digest())), "malformed_header");
    assert_eq!(failure_code(format!("sha256={}", digest())), "malformed_header");
}

#[test]
fn a_signature_with_another_secret_matches_nothing() {
    let verifier = Verifier::new(Secret::new("whsec_other").unwrap());
    let header = format!("t={NOW},v1={}", digest());
    assert_eq!(verifier.verify_at(header, BODY, NOW).unwrap_err().code(), "signature_mismatch");
}
