//! The scheme of Standard Webhooks.

use webhook_verify::{
    Failure, HeaderFault, MAX_HEADER_BYTES, Secret, SecretError, Signer, StandardHeaders, Tolerance, Verifier,
};

/// The example of the standard's own libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIME: u64 = 1_614_265_330;
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

fn verifier() -> Verifier {
    Verifier::new(Secret::new(SECRET).unwrap())
}

fn headers<'h>(id: &'h str, timestamp: &'h str, signature: &'h str) -> StandardHeaders<'h> {
    StandardHeaders { id: id.as_bytes(), timestamp: timestamp.as_bytes(), signature: signature.as_bytes() }
}

/// Verifies a body as a whole and byte by byte, which must be the same. Returns which secret matched.
fn verify(verifier: &Verifier, headers: StandardHeaders<'_>, body: &[u8]) -> Result<usize, Failure> {
    let whole = verifier.verify_standard_at(headers, body, TIME).map(|verified| verified.matched_secret());
    let chunked = verifier.begin_standard_at(headers, TIME).and_then(|mut verification| {
        body.iter().for_each(|byte| verification.update(&[*byte]));
        verification.finish().map(|verified| verified.matched_secret())
    });
    assert_eq!(whole, chunked);
    whole
}

#[test]
fn the_standards_own_example_is_signed_and_verified() {
    let signature = Signer::new(Secret::new(SECRET).unwrap()).sign_standard_at(ID, BODY, TIME).unwrap();
    assert_eq!((signature.as_str(), format!("{signature:?}")), (SIGNATURE, "StandardSignature(..)".to_owned()));
    let time = TIME.to_string();
    assert_eq!(verify(&verifier(), headers(ID, &time, SIGNATURE), BODY), Ok(0));
    let several = format!("v1a,ignored v1,short {SIGNATURE} v1,{}", "A".repeat(44));
    assert_eq!(verify(&verifier(), headers(ID, &time, &several), BODY), Ok(0));
    for (id, time, body) in [("msg_1", TIME, BODY), (ID, TIME + 1, BODY), (ID, TIME, b"{}")] {
        let outcome = verify(&verifier(), headers(id, &time.to_string(), SIGNATURE), body);
        assert_eq!(outcome, Err(Failure::SignatureMismatch), "{id} {time}");
    }
}

#[test]
fn malformed_headers_are_rejected_before_the_body() {
    let (time, long) = (TIME.to_string(), "v".repeat(MAX_HEADER_BYTES + 1));
    for (id, timestamp, signature, fault) in [
        (ID, &*time, "", HeaderFault::Missing),
        ("", &time, SIGNATURE, HeaderFault::NoId),
        (ID, "", SIGNATURE, HeaderFault::BadTimestamp),
        (ID, "1614265330.0", SIGNATURE, HeaderFault::BadTimestamp),
        (ID, &time, "v2,g0hM", HeaderFault::NoSignature),
        (ID, &time, &long, HeaderFault::TooLong),
        (&long, &time, SIGNATURE, HeaderFault::TooLong),
    ] {
        assert_eq!(verify(&verifier(), headers(id, timestamp, signature), BODY), Err(fault.into()), "{signature}");
    }
    let early = (TIME - 301).to_string();
    let outcome = verify(&verifier(), headers(ID, &early, SIGNATURE), BODY);
    assert!(matches!(outcome, Err(Failure::TimestampOutsideTolerance { off_by_seconds: 301, .. })), "{outcome:?}");
    let any = verifier().tolerance(Tolerance::OFF);
    assert_eq!(verify(&any, headers(ID, &early, SIGNATURE), BODY), Err(Failure::SignatureMismatch));
}

#[test]
fn one_verifier_knows_both_schemes_and_secrets_that_are_no_base64() {
    let old = Secret::new("whsec_no base64").unwrap();
    let both = Verifier::new(old.clone()).also_accept(Secret::new(SECRET).unwrap()).unwrap();
    let time = TIME.to_string();
    assert_eq!(verify(&both, headers(ID, &time, SIGNATURE), BODY), Ok(1), "the second secret");
    let service = Signer::new(old.clone()).sign_at(BODY, TIME);
    assert_eq!(both.verify_at(&service, BODY, TIME).unwrap().matched_secret(), 0);
    let service = Signer::new(Secret::new(SECRET).unwrap()).sign_at(BODY, TIME);
    assert_eq!(both.verify_at(&service, BODY, TIME).unwrap().matched_secret(), 1);
    let outcome = verify(&Verifier::new(old.clone()), headers(ID, &time, SIGNATURE), BODY);
    assert_eq!(outcome, Err(SecretError::NotBase64.into()));
    assert_eq!(Signer::new(old).sign_standard_at(ID, BODY, TIME), Err(SecretError::NotBase64));
}

#[cfg(feature = "http")]
#[test]
fn a_receiver_reads_the_standards_headers_if_there_is_no_other_signature() {
    use http::HeaderMap;
    use webhook_verify::adapters::Receiver;

    let receiver = Receiver::new(verifier().tolerance(Tolerance::OFF));
    let mut headers = HeaderMap::new();
    for (name, value) in [("webhook-id", ID), ("webhook-timestamp", "1614265330"), ("webhook-signature", SIGNATURE)] {
        headers.insert(name, value.parse().unwrap());
    }
    let verified = |headers: &HeaderMap| {
        let mut intake = receiver.begin(headers)?;
        intake.take(BODY)?;
        intake.finish()
    };
    assert_eq!(verified(&headers).unwrap().body(), BODY);
    headers.insert("x-service-signature", "t=1614265330,v1=00".parse().unwrap());
    assert_eq!(verified(&headers).unwrap_err().status(), 401, "the platform's own signature counts");
    headers.remove("x-service-signature");
    headers.remove("webhook-id");
    assert_eq!(verified(&headers).unwrap_err().status(), 400);
}
