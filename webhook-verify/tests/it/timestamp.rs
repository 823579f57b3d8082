//! Malformed timestamps, and timestamps outside the tolerance. Each case is a bug that a published verifier had.

use webhook_verify::{Failure, HeaderFault, Tolerance};

use crate::{BODY, NOW, digest, digest_of, failure_code, verifier, verify};

/// A header with this text as its timestamp and a valid signature.
fn signed_over(time_text: &str) -> String {
    let text = [time_text.as_bytes(), b".", BODY].concat();
    let digest = crate::independent::hmac_sha256_hex(crate::SECRET.as_bytes(), &text);
    format!("t={time_text},v1={digest}")
}

#[test]
fn a_timestamp_that_is_not_plain_decimal_is_malformed() {
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
    assert_eq!(failure_code(format!("t= {NOW},v1={}", digest())), "malformed_header");
}

#[test]
fn white_space_around_the_timestamp_is_ignored() {
    assert!(verify(format!(" t={NOW} ,v1={}", digest())).is_ok());
}

/// The signature covers the timestamp's text, not its value.
#[test]
fn leading_zeros_are_part_of_the_signed_text() {
    let padded = format!("000{NOW}");
    assert!(verify(signed_over(&padded)).is_ok());
    assert_eq!(failure_code(format!("t={padded},v1={}", digest())), "signature_mismatch");
}

/// standardwebhooks and async-openai overflow and panic.
#[test]
fn a_timestamp_at_an_integers_limit_fails_without_a_panic() {
    for (text, code) in [
        ("18446744073709551615", "timestamp_outside_tolerance"),
        ("9223372036854775807", "timestamp_outside_tolerance"),
        ("9223372036854775808", "timestamp_outside_tolerance"),
        ("18446744073709551616", "malformed_header"),
        ("99999999999999999999", "malformed_header"),
        ("100000000000000000000000000000000000000000", "malformed_header"),
        ("-9223372036854775808", "malformed_header"),
    ] {
        assert_eq!(failure_code(signed_over(text)), code, "{text}");
    }
    for now in [0, u64::MAX] {
        assert!(verifier().verify_at(signed_over("9223372036854775807"), BODY, now).is_err());
    }
}

#[test]
fn two_timestamps_are_malformed() {
    for other in [NOW, NOW + 1] {
        let failure = verify(format!("t={NOW},t={other},v1={}", digest())).unwrap_err();
        assert_eq!(failure, Failure::MalformedHeader(HeaderFault::SeveralTimestamps));
    }
}

#[test]
fn the_timestamp_may_follow_the_signature() {
    assert!(verify(format!("v1={},t={NOW}", digest())).is_ok());
}

/// Stripe's Go, Node and Python libraries accept any future timestamp.
#[test]
fn a_timestamp_passes_up_to_the_tolerance_in_both_directions() {
    for (time, passes) in [(NOW - 300, true), (NOW - 301, false), (NOW + 300, true), (NOW + 301, false)] {
        let header = format!("t={time},v1={}", digest_of(BODY, time));
        assert_eq!(verify(header).is_ok(), passes, "{time}");
    }
    let header = format!("t={},v1={}", NOW + 301, digest_of(BODY, NOW + 301));
    let expected = Failure::TimestampOutsideTolerance {
        off_by_seconds: 301,
        in_the_future: true,
        tolerance_seconds: 300,
        looks_like_milliseconds: false,
    };
    assert_eq!(verify(header).unwrap_err(), expected);
    let past = Failure::TimestampOutsideTolerance {
        off_by_seconds: 301,
        in_the_future: false,
        tolerance_seconds: 300,
        looks_like_milliseconds: false,
    };
    assert_eq!(verify(signed_over(&(NOW - 301).to_string())).unwrap_err(), past);
    let narrow = verifier().tolerance(Tolerance::seconds(1));
    for (off, passes) in [(0, true), (1, true), (2, false)] {
        let header = format!("t={},v1={}", NOW - off, digest_of(BODY, NOW - off));
        assert_eq!(narrow.verify_at(header, BODY, NOW).is_ok(), passes);
    }
}

#[test]
fn without_a_timestamp_check_any_timestamp_passes() {
    let verifier = verifier().tolerance(Tolerance::seconds(0));
    for time in [0, 1, 253_402_300_799, u64::MAX] {
        let header = format!("t={time},v1={}", digest_of(BODY, time));
        assert_eq!(verifier.verify_at(header, BODY, NOW).unwrap().timestamp(), time);
    }
}

/// The parameter is an unsigned integer.
#[test]
fn a_tolerance_cannot_be_negative() {
    let seconds: fn(u64) -> Tolerance = Tolerance::seconds;
    assert_eq!(seconds(0), Tolerance::OFF);
    assert_eq!(seconds(u64::MAX).as_seconds(), Some(u64::MAX));
}

#[test]
fn the_error_hints_at_a_timestamp_in_milliseconds() {
    let failure = verify(signed_over(&format!("{NOW}123"))).unwrap_err();
    assert!(matches!(failure, Failure::TimestampOutsideTolerance { looks_like_milliseconds: true, .. }));
    assert!(failure.to_string().ends_with("it looks like milliseconds, but must be seconds"), "{failure}");
    let old = verify(signed_over("1600000000")).unwrap_err().to_string();
    assert_eq!(old, "the timestamp is 100000000 s from now; the tolerance is 300 s");
}

/// A clock before 1970 counts as 1970.
#[test]
fn a_clock_at_1970_rejects_current_signatures() {
    let header = format!("t={NOW},v1={}", digest());
    assert_eq!(verifier().verify_at(header, BODY, 0).unwrap_err().code(), "timestamp_outside_tolerance");
}

#[test]
fn the_timestamp_is_checked_before_the_signature() {
    assert_eq!(failure_code(format!("t=1,v1={}", "0".repeat(64))), "timestamp_outside_tolerance");
}
