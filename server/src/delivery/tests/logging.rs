//! How an attempt is logged when something else happens during it.

use std::slice;

use payments_core::DeliveryStatus;

use super::*;
use crate::store::{Lease, Queue};

/// A server that began an attempt a second ago. The attempt takes longer.
async fn in_flight(to: Endpoint, answer: Answer) -> Server {
    let server = Server::new(move |_| answer.clone());
    server.commit(vec![added(to)]).await;
    server.request(vec![created(1).0]).await;
    after_millis(1_000).await;
    server
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_changed_during_an_attempt_keeps_the_change_and_notes_the_failure() {
    let server = in_flight(with_retries(1), Answer::status(500, 2_000)).await;
    let mut changed = server.endpoint(1).await;
    changed.version += 1;
    changed.endpoint.url = "https://shop1.example/new".parse().unwrap();
    server.commit(vec![Write::EndpointChanged(Box::new(changed.clone()))]).await;
    after_millis(1_500).await;
    let now = server.endpoint(1).await;
    assert_eq!((now.version, &now.endpoint.url), (2, &changed.endpoint.url));
    assert!(now.failing_since.is_some());
    let waiting = server.deliveries_to(1).await.remove(0).delivery;
    assert_eq!((waiting.status, waiting.attempts, server.shop.heard().len()), (DeliveryStatus::Pending, 1, 1));
    assert!(waiting.next_attempt_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_failed_delivery_ends_if_its_endpoint_was_removed_during_the_attempt() {
    let server = in_flight(with_retries(1), Answer::status(500, 2_000)).await;
    server.commit(vec![Write::EndpointRemoved(Box::new(with_retries(1)))]).await;
    after_millis(60_000).await;
    let ended = server.deliveries_to(1).await.remove(0).delivery;
    assert_eq!((ended.status, ended.attempts, server.shop.heard().len()), (DeliveryStatus::Failed, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_logged_once_the_store_works_again_and_is_not_repeated() {
    let server = Server::new(|_| Answer::status(200, 100));
    server.commit(vec![added(endpoint(1)), added(with_retries(2))]).await;
    server.request(vec![created(1).0]).await;
    after_millis(50).await;
    server.store.fail_commits(6);
    after_millis(2_000).await;
    assert!(server.deliveries_to(1).await[0].is_pending());
    after_millis(2_000).await;
    assert_eq!(counted(&server.shop), [(host(1), 1), (host(2), 1)].into());
    for nth in [1, 2] {
        assert_eq!(server.deliveries_to(nth).await[0].delivery.status, DeliveryStatus::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_not_logged_if_another_server_has_claimed_its_lane() {
    let server = in_flight(endpoint(1), Answer::status(200, 2_500)).await;
    let later = Lease::new(at(10_500), 10);
    let taken = server.store.claim(Queue::Lanes, &later, 9).await.unwrap();
    assert_eq!(taken.len(), 1);
    after_millis(3_000).await;
    let made = server.deliveries_to(1).await.remove(0);
    assert!(made.is_pending(), "the other server makes an attempt of its own");
    assert_eq!((made.delivery.attempts, server.shop.heard().len()), (0, 1));
    // Once the lane is unclaimed again, the first server goes on.
    server.store.release(slice::from_ref(&taken[0])).await.unwrap();
    after_millis(5_000).await;
    assert!(!server.deliveries_to(1).await[0].is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_loses_its_claim_starts_no_further_attempt() {
    let server = Server::new(|_| Answer::status(200, 7_000));
    server.commit(vec![added(endpoint(1))]).await;
    server.request((0..10).map(|nth| created(nth).0).collect()).await;
    after_millis(1_000).await;
    let heard = server.shop.heard().len();
    assert!(heard < 10, "{heard}");
    let later = Lease::new(at(10_500), 10);
    assert_eq!(server.store.claim(Queue::Lanes, &later, 9).await.unwrap().len(), 1);
    // By now all attempts have ended, but the other server's lease has not.
    after_millis(9_000).await;
    assert_eq!(server.shop.heard().len(), heard);
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_renewed_for_as_long_as_its_lane_works() {
    let server = Server::new(|_| Answer::status(200, 7_900));
    let other = server.beside();
    server.commit(vec![added(endpoint(1))]).await;
    server.request((0..30).map(|nth| created(nth).0).collect()).await;
    after_millis(120_000).await;
    assert_eq!(counted(&other.shop), [(host(1), 30)].into());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_not_logged_twice() {
    for first in [endpoint(1), with_retries(1)] {
        let server = in_flight(first, Answer::status(500, 2_000)).await;
        let mut logged = server.deliveries_to(1).await.remove(0);
        logged.version += 1;
        logged.delivery.status = DeliveryStatus::Success;
        server.commit(vec![Write::DeliveryChanged(Box::new(logged))]).await;
        after_millis(60_000).await;
        let delivered = server.deliveries_to(1).await.remove(0);
        assert_eq!((delivered.version, delivered.delivery.status), (1, DeliveryStatus::Success));
        assert_eq!(server.shop.heard().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_cannot_be_sent_stays_in_the_outbox_until_it_can() {
    let begun = tokio::time::Instant::now();
    let server = Server::new(move |_| match begun.elapsed() < Duration::from_millis(2_500) {
        true => Answer::NotSent,
        false => Answer::status(200, 1),
    });
    server.commit(vec![added(endpoint(1))]).await;
    server.request(vec![created(1).0]).await;
    after_millis(2_000).await;
    assert!(server.deliveries_to(1).await[0].is_pending());
    assert_eq!((server.metrics.deliveries.not_sent.get(), server.metrics.deliveries.permits.held.get()), (2, 0));
    after_millis(2_000).await;
    let delivered = server.deliveries_to(1).await.remove(0).delivery;
    assert_eq!((delivered.status, delivered.attempts), (DeliveryStatus::Success, 1));
}

/// The maximum number of requests in flight to an endpoint, after its first twenty.
async fn most_at_once(answer: Answer) -> usize {
    let server = Server::new(move |_| answer.clone());
    server.commit(vec![added(endpoint(1))]).await;
    server.request((0..60).map(|nth| created(nth).0).collect()).await;
    after_millis(600_000).await;
    assert_eq!(server.shop.heard().len(), 60);
    let begun: Vec<_> = server.shop.heard().iter().map(|heard| heard.at).collect();
    begun.iter().skip(20).map(|at| begun.iter().filter(|other| *other == at).count()).max().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_with_endless_responses_gets_one_request_at_a_time() {
    let late = vec![(Duration::from_secs(60), bytes::Bytes::from_static(b"thanks"))];
    assert_eq!(most_at_once(Answer::Http { after: Duration::ZERO, status: 200, parts: late }).await, 1);
    let refused = most_at_once(Answer::status(500, 100)).await;
    assert!(refused >= 4, "it answers in time: {refused}");
}
