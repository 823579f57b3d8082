//! Receiving a request with any framework: the size limit and the responses.

use http::{HeaderMap, header::CONTENT_LENGTH};
use webhook_verify::{
    Failure, HeaderFault, SecretError,
    adapters::{Receiver, Refusal},
    testing::Sender,
};

use crate::{SECRET, verifier};

/// The headers of a valid request with a body of eight bytes.
fn headers(content_length: Option<&str>) -> HeaderMap {
    let signature = Sender::new(SECRET).unwrap().good(BODY);
    let mut headers = HeaderMap::new();
    headers.insert("x-service-signature", signature.as_str().parse().unwrap());
    if let Some(length) = content_length {
        headers.insert(CONTENT_LENGTH, length.parse().unwrap());
    }
    headers
}

const BODY: &[u8] = b"12345678";

#[test]
fn a_content_length_over_the_limit_is_refused_before_the_body_is_read() {
    let receiver = Receiver::new(verifier()).max_body_bytes(8);
    for (length, fits) in
        [(Some("0"), true), (Some("8"), true), (Some("9"), false), (Some("18446744073709551615"), false), (None, true)]
    {
        let headers = headers(length);
        let begun = receiver.begin(&headers).map(drop);
        let expected = if fits { Ok(()) } else { Err(Refusal::TooLarge { max_body_bytes: 8 }) };
        assert_eq!(begun, expected, "{length:?}");
    }
}

/// A sender without a `Content-Length`, or with a false one, meets the limit while its body arrives.
#[test]
fn a_body_may_be_as_long_as_the_limit_in_any_chunks() {
    for (limit, chunks, fits) in [
        (8, &[8][..], true),
        (8, &[3, 5], true),
        (8, &[0, 8, 0], true),
        (7, &[8], false),
        (7, &[4, 4], false),
        (7, &[1, 1, 1, 1, 1, 1, 1, 1], false),
    ] {
        let receiver = Receiver::new(verifier()).max_body_bytes(limit);
        for length in [None, Some("1"), Some("many")] {
            let headers = headers(length);
            let mut intake = receiver.begin(&headers).unwrap();
            let mut rest = BODY;
            let taken = chunks.iter().try_for_each(|bytes| {
                let (chunk, after) = rest.split_at(*bytes);
                rest = after;
                intake.take(chunk)
            });
            assert_eq!(taken.is_ok(), fits, "{limit} {chunks:?}");
            if fits {
                assert_eq!(intake.finish().unwrap().body(), BODY);
            } else {
                assert_eq!(taken, Err(Refusal::TooLarge { max_body_bytes: limit }));
            }
        }
    }
}

#[test]
fn by_default_a_receiver_reads_256_kib_and_the_platforms_header() {
    assert_eq!(Receiver::DEFAULT_MAX_BODY_BYTES, 262_144);
    let long = headers(Some("262145"));
    assert_eq!(Receiver::new(verifier()).begin(&long).map(drop), Err(Refusal::TooLarge { max_body_bytes: 262_144 }));
    let receiver = Receiver::new(verifier()).header("x-acme-signature".parse().unwrap());
    let missing = Refusal::Unverified(HeaderFault::Missing.into());
    assert_eq!(receiver.begin(&headers(None)).map(drop), Err(missing));
    let mut twice = headers(None);
    twice.append("x-service-signature", "t=1".parse().unwrap());
    let repeated = Refusal::Unverified(HeaderFault::Repeated.into());
    assert_eq!(Receiver::new(verifier()).begin(&twice).map(drop), Err(repeated));
}

#[test]
fn a_refusal_responds_with_its_status_and_a_json_body() {
    let stale = Failure::TimestampOutsideTolerance {
        off_by_seconds: 301,
        in_the_future: false,
        tolerance_seconds: 300,
        looks_like_milliseconds: false,
    };
    for (refusal, status, reason) in [
        (Refusal::Unverified(HeaderFault::Missing.into()), 400, "Bad Request"),
        (Refusal::Unverified(stale), 400, "Bad Request"),
        (Refusal::Broken, 400, "Bad Request"),
        (Refusal::Unverified(Failure::SignatureMismatch), 401, "Unauthorized"),
        (Refusal::TooLarge { max_body_bytes: 8 }, 413, "Payload Too Large"),
        (Refusal::Unverified(SecretError::NoneGiven.into()), 500, "Internal Server Error"),
    ] {
        assert_eq!(refusal.status(), status);
        let json: serde_json::Value = serde_json::from_str(&refusal.to_json()).unwrap();
        let expected = serde_json::json!({ "statusCode": status, "message": refusal.to_string(), "error": reason });
        assert_eq!(json, expected);
    }
}
