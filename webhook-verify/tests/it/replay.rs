//! The contract of claim stores, tested on the memory store and the sled store.

use std::{
    pin::pin,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use webhook_verify::{
    Secret, Signer, Tolerance, Verified, Verifier,
    replay::{
        CLAIM_SECONDS, Claim, ClaimStore, Claimed, CommitError, Committed, Held, MAX_ID_BYTES, MemoryClaims,
        ReplayError, ReplayGuard, Ticket,
    },
};

use crate::NOW;

const EVENT: &str = r#"{"id":"evt_1"}"#;

fn verified(body: &'static str) -> Verified<&'static [u8]> {
    verified_by(body, Tolerance::default())
}

fn verified_by(body: &'static str, tolerance: Tolerance) -> Verified<&'static [u8]> {
    let secret = || Secret::new("whsec_test").unwrap();
    let header = Signer::new(secret()).sign_at(body.as_bytes(), NOW);
    Verifier::new(secret()).tolerance(tolerance).verify_at(header, body.as_bytes(), NOW).unwrap()
}

fn id(body: &[u8]) -> Option<&str> {
    std::str::from_utf8(body).ok()?.split('"').find(|part| part.starts_with("evt_"))
}

/// The output of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the store waits"),
    }
}

fn claim_at<'g, S: ClaimStore<Tx = ()>>(
    guard: &'g ReplayGuard<S>,
    event: &Verified<&[u8]>,
    id: impl FnOnce(&[u8]) -> Option<&str>,
    now: u64,
) -> Result<Claim<'g, S>, ReplayError<S::Error>> {
    ready(guard.claim_at(&mut (), event, id, now))
}

fn new<'g, S: ClaimStore<Tx = ()>>(guard: &'g ReplayGuard<S>, event: &Verified<&[u8]>, now: u64) -> Claimed<'g, S> {
    match claim_at(guard, event, id, now).unwrap() {
        Claim::New(claimed) => claimed,
        other => {
            panic!("cannot claim at {now}: the event is {}", if matches!(other, Claim::Done) { "done" } else { "held" })
        }
    }
}

/// The tests that every claim store must pass. `fresh` creates an empty store.
fn contract<S: ClaimStore<Tx = ()>>(fresh: impl Fn() -> S) {
    a_replay_within_the_tolerance_is_done(&ReplayGuard::new(fresh()));
    only_one_of_eight_concurrent_deliveries_gets_the_claim(&ReplayGuard::new(fresh()));
    a_failed_handler_releases_its_claim(&ReplayGuard::new(fresh()));
    a_committed_claim_lasts_as_long_as_its_request_can_be_replayed(&ReplayGuard::new(fresh()));
    remember_seconds_extends_a_committed_claim(&ReplayGuard::new(fresh()).remember_seconds(86_400));
    a_longer_tolerance_extends_a_committed_claim(&ReplayGuard::new(fresh()));
    without_a_timestamp_check_a_committed_claim_lasts_forever(&ReplayGuard::new(fresh()));
    a_crashed_handler_holds_its_claim_for_a_minute(&ReplayGuard::new(fresh()));
    a_slow_handler_cannot_release_or_commit_anothers_claim(&ReplayGuard::new(fresh()));
    a_slow_handler_can_commit_if_nobody_else_has_claimed(&ReplayGuard::new(fresh()));
    claiming_a_body_without_an_event_id_fails(&ReplayGuard::new(fresh()));
}

fn a_replay_within_the_tolerance_is_done<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let claimed = new(guard, &event, NOW);
    ready(claimed.commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, NOW + 1).unwrap(), Claim::Done));
    let other = verified(r#"{"id":"evt_2"}"#);
    assert!(matches!(claim_at(guard, &other, id, NOW).unwrap(), Claim::New(_)));
}

/// Claiming must be atomic, or both deliveries would get the claim.
fn only_one_of_eight_concurrent_deliveries_gets_the_claim<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let (new, in_progress) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let event = verified(EVENT);
                barrier.wait();
                let claim = claim_at(guard, &event, id, NOW).unwrap();
                match claim {
                    Claim::New(_) => new.fetch_add(1, Ordering::SeqCst),
                    Claim::InProgress => in_progress.fetch_add(1, Ordering::SeqCst),
                    Claim::Done => panic!("nobody has committed"),
                };
                // Hold the claim until all threads have tried.
                barrier.wait();
                drop(claim);
            });
        }
    });
    assert_eq!((new.into_inner(), in_progress.into_inner()), (1, 7));
}

fn a_failed_handler_releases_its_claim<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let handler = || -> Result<(), &str> {
        let _claimed = new(guard, &event, NOW);
        Err("the handler failed")
    };
    assert!(handler().is_err());
    assert!(matches!(claim_at(guard, &event, id, NOW).unwrap(), Claim::New(_)));
}

