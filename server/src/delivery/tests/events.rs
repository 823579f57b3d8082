//! Which requests follow an event, and when.

use payments_core::{DeliveryErrorCode, DeliveryStatus};
use tokio::time::{Instant, timeout};

use super::*;

/// The kinds of the events that a host received, in order.
fn kinds(shop: &Shop, host: &str) -> Vec<String> {
    let heard = shop.heard().into_iter().filter(|heard| heard.host() == host);
    heard.map(|heard| heard.header("x-service-event").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_reaches_each_subscribed_endpoint_once_and_without_delay() {
    let server = Server::new(|_| Answer::status(200, 1));
    let mut unwilling = endpoint(3);
    unwilling.endpoint.is_active = false;
    server.commit(vec![added(endpoint(1)), added(endpoint(2)), added(unwilling)]).await;
    after_millis(1_500).await;
    let (new, session) = created(1);
    server.request(vec![new]).await;
    after_millis(50).await;
    assert_eq!(counted(&server.shop), [(host(1), 1), (host(2), 1)].into());
    // The lanes have ended and released their claims, so the next event can claim them.
    server.request(vec![paid(&session, 1)]).await;
    after_millis(50).await;
    assert_eq!(kinds(&server.shop, &host(1)), ["payment.created", "payment.completed"]);
    assert_eq!(kinds(&server.shop, &host(2)), ["payment.created", "payment.completed"]);
    for delivered in server.deliveries_to(1).await {
        assert_eq!((delivered.delivery.status, delivered.delivery.attempts), (DeliveryStatus::Success, 1));
    }
    after_millis(60_000).await;
    assert_eq!(server.shop.heard().len(), 4);
    assert_eq!(server.metrics.deliveries.permits.held.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_and_deliveries_without_a_signal_are_found_within_a_second() {
    let server = Server::new(|_| Answer::status(200, 1));
    server.commit(vec![added(endpoint(1))]).await;
    after_millis(1_500).await;
    server.commit(vec![created(1).0]).await;
    after_millis(1_010).await;
    assert_eq!(server.shop.heard().len(), 1);
    server.commit(vec![delivery(&ping(2_000, &endpoint(1)))]).await;
    after_millis(1_010).await;
    assert_eq!(kinds(&server.shop, &host(1)), ["payment.created", "test.ping"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_with_more_endpoints_than_a_round_reaches_all_in_the_order_of_events() {
    for endpoints in [127, 128, 129, 300] {
        let server = Server::new(|_| Answer::status(200, 1));
        server.commit((0..endpoints).map(|nth| added(endpoint(nth))).collect()).await;
        let (first, second) = (created(1), created(2));
        server.request(vec![first.0, second.0, paid(&first.1, 1)]).await;
        after_millis(4_000).await;
        let expected = (0..endpoints).map(|nth| (host(nth), 3)).collect();
        assert_eq!(counted(&server.shop), expected);
        for nth in 0..endpoints {
            let made = server.deliveries_to(nth).await;
            assert_eq!(made.len(), 3);
            let of_first = made.iter().filter(|made| made.subject == Some(first.1.payment.id.clone().into()));
            let kinds: Vec<_> = of_first.map(|made| made.delivery.event.as_str()).collect();
            assert_eq!(kinds, ["payment.created", "payment.completed"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn more_events_than_a_round_claims_are_delivered_without_a_pause() {
    let server = Server::new(|_| Answer::status(200, 1));
    server.commit(vec![added(endpoint(1))]).await;
    server.request((0..100).map(|nth| created(nth).0).collect()).await;
    after_millis(900).await;
    assert_eq!(counted(&server.shop), [(host(1), 100)].into());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_fan_out_ends_when_all_events_have_deliveries_or_after_a_second() {
    let server = Server::new(|_| Answer::Silence);
    server.commit(vec![added(endpoint(1))]).await;
    for nth in 1..=3 {
        after_millis(1_500).await;
        server.commit(vec![created(nth).0]).await;
        let begun = Instant::now();
        server.signal.settled().await;
        assert_eq!(server.deliveries_to(1).await.len(), usize::from(nth));
        assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    }
    // The wait ends even if the store does not answer.
    server.commit(vec![created(4).0]).await;
    server.store.fail_commits(1_000);
    timeout(Duration::from_millis(1_010), server.signal.settled()).await.unwrap();
    assert_eq!(server.deliveries_to(1).await.len(), 3);
    // The event is not lost.
    server.store.fail_commits(0);
    after_millis(2_000).await;
    assert_eq!(server.deliveries_to(1).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn only_one_of_the_servers_on_a_store_delivers_each_event() {
    let server = Server::new(|_| Answer::status(200, 700));
    let other = server.beside();
    server.commit((0..10).map(|nth| added(endpoint(nth))).collect()).await;
    for nth in 0..20 {
        let by = if nth % 2 == 0 { &server } else { &other };
        by.request(vec![created(nth).0]).await;
        after_millis(90).await;
    }
    after_millis(30_000).await;
    assert_eq!(counted(&server.shop), (0..10).map(|nth| (host(nth), 20)).collect());
}

#[tokio::test(start_paused = true)]
async fn the_deliveries_of_a_removed_or_inactive_endpoint_end_without_a_request() {
    let server = Server::new(|_| Answer::status(200, 1));
    let mut inactive = endpoint(2);
    inactive.endpoint.is_active = false;
    server.commit(vec![added(inactive.clone())]).await;
    server.commit(vec![delivery(&ping(1, &endpoint(1))), delivery(&ping(2, &inactive))]).await;
    after_millis(1_100).await;
    assert_eq!(server.shop.heard().len(), 0);
    for nth in [1, 2] {
        let ended = server.deliveries_to(nth).await.remove(0).delivery;
        let code = ended.error.map(|error| error.code);
        assert_eq!(
            (ended.status, ended.attempts, code),
            (DeliveryStatus::Failed, 0, Some(DeliveryErrorCode::EndpointRemoved))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_delivery_is_repeated_when_its_next_attempt_is_due() {
    let begun = Instant::now();
    let server =
        Server::new(move |_| Answer::status(if begun.elapsed() < Duration::from_secs(3) { 500 } else { 200 }, 7));
    server.commit(vec![added(with_retries(1)), added(endpoint(2))]).await;
    server.request(vec![created(1).0]).await;
    after_millis(100).await;
    let waiting = server.deliveries_to(1).await.remove(0).delivery;
    assert_eq!((waiting.status, waiting.attempts), (DeliveryStatus::Pending, 1));
    assert!(server.endpoint(1).await.failing_since.is_some());
    after_millis(8_000).await;
    let heard: Vec<_> = server.shop.heard().into_iter().filter(|heard| heard.host() == host(1)).collect();
    assert_eq!(heard.len(), 2);
    let between = heard[1].at - heard[0].at;
    assert!((5_000..7_100).contains(&between.as_millis()), "{between:?}");
    let delivered = server.deliveries_to(1).await.remove(0).delivery;
    assert_eq!((delivered.status, delivered.attempts), (DeliveryStatus::Success, 2));
    let log = delivered.attempt_log.unwrap();
    assert_eq!(log.iter().map(|attempt| attempt.response_status).collect::<Vec<_>>(), [Some(500), Some(200)]);
    assert!(log.iter().all(|attempt| attempt.duration_ms.is_some_and(|took| (7..20).contains(&took))), "{log:?}");
    assert_eq!(server.endpoint(1).await.failing_since, None);
    // An endpoint without retries gets one attempt, and no log of it.
    let failed = server.deliveries_to(2).await.remove(0).delivery;
    assert_eq!((failed.status, failed.attempts, failed.attempt_log), (DeliveryStatus::Failed, 1, None));
}

#[tokio::test(start_paused = true)]
async fn all_due_deliveries_return_to_the_outbox_at_one_tick() {
    let server = Server::new(|_| Answer::status(200, 1));
    server.commit(vec![added(with_retries(1))]).await;
    let waiting = (0..200).map(|nth| {
        let mut waiting = ping(nth, &endpoint(1));
        waiting.delivery.next_attempt_at = Some(at(5_500));
        delivery(&waiting)
    });
    server.commit(waiting.collect()).await;
    after_millis(5_900).await;
    assert_eq!(server.shop.heard().len(), 0);
    after_millis(600).await;
    assert_eq!(server.shop.heard().len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_closing_server_sends_nothing_more_and_waits_for_requests_in_flight() {
    let server = Server::new(|_| Answer::status(200, 3_000));
    server.commit((1..=9).map(|nth| added(endpoint(nth))).collect()).await;
    server.request(vec![created(1).0]).await;
    after_millis(100).await;
    assert_eq!(server.shop.heard().len(), 7, "one permit is kept for other developers");
    let begun = Instant::now();
    server.dispatcher.close().await;
    assert!((2_800..3_100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    after_millis(20_000).await;
    assert_eq!(server.shop.heard().len(), 7);
    let mut statuses = Vec::new();
    for nth in 1..=9 {
        statuses.push(server.deliveries_to(nth).await.remove(0).delivery.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == DeliveryStatus::Success).count(), 7);
    assert_eq!(statuses.iter().filter(|status| **status == DeliveryStatus::Pending).count(), 2);
}
