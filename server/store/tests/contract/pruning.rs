//! Pruning and redaction.

use payments_store::{ClaimEnd, Prunable, Store, Write, domain::Outgoing};
use std::sync::Arc;

use crate::samples::*;

pub(super) async fn old_responses_are_dropped_the_oldest_first_and_no_more_than_asked(store: Arc<Store>) {
    // Two responses are of one moment, and a key is used again after a day.
    for (text, time) in [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("a", DAY / SECOND + 2)] {
        store.commit(keeping(text, time, at(time * SECOND), ClaimEnd::NotClaimed)).await.unwrap();
    }
    let prune =
        async |seconds, at_most| store.prune(Prunable::StoredResponses, at(seconds * SECOND), at_most).await.unwrap();
    let kept = async || {
        let mut kept = String::new();
        for text in ["a", "b", "c", "d"] {
            let is_kept = store.stored_response(&key(text)).await.unwrap().is_some();
            kept += if is_kept { text } else { "" };
        }
        kept
    };
    assert_eq!((prune(2, 9).await, kept().await), (0, "abcd".into()), "what is of that time is not older");
    assert_eq!((prune(4, 1).await, kept().await.len()), (1, 3), "one of two");
    assert_eq!((prune(4, 1).await, kept().await), (1, "ad".into()));
    assert_eq!((prune(4, 9).await, prune(4, 9).await, kept().await), (1, 0, "a".into()));
    assert_eq!((prune(DAY / SECOND + 3, 9).await, kept().await), (1, String::new()));
    store.commit(keeping("a", 7, at(DAY + 3 * SECOND), ClaimEnd::NotClaimed)).await.unwrap();
}

/// The holders of keys that are claimed at a time, by the keys' names.
async fn claimed(store: &Arc<Store>, texts: &str, millis: i64) -> String {
    let mut claimed = String::new();
    for text in texts.chars() {
        let name = text.to_string();
        let refused = commit(store, vec![claiming(&name, 99, at(millis), at(millis + 1))]).await.is_err();
        claimed += if refused { &name } else { "" };
    }
    claimed
}

pub(super) async fn ended_claims_on_keys_are_dropped_the_oldest_first(store: Arc<Store>) {
    for (text, until) in [("a", 3), ("b", 1), ("c", 2), ("d", 5)] {
        commit(&store, vec![claiming(text, 1, at(0), at(until * SECOND))]).await.unwrap();
    }
    let prune = async |seconds, at_most| store.prune(Prunable::KeyClaims, at(seconds * SECOND), at_most).await.unwrap();
    assert_eq!(prune(1, 9).await, 0, "what ends at that time is not older");
    assert_eq!(prune(4, 1).await, 1);
    assert_eq!(claimed(&store, "acd", 500).await, "acd");
    assert_eq!((prune(4, 1).await, claimed(&store, "ad", 500).await), (1, "ad".into()));
    assert_eq!((prune(4, 9).await, prune(4, 9).await), (1, 0));
    assert_eq!(claimed(&store, "abcd", 500).await, "d");
}

pub(super) async fn a_claim_that_takes_over_while_the_old_one_is_dropped_stays(store: Arc<Store>) {
    for nth in 0..20 {
        let text = nth.to_string();
        commit(&store, vec![claiming(&text, 1, at(0), at(SECOND))]).await.unwrap();
        let taking_over = commit(&store, vec![claiming(&text, 2, at(2 * SECOND), at(9 * SECOND))]);
        // This commit comes first, so that the other two are decided together.
        let (_, taken_over, pruned) = tokio::join!(
            commit(&store, vec![claiming("busy", 1, at(nth), at(nth + 1))]),
            taking_over,
            store.prune(Prunable::KeyClaims, at(2 * SECOND), 9),
        );
        taken_over.unwrap();
        pruned.unwrap();
        let third = commit(&store, vec![claiming(&text, 3, at(3 * SECOND), at(9 * SECOND))]).await;
        assert_eq!(outcome(third), KEY_CLAIMED);
    }
}

