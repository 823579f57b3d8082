//! Checks that signing and verifying do not allocate. A separate binary, because the counter covers the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use allocation_counter::measure;
use webhook_verify::{Secret, Signer, Verifier};

const NOW: u64 = 1_700_000_000;

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn signing_and_verifying_do_not_allocate() {
    // Check that the counter works.
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![0_u8; 100]))), 1);

    let body = vec![b'x'; 100_000];
    let mut header = None;
    assert_eq!(allocations(|| header = Some(Signer::new(Secret::new("whsec_test").unwrap()).sign_at(&body, NOW))), 0);
    let header = header.unwrap();

    let mut verifier = None;
    let make = || {
        let old = Secret::new("whsec_old").unwrap();
        verifier = Some(Verifier::new(old).also_accept(Secret::new("whsec_test").unwrap()).unwrap());
    };
    assert_eq!(allocations(make), 0);
    let verifier = verifier.unwrap();

    assert_eq!(allocations(|| assert!(verifier.verify_at(&header, &body, NOW).is_ok())), 0);
    assert_eq!(allocations(|| assert!(verifier.verify_at(&header, b"{}", NOW).is_err())), 0);
    assert_eq!(allocations(|| assert!(verifier.verify_at("t=1,v1=", &body, NOW).is_err())), 0);
    let in_pieces = || {
        let mut verification = verifier.begin_at(&header, NOW).unwrap();
        body.chunks(1000).for_each(|chunk| verification.update(chunk));
        assert!(verification.finish().is_ok());
    };
    assert_eq!(allocations(in_pieces), 0);
}
