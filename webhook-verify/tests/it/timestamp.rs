//! Times that are none, and times too far away. Each case is a fault that a published verifier shipped.

use webhook_verify::{Failure, HeaderFault, Tolerance};

use crate::{BODY, NOW, digest, digest_of, refusal, verifier, verify};

/// A header whose time is this text and whose signature is genuine for it.
fn signed_over(time_text: &str) -> String {
    let text = [time_text.as_bytes(), b".", BODY].concat();
    let digest = crate::independent::hmac_sha256_hex(crate::SECRET.as_bytes(), &text);
    format!("t={time_text},v1={digest}")
}

#[test]
fn a_time_that_is_not_plain_decimal_is_malformed_even_if_its_signature_is_genuine() {
    for text in [
        "",
        "+1",
        "-1",
        "1_0",
        "0x1",
        "1e9",
        "1.0",
        "123abc",
        "１７００００００００",
        "t",
        "1 0",
        "NaN",
        "٣",
        "\u{200b}1",
    ] {
        let failure = verify(signed_over(text)).unwrap_err();
        assert_eq!(failure, Failure::MalformedHeader(HeaderFault::BadTimestamp), "{text:?}");
    }
    // White space inside the part, after its equals sign.
    assert_eq!(refusal(format!("t= {NOW},v1={}", digest())), "malformed_header");
}

/// White space around a part is dropped, here as everywhere in the header.
#[test]
fn white_space_around_the_part_does_not_belong_to_the_time() {
    assert!(verify(format!(" t={NOW} ,v1={}", digest())).is_ok());
}

/// The signed text is the time as it stands, not the number written anew.
#[test]
fn leading_zeros_are_signed_as_they_stand() {
    let padded = format!("000{NOW}");
    assert!(verify(signed_over(&padded)).is_ok());
    assert_eq!(refusal(format!("t={padded},v1={}", digest())), "signature_mismatch");
}

/// standardwebhooks and async-openai subtract before they check, and panic at the integer's edge.
#[test]
fn a_time_at_the_edge_of_an_integer_is_refused_without_a_panic() {
    for (text, code) in [
        ("18446744073709551615", "timestamp_outside_tolerance"),
        ("9223372036854775807", "timestamp_outside_tolerance"),
        ("9223372036854775808", "timestamp_outside_tolerance"),
        ("18446744073709551616", "malformed_header"),
        ("99999999999999999999", "malformed_header"),
        ("100000000000000000000000000000000000000000", "malformed_header"),
        ("-9223372036854775808", "malformed_header"),
    ] {
        assert_eq!(refusal(signed_over(text)), code, "{text}");
    }
    for now in [0, u64::MAX] {
        assert!(verifier().verify_at(signed_over("9223372036854775807"), BODY, now).is_err());
    }
}

#[test]
fn two_times_are_malformed_equal_or_not() {
    for other in [NOW, NOW + 1] {
        let failure = verify(format!("t={NOW},t={other},v1={}", digest())).unwrap_err();
        assert_eq!(failure, Failure::MalformedHeader(HeaderFault::SeveralTimestamps));
    }
}

#[test]
fn the_time_may_stand_after_the_signature() {
    assert!(verify(format!("v1={},t={NOW}", digest())).is_ok());
}

/// Stripe's Go, Node and Python libraries take any future time.
#[test]
fn exactly_the_tolerance_passes_and_a_second_more_fails_both_ways() {
    for (time, fits) in [(NOW - 300, true), (NOW - 301, false), (NOW + 300, true), (NOW + 301, false)] {
        let header = format!("t={time},v1={}", digest_of(BODY, time));
        assert_eq!(verify(header).is_ok(), fits, "{time}");
    }
    let header = format!("t={},v1={}", NOW + 301, digest_of(BODY, NOW + 301));
    let expected = Failure::TimestampOutsideTolerance {
        off_by_seconds: 301,
        in_the_future: true,
        tolerance_seconds: 300,
        looks_like_milliseconds: false,
    };
    assert_eq!(verify(header).unwrap_err(), expected);
    let narrow = verifier().tolerance(Tolerance::seconds(1));
    for (off, fits) in [(0, true), (1, true), (2, false)] {
        let header = format!("t={},v1={}", NOW - off, digest_of(BODY, NOW - off));
        assert_eq!(narrow.verify_at(header, BODY, NOW).is_ok(), fits);
    }
}

#[test]
fn without_an_age_check_any_time_passes() {
    let verifier = verifier().tolerance(Tolerance::seconds(0));
    for time in [0, 1, 253_402_300_799, u64::MAX] {
        let header = format!("t={time},v1={}", digest_of(BODY, time));
        assert_eq!(verifier.verify_at(header, BODY, NOW).unwrap().timestamp(), time);
    }
}

/// The type takes no other number.
#[test]
fn a_negative_tolerance_cannot_be_said() {
    let say: fn(u64) -> Tolerance = Tolerance::seconds;
    assert_eq!(say(0), Tolerance::OFF);
    assert_eq!(say(u64::MAX).as_seconds(), Some(u64::MAX));
}

#[test]
fn milliseconds_for_seconds_get_a_hint_of_their_own() {
    let failure = verify(signed_over(&format!("{NOW}123"))).unwrap_err();
    assert!(matches!(failure, Failure::TimestampOutsideTolerance { looks_like_milliseconds: true, .. }));
    assert!(failure.to_string().ends_with("it looks like milliseconds where seconds belong"), "{failure}");
    let merely_old = verify(signed_over("1600000000")).unwrap_err().to_string();
    assert_eq!(merely_old, "the signature's time is 100000000 s from now and the tolerance is 300 s");
}

/// A clock before 1970 counts as 1970, where nothing fresh is valid.
#[test]
fn by_a_clock_at_1970_no_fresh_signature_is_valid() {
    let header = format!("t={NOW},v1={}", digest());
    assert_eq!(verifier().verify_at(header, BODY, 0).unwrap_err().code(), "timestamp_outside_tolerance");
}

#[test]
fn the_time_is_judged_before_the_signature() {
    assert_eq!(refusal(format!("t=1,v1={}", "0".repeat(64))), "timestamp_outside_tolerance");
}