async fn is_full(store: &Arc<Store>, outgoing: &Outgoing) -> bool {
    let stored = store.outgoing(&outgoing.delivery.id).await.unwrap().unwrap().delivery;
    let is_full = stored.payload.as_str() == outgoing.delivery.payload.as_str();
    assert!(is_full || stored.payload.as_str().ends_with(r#""data":{}}"#), "{}", stored.payload.as_str());
    assert!(is_full || stored.response_body.is_none());
    is_full
}

pub(super) async fn ended_deliveries_are_redacted_the_oldest_first_and_a_pending_one_holds_up_none(store: Arc<Store>) {
    let pings: Vec<_> = (0..6).map(|nth| ping(nth, at(i64::from(nth) * SECOND), &endpoint(1))).collect();
    commit(&store, pings.iter().map(delivery).collect()).await.unwrap();
    for ping in pings.iter().filter(|ping| ping.delivery.id != pings[2].delivery.id) {
        commit(&store, vec![end(ping)]).await.unwrap();
    }
    let redact =
        async |seconds, at_most| store.prune(Prunable::DeliveryBodies, at(seconds * SECOND), at_most).await.unwrap();
    let full = async || {
        let mut full = Vec::new();
        for (nth, ping) in pings.iter().enumerate() {
            full.extend(is_full(&store, ping).await.then_some(nth));
        }
        full
    };
    assert_eq!((redact(0, 9).await, full().await), (0, vec![0, 1, 2, 3, 4, 5]));
    assert_eq!((redact(4, 1).await, full().await), (1, vec![1, 2, 3, 4, 5]));
    assert_eq!((redact(4, 9).await, full().await), (3, vec![2, 4, 5]), "the pending one is passed and counts");
    assert_eq!(redact(4, 9).await, 0);
    assert_eq!(store.outbox(&endpoint(1).endpoint.id, 9).await.unwrap().ids, [pings[2].delivery.id.clone()]);
    commit(&store, vec![end(&pings[2])]).await.unwrap();
    assert_eq!(full().await, [4, 5], "its time was over when it ended");
}

pub(super) async fn a_delivery_that_ends_after_pruning_has_passed_it_is_redacted(store: Arc<Store>) {
    let (early, late) = (ping(1, at(0), &endpoint(1)), ping(2, at(SECOND), &endpoint(1)));
    commit(&store, vec![delivery(&late), end(&late)]).await.unwrap();
    assert_eq!(store.prune(Prunable::DeliveryBodies, at(DAY), 9).await.unwrap(), 1);
    // An earlier delivery: the clock stepped back, or it was committed late.
    commit(&store, vec![delivery(&early)]).await.unwrap();
    assert!(is_full(&store, &early).await, "it is still to be sent");
    commit(&store, vec![end(&early)]).await.unwrap();
    while store.prune(Prunable::DeliveryBodies, at(DAY), 9).await.unwrap() > 0 {}
    assert!(!is_full(&store, &early).await);
}

pub(super) async fn a_delivery_that_waits_for_its_next_attempt_keeps_its_payload(store: Arc<Store>) {
    let ping = ping(1, at(0), &endpoint(1));
    commit(&store, vec![delivery(&ping), wait(&ping, at(DAY))]).await.unwrap();
    assert_eq!(store.prune(Prunable::DeliveryBodies, at(DAY), 9).await.unwrap(), 1, "it is passed and counts");
    assert!(is_full(&store, &ping).await);
    let due = store.outgoing(&ping.delivery.id).await.unwrap().unwrap().due().unwrap();
    commit(&store, vec![Write::DeliveryChanged(Box::new(due.clone()))]).await.unwrap();
    assert!(is_full(&store, &ping).await, "it is still to be sent");
    commit(&store, vec![end(&due)]).await.unwrap();
    assert!(!is_full(&store, &ping).await);
}
