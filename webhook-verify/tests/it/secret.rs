//! Invalid secrets. Each case is a bug that a published verifier or receiver had.

use webhook_verify::{Failure, MAX_SECRETS, Secret, SecretError, Signer, Verifier};

use crate::{BODY, NOW, SECRET, failure_code, secret, verifier};

/// standardwebhooks 1.0.1, async-stripe-webhook rc.10 and async-openai 0.43 accept an empty secret.
#[test]
fn an_empty_secret_is_rejected() {
    assert_eq!(Secret::new("").unwrap_err(), SecretError::Empty);
}

/// stripe-node accepted one (#2885).
#[test]
fn a_blank_secret_is_rejected() {
    for blank in [" ", "\t", "\r", "\n", "\x0c", "\x0b", " \r\n\t ", "\u{a0}", "\u{3000}"] {
        assert_eq!(Secret::new(blank).unwrap_err(), SecretError::Blank, "{blank:?}");
    }
}

/// HMAC pads a short key with zeros, so this would be the empty key and anyone could sign.
#[test]
fn zero_bytes_alone_or_around_a_secret_are_rejected() {
    assert_eq!(Secret::new("\0").unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new(&"\0".repeat(64)).unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new("\0 \n").unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new("whsec_\0").unwrap_err(), SecretError::BarePrefix);
    assert_eq!(Secret::new("whsec_a\0").unwrap_err(), SecretError::SurroundedByWhitespace);
}

#[test]
fn a_bare_prefix_is_rejected() {
    assert_eq!(Secret::new("whsec_").unwrap_err(), SecretError::BarePrefix);
    assert_eq!(Secret::new(" whsec_\n").unwrap_err(), SecretError::BarePrefix);
}

/// A newline from a file would become part of the key, and nothing would match.
#[test]
fn white_space_around_a_secret_is_rejected_not_trimmed() {
    for text in ["whsec_a\n", "\nwhsec_a", "whsec_a\r\n", " whsec_a", "whsec_a\t"] {
        assert_eq!(Secret::new(text).unwrap_err(), SecretError::SurroundedByWhitespace, "{text:?}");
    }
    assert!(Secret::new("inner space").is_ok());
}

#[test]
fn an_empty_entry_in_a_list_of_secrets_is_rejected() {
    let refused = Verifier::from_secrets(["whsec_new", ""]).unwrap_err();
    assert_eq!(refused, Failure::MissingSecret(SecretError::Empty));
    assert_eq!(refused.code(), "missing_secret");
}

/// Several advisories of 2026 are about this: an unset variable disabled verification.
#[test]
fn an_empty_list_of_secrets_is_rejected() {
    let unset: Option<&str> = None;
    let refused = Verifier::from_secrets(unset).unwrap_err();
    assert_eq!(refused, Failure::MissingSecret(SecretError::NoneGiven));
}

#[test]
fn a_signature_with_the_empty_key_fails() {
    let digest = crate::independent::hmac_sha256_hex(b"", &[NOW.to_string().as_bytes(), b".", BODY].concat());
    assert_eq!(failure_code(format!("t={NOW},v1={digest}")), "signature_mismatch");
}

#[test]
fn matched_secret_tells_which_secret_matched() {
    let verifier = Verifier::from_secrets(["whsec_new", "whsec_old", SECRET]).unwrap();
    for (text, index) in [("whsec_new", 0), ("whsec_old", 1), (SECRET, 2)] {
        let header = Signer::new(Secret::new(text).unwrap()).sign_at(BODY, NOW);
        assert_eq!(verifier.verify_at(header, BODY, NOW).unwrap().matched_secret(), index);
    }
    let unknown = Signer::new(Secret::new("whsec_unknown").unwrap()).sign_at(BODY, NOW);
    assert_eq!(verifier.verify_at(unknown, BODY, NOW).unwrap_err(), Failure::SignatureMismatch);
}

#[test]
fn a_header_signed_with_two_secrets_matches_the_first_known_one() {
    let sign = |text| Signer::new(Secret::new(text).unwrap()).sign_at(BODY, NOW).as_str().to_owned();
    let (old, new) = (sign("whsec_old"), sign("whsec_new"));
    let both = format!("{old},{}", new.split_once(',').unwrap().1);
    let knows = |texts: &[&str]| Verifier::from_secrets(texts.iter().copied()).unwrap().verify_at(&both, BODY, NOW);
    assert_eq!(knows(&["whsec_new"]).unwrap().matched_secret(), 0);
    assert_eq!(knows(&["whsec_old"]).unwrap().matched_secret(), 0);
    assert_eq!(knows(&["whsec_other", "whsec_new", "whsec_old"]).unwrap().matched_secret(), 1);
}

#[test]
fn a_verifier_rejects_a_ninth_secret() {
    let eight = (0..MAX_SECRETS).map(|number| format!("whsec_{number}")).collect::<Vec<_>>();
    let verifier = Verifier::from_secrets(eight.iter().map(String::as_str)).unwrap();
    let last = Signer::new(Secret::new("whsec_7").unwrap()).sign_at(BODY, NOW);
    assert_eq!(verifier.verify_at(last, BODY, NOW).unwrap().matched_secret(), 7);
    assert_eq!(verifier.also_accept(secret()).unwrap_err(), SecretError::TooMany);
}

#[test]
fn debug_and_errors_omit_the_secret_the_digest_and_the_body() {
    let (secret_text, body) = ("whsec_5ecre7", b"a-customers-name");
    let secret = Secret::new(secret_text).unwrap();
    let signer = Signer::new(secret.clone());
    let header = signer.sign_at(body, NOW);
    assert_eq!(header.to_string(), header.as_str(), "to send it, its text is shown");
    let digest = header.as_str().split_once(",v1=").unwrap().1.to_owned();
    let verifier = Verifier::new(secret.clone());
    let verified = verifier.verify_at(&header, body, NOW).unwrap();
    let begun = verifier.begin_at(&header, NOW).unwrap();
    let mut shown = format!("{secret:?} {signer:?} {header:?} {verifier:?} {verified:?} {begun:?}");
    for failure in [
        verifier.verify_at(&header, b"other", NOW).unwrap_err(),
        verifier.verify_at(&header, body, NOW + 1000).unwrap_err(),
        verifier.verify_at("t=1", body, NOW).unwrap_err(),
        Failure::from(Secret::new(" whsec_5ecre7").unwrap_err()),
    ] {
        shown.push_str(&format!("{failure} {failure:?}"));
    }
    for named in ["Secret(HMAC-SHA256)", "SignatureHeader(..)", "Verifier {", "Verified {", "Verification {"] {
        assert!(shown.contains(named), "{shown}");
    }
    for hidden in ["5ecre7", "a-customers-name", &digest, &digest[..8]] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

#[test]
fn a_missing_secret_is_reported_before_other_failures() {
    // Without a secret there is no verifier, so no other check can come before this one.
    assert!(Verifier::from_secrets([]).is_err());
    assert!(verifier().verify_at("", BODY, NOW).is_err());
}