/// A request is valid from 300 seconds before its timestamp to 300 seconds after it, inclusive, so a claim must last
/// longer than 600 seconds.
fn a_committed_claim_lasts_as_long_as_its_request_can_be_replayed<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let secret = || Secret::new("whsec_test").unwrap();
    let header = Signer::new(secret()).sign_at(EVENT.as_bytes(), NOW + 300);
    let arriving_at = |now| Verifier::new(secret()).verify_at(header.as_ref(), EVENT.as_bytes(), now);
    ready(new(guard, &arriving_at(NOW).unwrap(), NOW).commit()).unwrap();
    let last = arriving_at(NOW + 600).unwrap();
    assert!(matches!(claim_at(guard, &last, id, NOW + 600).unwrap(), Claim::Done));
    assert!(arriving_at(NOW + 601).is_err());
    drop(new(guard, &last, NOW + 601));
}

/// The platform may deliver an event again after its first request has become stale.
fn remember_seconds_extends_a_committed_claim<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    ready(new(guard, &event, NOW).commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, NOW + 86_399).unwrap(), Claim::Done));
    drop(new(guard, &event, NOW + 86_400));
}

/// The guard takes the tolerance from `Verified`, so that verifier and guard agree.
fn a_longer_tolerance_extends_a_committed_claim<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified_by(EVENT, Tolerance::seconds(3600));
    ready(new(guard, &event, NOW).commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, NOW + 7200).unwrap(), Claim::Done));
    drop(new(guard, &event, NOW + 7201));
}

fn without_a_timestamp_check_a_committed_claim_lasts_forever<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified_by(EVENT, Tolerance::OFF);
    ready(new(guard, &event, NOW).commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, u64::MAX - 1).unwrap(), Claim::Done));
}

fn a_crashed_handler_holds_its_claim_for_a_minute<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let claim = claim_at(guard, &event, id, NOW).unwrap();
    std::mem::forget(claim);
    assert!(matches!(claim_at(guard, &event, id, NOW + CLAIM_SECONDS - 1).unwrap(), Claim::InProgress));
    drop(new(guard, &event, NOW + CLAIM_SECONDS));
}

fn a_slow_handler_cannot_release_or_commit_anothers_claim<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let dropped = new(guard, &event, NOW);
    let committed = new(guard, &event, NOW + CLAIM_SECONDS);
    let last = new(guard, &event, NOW + 2 * CLAIM_SECONDS);
    drop(dropped);
    assert!(matches!(ready(committed.commit()), Err(CommitError::TooLate)));
    assert!(matches!(claim_at(guard, &event, id, NOW + 2 * CLAIM_SECONDS + 1).unwrap(), Claim::InProgress));
    ready(last.commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, NOW + 2 * CLAIM_SECONDS + 1).unwrap(), Claim::Done));
}

