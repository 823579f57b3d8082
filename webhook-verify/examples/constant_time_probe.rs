//! Verifies a signature that differs from the genuine one in one digit, the one that its argument names (00 to 63), or
//! in none (64). The test `constant_time` counts its instructions.
#![forbid(unsafe_code)]

use webhook_verify::{Failure, Secret, Signer, Verifier};

const NOW: u64 = 1_700_000_000;
const BODY: &[u8] = br#"{"id":"evt_1"}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place: usize = std::env::args().nth(1).ok_or("which digit?")?.parse()?;
    let header = Signer::new(Secret::new("whsec_test")?).sign_at(BODY, NOW);
    // A digit more than the genuine ones, so that changing none is the same work as changing one.
    let mut text = [header.as_ref(), b",".as_slice()].concat();
    let first = text.len() - 1 - 64;
    text[first + place] ^= 1;
    let verdict = Verifier::new(Secret::new("whsec_test")?).verify_at(&text[..first + 64], BODY, NOW);
    // No branch on the verdict, which would cost one way more than the other.
    std::process::exit(i32::from(matches!(verdict, Err(Failure::SignatureMismatch))));
}
