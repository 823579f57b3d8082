//! Verification covers the exact bytes of the body.

use webhook_verify::Signer;

use crate::{NOW, secret, verifier};

fn passes(signed: &[u8], received: &[u8]) -> bool {
    let header = Signer::new(secret()).sign_at(signed, NOW);
    verifier().verify_at(header, received, NOW).is_ok()
}

#[test]
fn an_empty_body_verifies_and_differs_from_any_other() {
    assert!(passes(b"", b""));
    assert!(!passes(b"", b" "));
    assert!(!passes(b"{}", b""));
}

#[test]
fn a_body_that_is_not_utf_8_verifies() {
    assert!(passes(b"\xff\xfe\x80", b"\xff\xfe\x80"));
    assert!(!passes(b"\xff\xfe\x80", "\u{fffd}\u{fffd}\u{fffd}".as_bytes()));
}

#[test]
fn verification_does_not_normalize_line_endings() {
    assert!(!passes(b"{\n}", b"{\r\n}"));
    assert!(!passes(b"{}", b"{}\n"));
}

/// Parsing and serializing again changes the bytes.
#[test]
fn reserialized_json_fails() {
    assert!(!passes(br#"{"b":1.10,"a":1}"#, br#"{"a":1,"b":1.1}"#));
    assert!(!passes(br#"{"a": 1}"#, br#"{"a":1}"#));
    assert!(!passes(r#"{"a":"é"}"#.as_bytes(), br#"{"a":"\u00e9"}"#));
}

/// An attacker must not be able to move the dot between the timestamp and the body.
#[test]
fn a_body_that_begins_with_digits_or_a_dot_cannot_extend_the_timestamp() {
    for body in [&b"123"[..], b".", b".123", b"0.{}"] {
        assert!(passes(body, body));
    }
    let header = Signer::new(secret()).sign_at(b"5.x", 17);
    let moved = header.as_str().replacen("t=17,", "t=175,", 1);
    assert!(verifier().verify_at(moved, b".x", 175).is_err());
    assert!(verifier().verify_at(header.as_str().replacen("t=17,", "t=17.5,", 1), b"x", 17).is_err());
}

/// The verifier does not parse the body. The application's parser decides what duplicate keys mean.
#[test]
fn a_body_with_duplicate_keys_verifies_unchanged() {
    let body = br#"{"id":"evt_1","id":"evt_2"}"#;
    let header = Signer::new(secret()).sign_at(body, NOW);
    assert_eq!(verifier().verify_at(header, body, NOW).unwrap().into_body(), body);
}

/// X-Service-Event and X-Service-Delivery are not signed, so the API does not take them.
#[test]
fn a_verified_body_has_its_timestamp_and_the_matched_secret() {
    let body = br#"{"event":"payment.created"}"#;
    let header = Signer::new(secret()).sign_at(body, NOW);
    let verified = verifier().verify_at(header, body, NOW).unwrap();
    assert_eq!((verified.body(), verified.timestamp(), verified.matched_secret()), (&&body[..], NOW, 0));
}

#[test]
fn begin_checks_the_header_and_the_timestamp() {
    let verifier = verifier();
    assert_eq!(verifier.begin_at("nonsense", NOW).unwrap_err().code(), "malformed_header");
    let stale = Signer::new(secret()).sign_at(b"", NOW - 1000);
    assert_eq!(verifier.begin_at(&stale, NOW).unwrap_err().code(), "timestamp_outside_tolerance");
}
