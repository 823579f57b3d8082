//! The layout over several cells, and how many round trips it takes.

use payments_core::{DeveloperId, Environment, RANDOM_BYTES, Slot, Status, WebhookId, WorkspaceId};
use payments_store::{
    Change, ClaimEnd, NewResponse, Prunable, Queue, Write,
    domain::{Scope, Workspace},
};

use crate::{Engine, Postgres, check, samples::*};

/// A developer in each cell, with a workspace.
async fn scopes(engine: &Postgres) -> Vec<Scope> {
    let mut scopes = Vec::new();
    for slot in Slot::all().step_by(128) {
        let developer_id = DeveloperId::new(slot, at(0), [1; RANDOM_BYTES]);
        let id = WorkspaceId::new(slot, at(0), [7; RANDOM_BYTES]);
        let own = Workspace { id, developer_id: developer_id.clone(), ..workspace(0) };
        commit(&engine.store(), vec![Write::Workspace(own)]).await.unwrap();
        scopes.push(Scope { developer_id, environment: Environment::Live });
    }
    scopes
}

#[tokio::test]
async fn developers_of_all_cells_have_their_own_lists_and_add_up() {
    let engine = Postgres::new().await;
    let (store, scopes) = (engine.store(), scopes(&engine).await);
    assert_eq!(scopes.len(), 8);
    for scope in &scopes {
        let (first, second) = (new_payment_in(scope, 1, at(0), ""), new_payment_in(scope, 2, at(DAY), ""));
        let paid = paid(&second.session, at(DAY));
        commit(&store, vec![payment(first)]).await.unwrap();
        commit(&store, vec![payment(second)]).await.unwrap();
        commit(&store, vec![payment(paid)]).await.unwrap();
    }
    for scope in &scopes {
        let page = store.payments(scope, Some(&Status::Completed), page_of(1, 20)).await.unwrap();
        assert_eq!((page.items.len(), page.total), (1, 1));
    }
    assert_eq!(store.workspaces().await.unwrap().len(), 8);
    let by_status = store.gauges().await.unwrap().payments;
    let count =
        |wanted| by_status.iter().filter(|(_, status, _)| *status == wanted).map(|(.., count)| count).sum::<u64>();
    assert_eq!((count(Status::Completed), count(Status::Pending)), (8, 8));
    assert_eq!(store.claim(Queue::Expiry, &lease(1, DAY), 99).await.unwrap().len(), 8);
    drop(store);
    check(engine).await.end().await;
}

#[tokio::test]
async fn deliveries_of_all_cells_are_redacted() {
    let engine = Postgres::new().await;
    let (store, scopes) = (engine.store(), scopes(&engine).await);
    for scope in &scopes {
        let mut hook = endpoint(1);
        hook.endpoint.id = WebhookId::new(scope.developer_id.slot(), at(0), [1; RANDOM_BYTES]);
        hook.endpoint.developer_id = scope.developer_id.clone();
        let ping = ping(1, at(0), &hook);
        commit(&store, vec![added(hook, 9), delivery(&ping)]).await.unwrap();
        commit(&store, vec![end(&ping)]).await.unwrap();
    }
    let mut redacted = 0;
    loop {
        match store.prune(Prunable::DeliveryBodies, at(DAY), 9).await.unwrap() {
            0 => break,
            handled => redacted += handled,
        }
    }
    assert_eq!(redacted, scopes.len());
    drop(store);
    check(engine).await.end().await;
}

#[tokio::test]
async fn a_create_and_a_move_after_this_servers_own_batch_take_one_trip_and_a_page_two_or_three() {
    let engine = Postgres::new().await;
    let store = engine.store();
    let trips = || engine.store.bytes.trips();
    let create = async |nth: u8| {
        let before = trips();
        let new = new_payment(nth, at(i64::from(nth)));
        let id = new.session.payment.id.as_str().to_owned();
        let keep = NewResponse {
            key: key(&id),
            fingerprint: "v2:1".into(),
            created_at: at(0),
            body: new.json.clone(),
            claim: ClaimEnd::NotClaimed,
        };
        let session = new.session.clone();
        store.commit(Change { idempotency: Some(keep), ..Change::of(payment(new)) }).await.unwrap();
        (session, trips() - before)
    };
    let (_, first) = create(0).await;
    assert_eq!(first, 3, "the fence, the lock with the fetch, the commit");
    let mut sessions = Vec::new();
    for nth in 1..25 {
        let (session, trips) = create(nth).await;
        assert_eq!(trips, 1, "{nth}");
        sessions.push(session);
    }
    let before = trips();
    commit(&store, vec![payment(paid(&sessions[0], at(DAY)))]).await.unwrap();
    assert_eq!(trips() - before, 1);
    let page = async |number| {
        let before = trips();
        assert_eq!(payments(&store, number, 20).await.items.len(), 20);
        trips() - before
    };
    assert_eq!(page(1).await, 2, "the head, the payments");
    for nth in 25..60 {
        create(nth).await;
    }
    assert_eq!(page(2).await, 3, "the head, the chunks, the payments");
    let before = trips();
    store.payment_json(&scope(), &sessions[0].payment.id).await.unwrap().unwrap();
    assert_eq!(trips() - before, 1);

    // Another server, which knows no values yet.
    let other = Postgres::open(engine.target.clone()).await;
    commit(&other.store(), vec![payment(new_payment(99, at(0)))]).await.unwrap();
    let before = other.store.bytes.trips();
    commit(&other.store(), vec![payment(paid(&sessions[1], at(DAY)))]).await.unwrap();
    let of_move = other.store.bytes.trips() - before;
    assert_eq!(of_move, 3, "the lock with the payment, what the payment names, the commit");
    other.end().await;
    drop(store);
    check(engine).await.end().await;
}
