//! Handling an event once: in memory and on sled, by one contract.

use std::sync::{
    Barrier,
    atomic::{AtomicUsize, Ordering},
};

use webhook_verify::{
    Secret, Signer, Tolerance, Verified, Verifier,
    replay::{Claim, ClaimStore, MemoryClaims, ReplayError, ReplayGuard},
};

use crate::NOW;

const EVENT: &str = r#"{"id":"evt_1"}"#;

fn verified(body: &'static str) -> Verified<&'static [u8]> {
    let secret = || Secret::new("whsec_test").unwrap();
    let header = Signer::new(secret()).sign_at(body.as_bytes(), NOW);
    Verifier::new(secret()).verify_at(header, body.as_bytes(), NOW).unwrap()
}

fn id<'b>(body: &&'b [u8]) -> Option<&'b str> {
    std::str::from_utf8(body).ok()?.split('"').find(|part| part.starts_with("evt_"))
}

/// What every place for claims must do; each part takes a fresh one.
fn contract<S: ClaimStore>(fresh: impl Fn() -> S) {
    a_replay_inside_the_tolerance_is_caught(&ReplayGuard::new(fresh()));
    two_deliveries_at_once_give_one_claim(&ReplayGuard::new(fresh()));
    a_handler_that_fails_gives_its_claim_back(&ReplayGuard::new(fresh()));
    a_claim_is_kept_for_twice_the_tolerance_and_not_for_ever(&ReplayGuard::new(fresh()));
    a_handler_that_died_holds_its_claim_for_a_minute(&ReplayGuard::new(fresh()));
    whoever_was_too_slow_cannot_end_anothers_claim(&ReplayGuard::new(fresh()));
    a_body_without_an_id_cannot_be_claimed(&ReplayGuard::new(fresh()));
}

/// A captured request, sent again while its signature is young, is the same event.
fn a_replay_inside_the_tolerance_is_caught<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let Claim::New(claimed) = guard.claim_at(&event, id, NOW).unwrap() else { panic!("the first has it") };
    claimed.commit().unwrap();
    assert!(matches!(guard.claim_at(&event, id, NOW + 1).unwrap(), Claim::Done));
    let other = verified(r#"{"id":"evt_2"}"#);
    assert!(matches!(guard.claim_at(&other, id, NOW).unwrap(), Claim::New(_)));
}

/// Two deliveries of one event race; checking first and noting after would let both through.
fn two_deliveries_at_once_give_one_claim<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let (new, in_progress) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let event = verified(EVENT);
                barrier.wait();
                let claim = guard.claim_at(&event, id, NOW).unwrap();
                match claim {
                    Claim::New(_) => new.fetch_add(1, Ordering::SeqCst),
                    Claim::InProgress => in_progress.fetch_add(1, Ordering::SeqCst),
                    Claim::Done => panic!("nobody is done"),
                };
                // Whoever has it holds it until all have asked.
                barrier.wait();
                drop(claim);
            });
        }
    });
    assert_eq!((new.into_inner(), in_progress.into_inner()), (1, 7));
}

/// A claim that a failed handler keeps would turn the platform's second delivery away.
fn a_handler_that_fails_gives_its_claim_back<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let handler = || -> Result<(), &str> {
        let Claim::New(_claimed) = guard.claim_at(&event, id, NOW).unwrap() else { panic!("the first has it") };
        Err("the handler failed")
    };
    assert!(handler().is_err());
    assert!(matches!(guard.claim_at(&event, id, NOW).unwrap(), Claim::New(_)));
}

fn a_claim_is_kept_for_twice_the_tolerance_and_not_for_ever<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let Claim::New(claimed) = guard.claim_at(&event, id, NOW).unwrap() else { panic!("the first has it") };
    claimed.commit().unwrap();
    assert!(matches!(guard.claim_at(&event, id, NOW + 599).unwrap(), Claim::Done));
    assert!(matches!(guard.claim_at(&event, id, NOW + 600).unwrap(), Claim::New(_)));
}

