//! The list of events: all events about payments, even those for which there was no endpoint.

use std::time::Duration;

use futures_util::{TryStreamExt, future::join_all};
use payments_client::{
    CreatePayment, Event, EventId, EventKind, ListedEvent, Money, PaymentId, SimulateOutcome, Standing,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{engine::Engine, receiver::Receiver, server::Server};

async fn create(server: &Server) -> PaymentId {
    server.client().payments().create(cup()).await.unwrap().id
}

fn cup() -> CreatePayment {
    CreatePayment::of(Money::taka(750)).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart")
}

async fn listed(server: &Server, after: Option<&EventId>) -> Vec<ListedEvent> {
    server.client().events().stream_since(after.cloned()).try_collect().await.unwrap()
}

/// Waits, because a database shows an event only when all earlier transactions have ended.
async fn listed_once_there_are(server: &Server, after: Option<&EventId>, expected: usize) -> Vec<ListedEvent> {
    let all = async {
        loop {
            let found = listed(server, after).await;
            if found.len() >= expected {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), all).await.unwrap()
}

async fn the_list_has_what_was_sent_and_what_was_not(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    // This event happens before there is an endpoint.
    let first = create(&server).await;
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let second = create(&server).await;
    server.client().checkout().simulate(&second, SimulateOutcome::Completed).await.unwrap();
    server.ended_deliveries(2).await;

    let events = listed_once_there_are(&server, None, 3).await;
    let kinds: Vec<_> = events.iter().map(|event| (event.kind().clone(), event.payment().unwrap().id)).collect();
    let created = EventKind::PaymentCreated;
    assert_eq!(
        kinds,
        [(created.clone(), first), (created, second.clone()), (EventKind::PaymentCompleted, second.clone())]
    );
    // The list has every event that was sent.
    for received in receiver.received() {
        let sent: Event = received.verified_with(&secret);
        assert!(events.iter().any(|event| **event == sent), "{sent:?}");
    }
    server.crash_and_restart();
    assert_eq!(listed(&server, None).await, events);
    assert_eq!(listed(&server, Some(events[1].id())).await, events[2..]);
    assert_eq!(listed(&server, Some(events[2].id())).await, []);
    let one = server.client().events().retrieve(events[2].id()).await.unwrap();
    assert_eq!(one, events[2]);

    let client = server.client();
    assert_eq!(client.events().end().await.unwrap().as_ref(), Some(events[2].id()));
    let of_payment = client.events().list().payment(&second).await.unwrap();
    assert_eq!((of_payment.items, of_payment.has_more), (events[1..].to_vec(), false));
    let completed = client.events().list().events([&EventKind::PaymentCompleted]).await.unwrap();
    assert_eq!(completed.items, events[2..]);
    let until = events[2].created_at();
    let before = client.events().list().created_before(until).await.unwrap();
    assert_eq!(before.items, events[..2]);
    let since = client.events().list().created_after(until).await.unwrap();
    assert_eq!(since.items, events[2..]);
    let part = client.events().list().limit(2).await.unwrap();
    assert_eq!((part.items.len(), part.has_more, part.next.as_ref()), (2, true, Some(events[1].id())));

    let missed: Vec<_> = client.payments().reconcile_since(None).try_collect().await.unwrap();
    let standings: Vec<_> = missed.iter().map(|(_, found)| found.standing).collect();
    assert_eq!(standings, [Standing::Open, Standing::Open, Standing::Completed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_sent_and_unsent_events_on_a_directory() {
    the_list_has_what_was_sent_and_what_was_not(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_sent_and_unsent_events_on_postgresql() {
    the_list_has_what_was_sent_and_what_was_not(Engine::Postgres).await;
}

/// Payments are created concurrently while a reader follows the list.
async fn a_reader_who_follows_while_payments_arrive_misses_none_and_reads_none_twice(engine: Engine) {
    const PAYMENTS: usize = 120;
    let server = Server::start_on(engine, &[]);
    let client = server.client();
    let creating = tokio::spawn(async move {
        let all = join_all((0..PAYMENTS).map(|_| client.payments().create(cup()).send())).await;
        all.into_iter().map(|payment| payment.unwrap().id).collect::<Vec<_>>()
    });
    let mut found: Vec<ListedEvent> = Vec::new();
    let follow = async {
        while found.len() < PAYMENTS {
            let cursor = found.last().map(|event| event.id().clone());
            found.extend(listed(&server, cursor.as_ref()).await);
        }
    };
    timeout(Duration::from_secs(60), follow).await.unwrap();
    let mut created = creating.await.unwrap();
    let mut told: Vec<_> = found.iter().map(|event| event.payment().unwrap().id).collect();
    created.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, created);
    assert_eq!(listed(&server, None).await, found, "the order stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_growing_list_misses_no_event_and_repeats_none_on_a_directory() {
    a_reader_who_follows_while_payments_arrive_misses_none_and_reads_none_twice(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_growing_list_misses_no_event_and_repeats_none_on_postgresql() {
    a_reader_who_follows_while_payments_arrive_misses_none_and_reads_none_twice(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_others_are_not_found_and_errors_name_wrong_parameters() {
    let server = Server::start();
    let payment = create(&server).await;
    let event = listed(&server, None).await.remove(0);
    let other = server.new_key("Other shop", "test");
    for (path, status, code, word) in [
        (format!("/events/{}", event.id()), StatusCode::NOT_FOUND, "event_not_found", "event"),
        (format!("/events?after={}", event.id()), StatusCode::NOT_FOUND, "cursor_unknown", "event"),
        (format!("/events?after={payment}"), StatusCode::BAD_REQUEST, "field_invalid", "latest"),
        (format!("/events?paymentId={payment}"), StatusCode::NOT_FOUND, "payment_not_found", "payment"),
        ("/events?events=payment.lost".to_owned(), StatusCode::BAD_REQUEST, "field_invalid", "events"),
        ("/events?createdAfter=today".to_owned(), StatusCode::BAD_REQUEST, "field_invalid", "createdAfter"),
        ("/events?limit=0".to_owned(), StatusCode::BAD_REQUEST, "field_invalid", "limit"),
    ] {
        let request = server.keyless(Method::GET, &format!("/api/v1{path}")).bearer_auth(&other);
        let answer = request.send().await.unwrap();
        let (found, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!((found, &body["code"]), (status, &json!(code)), "{path}");
        assert!(body["message"].to_string().contains(word), "{body}");
    }
    assert_eq!(server.client().events().end().await.unwrap().as_ref(), Some(event.id()));
    let of_payment = server.request(Method::GET, &format!("/events?after=latest&paymentId={payment}"));
    let end = of_payment.send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(end, json!({"items": [], "hasMore": false, "next": event.id()}));
    let none = server.keyless(Method::GET, "/api/v1/events").bearer_auth(&other).send().await.unwrap();
    let end = server.keyless(Method::GET, "/api/v1/events?after=latest").bearer_auth(&other).send().await.unwrap();
    assert_eq!(end.json::<Value>().await.unwrap(), json!({"items": [], "hasMore": false, "next": null}));
    assert_eq!(none.json::<Value>().await.unwrap(), json!({"items": [], "hasMore": false, "next": null}));
}
