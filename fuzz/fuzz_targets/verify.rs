//! Checks that a signed body verifies, whole or in chunks, and a changed body does not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webhook_verify::{Failure, Secret, Signer, Verifier};

fuzz_target!(|input: (&str, u64, Vec<u8>, Vec<u8>, u16, u8)| {
    let (secret, time, body, chunk_sizes, flip_at, flip) = input;
    let Ok(parsed) = Secret::new(secret) else { return };
    let header = Signer::new(parsed.clone()).sign_at(&body, time);
    let verifier = Verifier::new(Secret::new("whsec_other").unwrap()).also_accept(parsed).unwrap();
    let verified = verifier.verify_at(&header, &body, time).unwrap();
    assert_eq!((verified.body(), verified.timestamp()), (&&body[..], time));

    let mut verification = verifier.begin_at(&header, time).unwrap();
    let mut rest = &body[..];
    for size in chunk_sizes {
        let (chunk, after) = rest.split_at(rest.len().min(size.into()));
        verification.update(chunk);
        rest = after;
    }
    verification.update(rest);
    assert_eq!(verification.finish().unwrap().timestamp(), time);

    if flip != 0 && !body.is_empty() {
        let mut changed = body.clone();
        let at = usize::from(flip_at) % changed.len();
        changed[at] ^= flip;
        assert_eq!(verifier.verify_at(&header, &changed, time).unwrap_err(), Failure::SignatureMismatch);
    }
});