fn a_handler_that_died_holds_its_claim_for_a_minute<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let claim = guard.claim_at(&event, id, NOW).unwrap();
    std::mem::forget(claim);
    assert!(matches!(guard.claim_at(&event, id, NOW + 59).unwrap(), Claim::InProgress));
    assert!(matches!(guard.claim_at(&event, id, NOW + 60).unwrap(), Claim::New(_)));
}

fn whoever_was_too_slow_cannot_end_anothers_claim<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let slow = guard.claim_at(&event, id, NOW).unwrap();
    let next = guard.claim_at(&event, id, NOW + 60).unwrap();
    assert!(matches!(next, Claim::New(_)));
    drop(slow);
    assert!(matches!(guard.claim_at(&event, id, NOW + 61).unwrap(), Claim::InProgress));
}

fn a_body_without_an_id_cannot_be_claimed<S: ClaimStore>(guard: &ReplayGuard<S>) {
    let event = verified(r#"{"id":7}"#);
    assert!(matches!(guard.claim_at(&event, id, NOW), Err(ReplayError::NoId)));
    assert!(matches!(guard.claim_at(&event, |_| Some(""), NOW), Err(ReplayError::NoId)));
}

#[test]
fn claims_in_memory_keep_the_contract() {
    contract(|| MemoryClaims::new(Tolerance::default(), 100));
}

#[test]
fn a_full_memory_refuses_rather_than_forgets_and_has_room_again_in_time() {
    let guard = ReplayGuard::new(MemoryClaims::new(Tolerance::default(), 1));
    let (first, second) = (verified(EVENT), verified(r#"{"id":"evt_2"}"#));
    let Claim::New(claimed) = guard.claim_at(&first, id, NOW).unwrap() else { panic!("the first has it") };
    claimed.commit().unwrap();
    assert!(matches!(guard.claim_at(&second, id, NOW), Err(ReplayError::Store(_))));
    assert!(matches!(guard.claim_at(&first, id, NOW).unwrap(), Claim::Done));
    assert!(matches!(guard.claim_at(&second, id, NOW + 600).unwrap(), Claim::New(_)));
}

#[test]
fn without_an_age_check_a_claim_is_kept_for_ever() {
    let guard = ReplayGuard::new(MemoryClaims::new(Tolerance::OFF, 10));
    let event = verified(EVENT);
    let Claim::New(claimed) = guard.claim_at(&event, id, NOW).unwrap() else { panic!("the first has it") };
    claimed.commit().unwrap();
    assert!(matches!(guard.claim_at(&event, id, u64::MAX - 1).unwrap(), Claim::Done));
}

#[cfg(feature = "sled")]
mod on_sled {
    use webhook_verify::replay::SledClaims;

    use super::*;

    #[test]
    fn claims_on_sled_keep_the_contract() {
        let directory = tempfile::tempdir().unwrap();
        let db = sled::open(directory.path()).unwrap();
        let fresh = AtomicUsize::new(0);
        contract(|| {
            let name = format!("claims-{}", fresh.fetch_add(1, Ordering::SeqCst));
            SledClaims::open(&db, &name, Tolerance::default()).unwrap()
        });
    }

    #[test]
    fn a_committed_claim_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let db = sled::open(directory.path()).unwrap();
            ReplayGuard::new(SledClaims::open(&db, "claims", Tolerance::default()).unwrap())
        };
        let event = verified(EVENT);
        let guard = open();
        let Claim::New(claimed) = guard.claim_at(&event, id, NOW).unwrap() else { panic!("the first has it") };
        claimed.commit().unwrap();
        drop(guard);
        assert!(matches!(open().claim_at(&event, id, NOW).unwrap(), Claim::Done));
    }

    #[test]
    fn claims_that_ran_out_leave_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let db = sled::open(directory.path()).unwrap();
        let claims = SledClaims::open(&db, "claims", Tolerance::default()).unwrap();
        for number in 0..50 {
            claims.claim(&format!("evt_{number}"), NOW).unwrap();
        }
        for number in 0..50 {
            claims.claim(&format!("evt_late_{number}"), NOW + 1000 + number * 100).unwrap();
        }
        let left = db.open_tree("claims").unwrap().len();
        assert!(left < 20, "{left} entries are left");
    }
}
