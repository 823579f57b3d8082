//! Secrets that are none. Each case is a fault that a published verifier or receiver shipped.

use webhook_verify::{Failure, MAX_SECRETS, Secret, SecretError, Signer, Verifier};

use crate::{BODY, NOW, SECRET, refusal, secret, verifier};

/// standardwebhooks 1.0.1, async-stripe-webhook rc.10 and async-openai 0.43 take it.
#[test]
fn an_empty_secret_is_refused() {
    assert_eq!(Secret::new("").unwrap_err(), SecretError::Empty);
}

/// stripe-node #2885.
#[test]
fn a_secret_of_white_space_only_is_refused() {
    for blank in [" ", "\t", "\r", "\n", "\x0c", "\x0b", " \r\n\t ", "\u{a0}", "\u{3000}"] {
        assert_eq!(Secret::new(blank).unwrap_err(), SecretError::Blank, "{blank:?}");
    }
}

/// HMAC fills a short key up with zeros, so this would be the empty key, and anyone could sign.
#[test]
fn a_secret_of_zero_bytes_is_refused_and_zero_bytes_around_one_too() {
    assert_eq!(Secret::new("\0").unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new(&"\0".repeat(64)).unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new("\0 \n").unwrap_err(), SecretError::Blank);
    assert_eq!(Secret::new("whsec_\0").unwrap_err(), SecretError::BarePrefix);
    assert_eq!(Secret::new("whsec_a\0").unwrap_err(), SecretError::SurroundedByWhitespace);
}

#[test]
fn a_bare_prefix_is_refused() {
    assert_eq!(Secret::new("whsec_").unwrap_err(), SecretError::BarePrefix);
    assert_eq!(Secret::new(" whsec_\n").unwrap_err(), SecretError::BarePrefix);
}

/// A newline from a file becomes part of the key, and nothing ever matches.
#[test]
fn white_space_around_a_secret_is_refused_and_not_trimmed_in_silence() {
    for text in ["whsec_a\n", "\nwhsec_a", "whsec_a\r\n", " whsec_a", "whsec_a\t"] {
        assert_eq!(Secret::new(text).unwrap_err(), SecretError::SurroundedByWhitespace, "{text:?}");
    }
    assert!(Secret::new("inner space").is_ok());
}

#[test]
fn an_empty_entry_in_a_rotation_list_is_refused() {
    let refused = Verifier::from_secrets(["whsec_new", ""]).unwrap_err();
    assert_eq!(refused, Failure::MissingSecret(SecretError::Empty));
    assert_eq!(refused.code(), "missing_secret");
}

/// Several advisories of 2026: a variable that is not set meant "skip the check".
#[test]
fn an_unset_secret_never_means_to_skip() {
    let unset: Option<&str> = None;
    let refused = Verifier::from_secrets(unset).unwrap_err();
    assert_eq!(refused, Failure::MissingSecret(SecretError::NoneGiven));
}

#[test]
fn a_forgery_signed_with_the_empty_key_is_refused() {
    let digest = crate::independent::hmac_sha256_hex(b"", &[NOW.to_string().as_bytes(), b".", BODY].concat());
    assert_eq!(refusal(format!("t={NOW},v1={digest}")), "signature_mismatch");
}

#[test]
fn during_a_rotation_either_secret_counts_and_the_one_that_matched_is_told() {
    let verifier = Verifier::from_secrets(["whsec_new", "whsec_old", SECRET]).unwrap();
    for (text, place) in [("whsec_new", 0), ("whsec_old", 1), (SECRET, 2)] {
        let header = Signer::new(Secret::new(text).unwrap()).sign_at(BODY, NOW);
        assert_eq!(verifier.verify_at(header, BODY, NOW).unwrap().matched_secret(), place);
    }
    let stranger = Signer::new(Secret::new("whsec_stranger").unwrap()).sign_at(BODY, NOW);
    assert_eq!(verifier.verify_at(stranger, BODY, NOW).unwrap_err(), Failure::SignatureMismatch);
}

#[test]
fn a_header_signed_with_both_secrets_of_a_rotation_matches_the_first_that_is_known() {
    let sign = |text| Signer::new(Secret::new(text).unwrap()).sign_at(BODY, NOW).as_str().to_owned();
    let (old, new) = (sign("whsec_old"), sign("whsec_new"));
    let both = format!("{old},{}", new.split_once(',').unwrap().1);
    let knows = |texts: &[&str]| Verifier::from_secrets(texts.iter().copied()).unwrap().verify_at(&both, BODY, NOW);
    assert_eq!(knows(&["whsec_new"]).unwrap().matched_secret(), 0);
    assert_eq!(knows(&["whsec_old"]).unwrap().matched_secret(), 0);
    assert_eq!(knows(&["whsec_other", "whsec_new", "whsec_old"]).unwrap().matched_secret(), 1);
}

#[test]
fn a_verifier_takes_eight_secrets_and_no_ninth() {
    let eight = (0..MAX_SECRETS).map(|number| format!("whsec_{number}")).collect::<Vec<_>>();
    let verifier = Verifier::from_secrets(eight.iter().map(String::as_str)).unwrap();
    let last = Signer::new(Secret::new("whsec_7").unwrap()).sign_at(BODY, NOW);
    assert_eq!(verifier.verify_at(last, BODY, NOW).unwrap().matched_secret(), 7);
    assert_eq!(verifier.also_accept(secret()).unwrap_err(), SecretError::TooMany);
}

#[test]
fn no_debug_and_no_error_holds_the_secret_the_digest_or_the_body() {
    let (secret_text, body) = ("whsec_5ecre7", b"a-customers-name");
    let secret = Secret::new(secret_text).unwrap();
    let signer = Signer::new(secret.clone());
    let header = signer.sign_at(body, NOW);
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
    for hidden in ["5ecre7", "a-customers-name", &digest, &digest[..8]] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

#[test]
fn a_refusal_without_a_secret_comes_before_any_other() {
    // There is no verifier to ask about a header: the order is in the types.
    assert!(Verifier::from_secrets([]).is_err());
    assert!(verifier().verify_at("", BODY, NOW).is_err());
}
