//! Signatures with the time of the system clock, and the signatures of `testing::Sender`.

use std::time::{SystemTime, UNIX_EPOCH};

use webhook_verify::{Failure, Signer, testing::Sender};

use crate::{BODY, SECRET, secret, verifier};

const DAY_SECONDS: u64 = 86_400;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_signature_of_now_has_the_systems_time() {
    let before = now();
    let header = Signer::new(secret()).sign_now(BODY);
    let verified = verifier().verify(&header, BODY).unwrap();
    assert!((before..=now()).contains(&verified.timestamp()), "{}", verified.timestamp());
}

#[test]
fn a_sender_makes_valid_forged_stale_and_future_signatures() {
    let sender = Sender::new(SECRET).unwrap();
    assert!(verifier().verify(sender.good(BODY), BODY).is_ok());
    assert_eq!(verifier().verify(sender.forged(BODY), BODY).unwrap_err(), Failure::SignatureMismatch);
    for (header, expected) in [(sender.stale(BODY), false), (sender.from_the_future(BODY), true)] {
        let failure = verifier().verify(header, BODY).unwrap_err();
        let Failure::TimestampOutsideTolerance { off_by_seconds, in_the_future, .. } = failure else {
            panic!("{failure}");
        };
        // Time passes between signing and verifying.
        assert!(off_by_seconds.abs_diff(DAY_SECONDS) <= 60, "{off_by_seconds}");
        assert_eq!(in_the_future, expected);
    }
}
