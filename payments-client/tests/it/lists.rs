//! Streams of lists, and reconciliation.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt};
use payments_client::{CreatePayment, Money, PaymentId, SimulateOutcome, Standing, Timestamp};

use crate::{
    scripted_server::{ScriptedServer, respond},
    server::Server,
};

fn cup() -> CreatePayment {
    CreatePayment::of(Money::taka(750)).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart")
}

#[tokio::test]
async fn a_stream_neither_repeats_nor_misses_a_payment_while_new_ones_arrive() {
    let server = Server::start();
    let client = server.client();
    let mut before = BTreeSet::new();
    for _ in 0..23 {
        before.insert(client.payments().create(cup()).await.unwrap().id.to_string());
    }
    let mut stream = client.payments().list().limit(5).stream();
    let mut streamed = Vec::new();
    while let Some(payment) = stream.try_next().await.unwrap() {
        streamed.push(payment.id.to_string());
        // More than a page of new payments arrives between two requests.
        if streamed.len() <= 10 {
            client.payments().create(cup()).await.unwrap();
            client.payments().create(cup()).await.unwrap();
        }
    }
    let distinct = streamed.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(streamed.len(), distinct.len(), "the stream repeats an item");
    assert!(distinct.is_superset(&before), "the stream misses an item");
}

#[tokio::test]
async fn a_stream_ends_if_the_server_repeats_a_page() {
    let payment = {
        let server = Server::start();
        let client = server.client();
        client.payments().create(cup()).await.unwrap()
    };
    let page = format!(r#"{{"items":[{}],"total":9,"page":1,"limit":1}}"#, serde_json::to_string(&payment).unwrap());
    let server = ScriptedServer::start(vec![respond(200, "", &page)]).await;
    let streamed: Vec<_> = server.client().payments().list().stream().try_collect().await.unwrap();
    // One of the requests is by cursor, which this server does not know.
    assert_eq!((streamed.len(), server.requests().len()), (1, 3));
}

#[tokio::test]
async fn a_dropped_or_failed_stream_sends_no_more_requests() {
    let server = ScriptedServer::start(vec![respond(500, "", "")]).await;
    let client = server.builder().retries(0).build().unwrap();
    drop(client.payments().list().stream());
    assert!(server.requests().is_empty());
    let mut stream = client.payments().list().stream();
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.is_none());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn reconcile_returns_completed_abandoned_and_open_payments() {
    let server = Server::start();
    let client = server.client();
    let mut ids = Vec::new();
    for outcome in [Some(SimulateOutcome::Completed), Some(SimulateOutcome::Failed), None] {
        let id = client.payments().create(cup()).await.unwrap().id;
        if let Some(outcome) = outcome {
            client.checkout().simulate(&id, outcome).await.unwrap();
        }
        ids.push(id);
    }
    let unknown: PaymentId = "pay_none".parse().unwrap();
    let all_ids = ids.iter().cloned().chain([unknown.clone()]).collect::<Vec<_>>();
    let streamed: std::collections::HashMap<_, _> = client.payments().reconcile(all_ids, 2).collect().await;
    let standing = |id| streamed[id].as_ref().unwrap().standing;
    assert_eq!(standing(&ids[0]), Standing::Completed);
    assert_eq!(standing(&ids[1]), Standing::Abandoned);
    assert_eq!(standing(&ids[2]), Standing::Open);
    assert!(streamed[&unknown].as_ref().unwrap_err().is_not_found());

    let timestamp = |text: &str| text.parse::<Timestamp>().unwrap();
    let all = client.payments().reconcile_between(timestamp("2020-01-01T00:00:00Z"), timestamp("2200-01-01T00:00:00Z"));
    assert_eq!(all.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let none =
        client.payments().reconcile_between(timestamp("2200-01-01T00:00:00Z"), timestamp("2201-01-01T00:00:00Z"));
    assert!(none.try_collect::<Vec<_>>().await.unwrap().is_empty());
}
