//! Idempotency keys: their responses and claims.

use std::sync::Arc;

use futures_util::future::join_all;
use payments_core::RawJson;
use payments_store::{Change, ClaimEnd, CommitError, Conflict, NewResponse, Store, Write};

use crate::samples::*;

async fn body_of(store: &Arc<Store>, text: &str) -> Option<RawJson> {
    store.stored_response(&key(text)).await.unwrap().map(|response| response.body)
}

pub(super) async fn a_response_is_stored_under_a_key_for_a_day(store: Arc<Store>) {
    for (body, time, expected) in
        [(1, 0, COMMITTED), (2, 0, KEY_USED), (3, DAY - 1, KEY_USED), (4, DAY, COMMITTED), (5, DAY + 1, KEY_USED)]
    {
        let kept = store.commit(keeping("one", body, at(time), ClaimEnd::NotClaimed)).await;
        if let Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(used))) = &kept {
            assert_eq!(used.body, response(if time < DAY { 1 } else { 4 }));
        }
        assert_eq!(outcome(kept), expected, "the response {body}");
    }
    assert_eq!(body_of(&store, "one").await, Some(response(4)));
    assert_eq!(body_of(&store, "another").await, None);
}

pub(super) async fn one_of_several_simultaneous_responses_to_a_key_is_stored_and_the_others_get_it(store: Arc<Store>) {
    let keeps = (0..8).map(|body| store.commit(keeping("one", body, at(body), ClaimEnd::NotClaimed)));
    let outcomes = join_all(keeps).await;
    let kept = body_of(&store, "one").await.unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for outcome in outcomes {
        match outcome {
            Ok(_) => {}
            Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(used))) => assert_eq!(used.body, kept),
            Err(other) => panic!("{other}"),
        }
    }
}

pub(super) async fn a_response_that_is_also_the_data_of_an_event_stays_as_it_was(store: Arc<Store>) {
    let new = new_payment(1, at(0));
    let (before, body) = (new.session.clone(), RawJson::of(&new.session.payment).unwrap());
    let (key, fingerprint) = (key("one"), "v2:1".to_owned());
    let keep = NewResponse { key, fingerprint, created_at: at(0), body: body.clone(), claim: ClaimEnd::NotClaimed };
    store.commit(Change { idempotency: Some(keep), ..Change::of(payment(new)) }).await.unwrap();
    assert_eq!(body_of(&store, "one").await, Some(body.clone()));
    commit(&store, vec![payment(paid(&before, at(5)))]).await.unwrap();
    assert_eq!(body_of(&store, "one").await, Some(body));

    let other = keeping("two", 2, at(6), ClaimEnd::NotClaimed);
    store.commit(Change { writes: vec![payment(new_payment(2, at(6)))], ..other }).await.unwrap();
    assert_eq!(body_of(&store, "two").await, Some(response(2)), "one that is not what the event holds");
}

pub(super) async fn a_key_has_one_holder_until_it_finishes_releases_or_its_lease_ends(store: Arc<Store>) {
    const LEASE: i64 = 20 * SECOND;
    let claim = async |nth, now| outcome(commit(&store, vec![claiming("one", nth, at(now), at(now + LEASE))]).await);
    let release = async |nth| commit(&store, vec![Write::KeyReleased(key("one"), token(nth))]).await.unwrap();
    let finish = async |end, now| outcome(store.commit(keeping("one", 1, at(now), end)).await);
    assert_eq!(claim(1, 0).await, COMMITTED);
    assert_eq!(claim(2, LEASE - 1).await, KEY_CLAIMED);
    release(2).await;
    assert_eq!(claim(2, 1).await, KEY_CLAIMED, "the release of somebody else does nothing");
    release(1).await;
    assert_eq!(claim(2, 1).await, COMMITTED);
    assert_eq!(claim(3, 1 + LEASE).await, COMMITTED, "the lease has ended");
    assert_eq!(finish(ClaimEnd::Held(token(2)), 2 + LEASE).await, CLAIM_LOST);
    assert_eq!(finish(ClaimEnd::Held(token(3)), 2 + LEASE).await, COMMITTED);
    assert_eq!(claim(4, 3 + LEASE).await, KEY_USED);
    assert_eq!(finish(ClaimEnd::Held(token(2)), 3 + LEASE).await, KEY_USED);
    // After a day the key is unused again. [`ClaimEnd::Any`] ends any claim.
    assert_eq!(claim(5, 2 + LEASE + DAY).await, COMMITTED);
    assert_eq!(finish(ClaimEnd::Any, 3 + LEASE + DAY).await, COMMITTED);
    assert_eq!(claim(6, 3 + LEASE + 2 * DAY).await, COMMITTED, "no claim is left");
    // A request that outlived its lease may finish as long as no other one has taken over.
    assert_eq!(finish(ClaimEnd::Held(token(6)), 3 + 2 * LEASE + 2 * DAY).await, COMMITTED);
}

pub(super) async fn a_claim_on_a_key_that_was_made_before_the_clock_went_back_ends(store: Arc<Store>) {
    const LEASE: i64 = 20 * SECOND;
    let claim = async |nth, now| outcome(commit(&store, vec![claiming("one", nth, at(now), at(now + LEASE))]).await);
    assert_eq!(claim(1, 0).await, COMMITTED);
    assert_eq!(claim(2, -LEASE).await, KEY_CLAIMED, "the clocks of two servers may differ");
    assert_eq!(claim(2, -LEASE - 1).await, COMMITTED);
    assert_eq!(outcome(store.commit(keeping("one", 1, at(0), ClaimEnd::Held(token(1)))).await), CLAIM_LOST);
}
