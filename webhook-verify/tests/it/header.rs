//! Parsing the header.

use webhook_verify::{Failure, HeaderFault};

use crate::{NOW, digest, failure_code, verify};

#[test]
fn an_empty_header_counts_as_missing() {
    let failure = verify("").unwrap_err();
    assert_eq!(failure, Failure::MalformedHeader(HeaderFault::Missing));
    assert_eq!(failure.to_string(), "the signature header is malformed: it is missing");
}

/// A proxy that folds lines inserts a space.
#[test]
fn white_space_around_parts_is_ignored() {
    for header in [
        format!("t={NOW}, v1={}", digest()),
        format!("  t={NOW}\t,\t v1={}  ", digest()),
        format!("t={NOW} , foo=bar , v1={}", digest()),
    ] {
        assert!(verify(header).is_ok());
    }
}

#[test]
fn empty_parts_are_ignored() {
    for header in [
        format!(",t={NOW},v1={}", digest()),
        format!("t={NOW},v1={},", digest()),
        format!(",,t={NOW},, ,v1={},,", digest()),
    ] {
        assert!(verify(header).is_ok());
    }
    assert_eq!(failure_code(",,,"), "malformed_header");
}

/// CVE-2023-50728: an unusual header crashed the receiver.
#[test]
fn bytes_that_are_not_ascii_do_not_panic() {
    for header in [&b"\xff\xfe"[..], b"t=\xff,v1=\xff", "তারিখ=1,v1=২".as_bytes(), b"\0"] {
        assert_eq!(failure_code(header), "malformed_header");
    }
    let mut beside = format!("t={NOW},v1={},", digest()).into_bytes();
    beside.extend(b"\xff\xfe=\xff");
    assert!(verify(beside).is_ok());
}

#[test]
fn unknown_parts_are_ignored() {
    assert!(verify(format!("alg=2,t={NOW},v2=abc,v1={},kid=7", digest())).is_ok());
}

#[test]
fn an_error_tells_whether_the_timestamp_or_the_signature_is_missing() {
    let fault = |header: &str| match verify(header).unwrap_err() {
        Failure::MalformedHeader(fault) => fault,
        other => panic!("{other}"),
    };
    assert_eq!(fault(&format!("v1={}", digest())), HeaderFault::NoTimestamp);
    assert_eq!(fault(&format!("t={NOW}")), HeaderFault::NoSignature);
    assert_eq!(fault("nonsense"), HeaderFault::NoTimestamp);
    assert_eq!(fault(&format!("T={NOW},v1={}", digest())), HeaderFault::NoTimestamp);
}

/// A signature has 64 digits. A shorter one and the parts after it may be equally long.
#[test]
fn the_parts_after_a_short_signature_count() {
    for between in [format!(",t={NOW}"), format!(",t={NOW},kid=7"), format!(",t={NOW},,,,")] {
        let short = "0".repeat(64 - between.len());
        assert!(verify(format!("v1={short}{between},v1={}", digest())).is_ok(), "{between}");
        assert_eq!(failure_code(format!("v1={short}{between}")), "signature_mismatch", "{between}");
    }
}
