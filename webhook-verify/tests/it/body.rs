//! Bodies: the very bytes count, whatever they are.

use webhook_verify::Signer;

use crate::{NOW, secret, verifier};

fn passes(signed: &[u8], received: &[u8]) -> bool {
    let header = Signer::new(secret()).sign_at(signed, NOW);
    verifier().verify_at(header, received, NOW).is_ok()
}

#[test]
fn an_empty_body_can_be_signed_and_is_not_any_other() {
    assert!(passes(b"", b""));
    assert!(!passes(b"", b" "));
    assert!(!passes(b"{}", b""));
}

#[test]
fn a_body_that_is_not_utf_8_is_verified_as_it_is() {
    assert!(passes(b"\xff\xfe\x80", b"\xff\xfe\x80"));
    assert!(!passes(b"\xff\xfe\x80", "\u{fffd}\u{fffd}\u{fffd}".as_bytes()));
}

#[test]
fn line_ends_are_not_made_alike() {
    assert!(!passes(b"{\n}", b"{\r\n}"));
    assert!(!passes(b"{}", b"{}\n"));
}

/// Parsing first and writing again changes the bytes.
#[test]
fn json_that_was_written_again_fails() {
    assert!(!passes(br#"{"b":1.10,"a":1}"#, br#"{"a":1,"b":1.1}"#));
    assert!(!passes(br#"{"a": 1}"#, br#"{"a":1}"#));
    assert!(!passes(r#"{"a":"é"}"#.as_bytes(), br#"{"a":"\u00e9"}"#));
}

/// The dot between time and body must not be movable.
#[test]
fn a_body_that_begins_with_digits_or_a_dot_is_not_confused_with_the_time() {
    for body in [&b"123"[..], b".", b".123", b"0.{}"] {
        assert!(passes(body, body));
    }
    let header = Signer::new(secret()).sign_at(b"5.x", 17);
    let moved = header.as_str().replacen("t=17,", "t=175,", 1);
    assert!(verifier().verify_at(moved, b".x", 175).is_err());
    assert!(verifier().verify_at(header.as_str().replacen("t=17,", "t=17.5,", 1), b"x", 17).is_err());
}

/// What duplicate keys mean is for whoever parses; the bytes are authentic.
#[test]
fn duplicate_keys_in_an_authentic_body_are_handed_over_as_they_are() {
    let body = br#"{"id":"evt_1","id":"evt_2"}"#;
    let header = Signer::new(secret()).sign_at(body, NOW);
    assert_eq!(verifier().verify_at(header, body, NOW).unwrap().into_body(), body);
}

/// X-Service-Event and X-Service-Delivery are not signed, so nothing here takes them.
#[test]
fn what_is_proven_is_the_body_its_time_and_the_secret_and_nothing_of_other_headers() {
    let body = br#"{"event":"payment.created"}"#;
    let header = Signer::new(secret()).sign_at(body, NOW);
    let verified = verifier().verify_at(header, body, NOW).unwrap();
    assert_eq!((verified.body(), verified.timestamp(), verified.matched_secret()), (&&body[..], NOW, 0));
}

#[test]
fn a_body_in_pieces_is_judged_by_its_header_before_it_is_read() {
    let verifier = verifier();
    assert_eq!(verifier.begin_at("nonsense", NOW).unwrap_err().code(), "malformed_header");
    let stale = Signer::new(secret()).sign_at(b"", NOW - 1000);
    assert_eq!(verifier.begin_at(&stale, NOW).unwrap_err().code(), "timestamp_outside_tolerance");
}
