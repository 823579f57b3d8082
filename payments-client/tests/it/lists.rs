//! Lists as streams, and what is told from them.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt};
use payments_client::{CreatePayment, PaymentId, SimulateOutcome, Standing, Timestamp};

use crate::{
    ill_server::{IllServer, answer},
    server::Server,
};

fn cup() -> CreatePayment {
    CreatePayment::new("750".parse().unwrap(), "https://shop.example/paid", "https://shop.example/cart")
}

#[tokio::test]
async fn a_stream_neither_repeats_nor_loses_a_payment_while_new_ones_arrive() {
    let server = Server::start();
    let client = server.client();
    let mut before = BTreeSet::new();
    for _ in 0..23 {
        before.insert(client.payments().create(cup()).await.unwrap().id.to_string());
    }
    let mut stream = client.payments().list().limit(5).stream();
    let mut told = Vec::new();
    while let Some(payment) = stream.try_next().await.unwrap() {
        told.push(payment.id.to_string());
        // Of the first pages, each item is followed by a new payment: more than a page arrives between two pages.
        if told.len() <= 10 {
            client.payments().create(cup()).await.unwrap();
            client.payments().create(cup()).await.unwrap();
        }
    }
    let distinct = told.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(told.len(), distinct.len(), "none is repeated");
    assert!(distinct.is_superset(&before), "none is lost");
}

#[tokio::test]
async fn a_server_that_repeats_itself_is_not_asked_for_ever() {
    let payment = {
        let server = Server::start();
        let client = server.client();
        client.payments().create(cup()).await.unwrap()
    };
    let page = format!(r#"{{"items":[{}],"total":9,"page":1,"limit":1}}"#, serde_json::to_string(&payment).unwrap());
    let server = IllServer::start(vec![answer(200, "", &page)]).await;
    let told: Vec<_> = server.client().payments().list().stream().try_collect().await.unwrap();
    assert_eq!((told.len(), server.heard().len()), (1, 2));
}

#[tokio::test]
async fn a_stream_that_is_dropped_asks_no_more() {
    let server = IllServer::start(vec![answer(500, "", "")]).await;
    let client = server.builder().retries(0).build().unwrap();
    drop(client.payments().list().stream());
    assert!(server.heard().is_empty());
    let mut stream = client.payments().list().stream();
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.is_none());
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn payments_are_told_completed_abandoned_or_open() {
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
    let asked = ids.iter().cloned().chain([unknown.clone()]).collect::<Vec<_>>();
    let told: std::collections::HashMap<_, _> = client.payments().reconcile(asked, 2).collect().await;
    let standing = |id| told[id].as_ref().unwrap().standing;
    assert_eq!(standing(&ids[0]), Standing::Completed);
    assert_eq!(standing(&ids[1]), Standing::Abandoned);
    assert_eq!(standing(&ids[2]), Standing::Open);
    assert!(told[&unknown].as_ref().unwrap_err().is_not_found());

    let moment = |text: &str| text.parse::<Timestamp>().unwrap();
    let all = client.payments().reconcile_between(moment("2020-01-01T00:00:00Z"), moment("2200-01-01T00:00:00Z"));
    assert_eq!(all.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let none = client.payments().reconcile_between(moment("2200-01-01T00:00:00Z"), moment("2201-01-01T00:00:00Z"));
    assert!(none.try_collect::<Vec<_>>().await.unwrap().is_empty());
}