/// The store has removed the expired claim. The commit must still succeed, or a replay would be handled.
fn a_slow_handler_can_commit_if_nobody_else_has_claimed<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(EVENT);
    let slow = new(guard, &event, NOW);
    drop(new(guard, &verified(r#"{"id":"evt_2"}"#), NOW + CLAIM_SECONDS + 1));
    ready(slow.commit()).unwrap();
    assert!(matches!(claim_at(guard, &event, id, NOW + CLAIM_SECONDS + 2).unwrap(), Claim::Done));
}

/// Other ids do not count: the delivery's id comes from an unsigned header.
fn claiming_a_body_without_an_event_id_fails<S: ClaimStore<Tx = ()>>(guard: &ReplayGuard<S>) {
    let event = verified(r#"{"id":7}"#);
    assert!(matches!(claim_at(guard, &event, id, NOW), Err(ReplayError::NoId)));
    for other in ["", "evt_", "del_1", " evt_1", "EVT_1"] {
        assert!(matches!(claim_at(guard, &event, |_| Some(other), NOW), Err(ReplayError::NoId)), "{other:?}");
    }
    let long = |bytes: usize| -> &'static str { format!("evt_{}", "x".repeat(bytes - 4)).leak() };
    let (longest, longer) = (long(MAX_ID_BYTES), long(MAX_ID_BYTES + 1));
    assert!(claim_at(guard, &event, |_| Some(longest), NOW).is_ok());
    assert!(matches!(claim_at(guard, &event, |_| Some(longer), NOW), Err(ReplayError::NoId)));
}

#[test]
fn memory_claims_fulfil_the_contract() {
    contract(|| MemoryClaims::new(100));
}

/// A database whose transactions write nothing until they commit.
#[derive(Debug, Default)]
struct Database(Mutex<Vec<String>>);

/// The events that a transaction claims.
type Transaction = Vec<String>;

impl ClaimStore for &Database {
    type Error = std::convert::Infallible;
    type Tx = Transaction;

    async fn claim(&self, tx: &mut Transaction, id: &str, _: u64, _: u64) -> Result<Held, Self::Error> {
        if self.0.lock().unwrap().iter().any(|done| done == id) {
            return Ok(Held::Done);
        }
        tx.push(id.to_owned());
        Ok(Held::ByYou(Ticket(0)))
    }

    async fn commit(&self, _: &mut Transaction, _: &str, _: Ticket, _: u64) -> Result<Committed, Self::Error> {
        Ok(Committed::Finally)
    }
}

#[test]
fn a_claim_in_a_transaction_counts_once_the_transaction_commits() {
    let database = Database::default();
    let (guard, event) = (ReplayGuard::new(&database), verified(EVENT));
    for is_committed in [false, true] {
        let mut tx = Transaction::new();
        let claim = ready(guard.claim_in(&mut tx, &event, id)).unwrap();
        let Claim::New(claimed) = claim else { panic!("{claim:?}") };
        ready(claimed.commit_in(&mut tx)).unwrap();
        if is_committed {
            database.0.lock().unwrap().extend(tx);
        }
    }
    assert!(matches!(ready(guard.claim_in(&mut Transaction::new(), &event, id)).unwrap(), Claim::Done));
}

#[test]
fn a_log_shows_the_event_of_a_claim() {
    let guard = ReplayGuard::new(MemoryClaims::new(1));
    let claimed = new(&guard, &verified(EVENT), NOW);
    assert!(format!("{claimed:?}").starts_with("Claimed { id: Some(\"evt_1\")"), "{claimed:?}");
}

#[test]
fn a_full_memory_store_rejects_new_claims_until_old_ones_expire() {
    let guard = &ReplayGuard::new(MemoryClaims::new(1));
    let (first, second) = (verified(EVENT), verified(r#"{"id":"evt_2"}"#));
    let claimed = new(guard, &first, NOW);
    ready(claimed.commit()).unwrap();
    assert!(matches!(claim_at(guard, &second, id, NOW), Err(ReplayError::Store(_))));
    assert!(matches!(claim_at(guard, &first, id, NOW).unwrap(), Claim::Done));
    assert!(matches!(claim_at(guard, &second, id, NOW + 601).unwrap(), Claim::New(_)));
}

/// The slow handler's own claim has expired, and another event has its place.
#[test]
fn a_full_memory_store_rejects_a_commit_of_an_expired_claim() {
    let guard = &ReplayGuard::new(MemoryClaims::new(1));
    let slow = new(guard, &verified(EVENT), NOW);
    let second = verified(r#"{"id":"evt_2"}"#);
    let held = new(guard, &second, NOW + CLAIM_SECONDS);
    assert!(matches!(ready(slow.commit()), Err(CommitError::Store(_))));
    ready(held.commit()).unwrap();
}

#[cfg(feature = "sled")]
mod on_sled {
    use std::thread;
    use std::time::{Duration, Instant};

    use webhook_verify::replay::SledClaims;

    use super::*;

    #[test]
    fn sled_claims_fulfil_the_contract() {
        let directory = tempfile::tempdir().unwrap();
        let fresh = AtomicUsize::new(0);
        contract(|| SledClaims::open(directory.path().join(fresh.fetch_add(1, Ordering::SeqCst).to_string())).unwrap());
    }

    /// Opens with retries, because sled's threads can hold the lock of a dropped store for a moment.
    fn with_retries<T, E: std::fmt::Debug>(open: impl Fn() -> Result<T, E>) -> T {
        let started = Instant::now();
        loop {
            match open() {
                Err(_) if started.elapsed() < Duration::from_secs(30) => thread::sleep(Duration::from_millis(10)),
                opened => return opened.unwrap(),
            }
        }
    }

    #[test]
    fn a_committed_claim_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let open = || ReplayGuard::new(with_retries(|| SledClaims::open(directory.path())));
        let event = verified(EVENT);
        ready(new(&open(), &event, NOW).commit()).unwrap();
        assert!(matches!(claim_at(&open(), &event, id, NOW).unwrap(), Claim::Done));
    }

    #[test]
    fn new_claims_remove_expired_claims_from_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let claims = SledClaims::open(directory.path()).unwrap();
        for number in 0..50 {
            ready(claims.claim(&mut (), &format!("evt_{number}"), NOW, NOW + 60)).unwrap();
        }
        for number in 0..50 {
            let now = NOW + 1000 + number * 100;
            ready(claims.claim(&mut (), &format!("evt_late_{number}"), now, now + 60)).unwrap();
        }
        drop(claims);
        let left = with_retries(|| sled::open(directory.path())).open_tree("claims").unwrap().len();
        assert!(left < 20, "{left} entries are left");
    }
}
