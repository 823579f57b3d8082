//! Properties of every secret, timestamp, body and header.

use proptest::prelude::*;
use webhook_verify::{Failure, Secret, Signer, Tolerance, Verifier};

use crate::independent::hmac_sha256_hex;

fn secrets() -> impl Strategy<Value = String> {
    "[!-~][ -~]{0,150}[!-~]".prop_filter("a bare prefix is not a secret", |text| text != "whsec_")
}

/// Any Unix time, half of them with ten digits.
fn times() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 1_000_000_000..10_000_000_000_u64]
}

#[test]
fn signatures_follow_the_rfc_for_every_body_length_around_sha_256_blocks() {
    let body: Vec<u8> = (0..=255).collect();
    for length in 0..=body.len() {
        for time in [7, 1_700_000_000, 99_999_999_999, u64::MAX] {
            let header = Signer::new(Secret::new("whsec_test").unwrap()).sign_at(&body[..length], time);
            let text = [time.to_string().as_bytes(), b".", &body[..length]].concat();
            assert_eq!(header.as_str(), format!("t={time},v1={}", hmac_sha256_hex(b"whsec_test", &text)), "{length}");
        }
    }
}

proptest! {
    #[test]
    fn a_signature_verifies_and_follows_the_rfc(
        secret in secrets(), time in times(), body in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let header = Signer::new(Secret::new(&secret).unwrap()).sign_at(&body, time);
        let text = [time.to_string().as_bytes(), b".", &body].concat();
        prop_assert_eq!(header.as_str(), format!("t={time},v1={}", hmac_sha256_hex(secret.as_bytes(), &text)));
        let verified = Verifier::new(Secret::new(&secret).unwrap()).verify_at(&header, &body, time).unwrap();
        prop_assert_eq!((verified.timestamp(), verified.into_body()), (time, &body[..]));
    }

    #[test]
    fn a_flipped_bit_of_body_secret_or_digest_fails(
        secret in secrets(), time in times(), body in prop::collection::vec(any::<u8>(), 1..300), at: prop::sample::Index, bit in 0..8_u8,
    ) {
        let verifier = Verifier::new(Secret::new(&secret).unwrap());
        let header = Signer::new(Secret::new(&secret).unwrap()).sign_at(&body, time);

        let mut changed = body.clone();
        changed[at.index(body.len())] ^= 1 << bit;
        prop_assert_eq!(verifier.verify_at(&header, &changed, time).unwrap_err(), Failure::SignatureMismatch);

        let mut other = secret.clone().into_bytes();
        other[at.index(secret.len())] ^= 1 << (bit % 7);
        if let Some(other) = String::from_utf8(other).ok().and_then(|text| Secret::new(&text).ok()) {
            prop_assert_eq!(Verifier::new(other).verify_at(&header, &body, time).unwrap_err(), Failure::SignatureMismatch);
        }

        let (head, digest) = header.as_str().split_once(",v1=").unwrap();
        let mut digits = digest.as_bytes().to_vec();
        let index = at.index(digits.len());
        let value = char::from(digits[index]).to_digit(16).unwrap() ^ (1 << (bit % 4));
        digits[index] = u8::try_from(char::from_digit(value, 16).unwrap()).unwrap();
        let flipped = format!("{head},v1={}", String::from_utf8(digits).unwrap());
        prop_assert_eq!(verifier.verify_at(flipped, &body, time).unwrap_err(), Failure::SignatureMismatch);
    }

    #[test]
    fn another_timestamp_in_the_header_fails(time in times(), other in times(), body in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assume!(time != other);
        let secret = || Secret::new("whsec_test").unwrap();
        let header = Signer::new(secret()).sign_at(&body, time).as_str().replacen(&time.to_string(), &other.to_string(), 1);
        let verifier = Verifier::new(secret()).tolerance(Tolerance::OFF);
        prop_assert_eq!(verifier.verify_at(header, &body, time).unwrap_err(), Failure::SignatureMismatch);
    }

    #[test]
    fn a_body_verifies_in_chunks_of_any_size(
        time in times(), body in prop::collection::vec(any::<u8>(), 0..2000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let secret = || Secret::new("whsec_test").unwrap();
        let header = Signer::new(secret()).sign_at(&body, time);
        let verifier = Verifier::new(Secret::new("whsec_other").unwrap()).also_accept(secret()).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let mut verification = verifier.begin_at(&header, time).unwrap();
        cuts.windows(2).for_each(|cut| verification.update(&body[cut[0]..cut[1]]));
        prop_assert_eq!(verification.finish().unwrap().matched_secret(), 1);

        let mut short = verifier.begin_at(&header, time).unwrap();
        short.update(&body[..body.len() / 2]);
        prop_assert_eq!(short.finish().is_ok(), body.is_empty());
    }

    #[test]
    fn random_headers_fail_without_a_panic(header in prop::collection::vec(any::<u8>(), 0..300), now: u64) {
        let verifier = Verifier::new(Secret::new("whsec_test").unwrap());
        prop_assert!(verifier.verify_at(&header, b"[]", now).is_err());
    }

    #[test]
    fn random_headers_of_plausible_parts_fail_without_a_panic(
        parts in prop::collection::vec("(t=[0-9]{0,22}|v1=[0-9a-fA-F]{62,66}|v1=|t|v1|v0=x| |[a-z]=[a-z])", 0..30), now: u64,
    ) {
        let verifier = Verifier::new(Secret::new("whsec_test").unwrap());
        prop_assert!(verifier.verify_at(parts.join(","), b"[]", now).is_err());
    }
}
