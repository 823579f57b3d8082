//! On PostgreSQL, a claim that is made at the moment at which another server claims an earlier event of the same payment.

use super::{Engine, Postgres, client_of, database_apart, samples::*, somebody_waits};
use crate::store::{Queue, Work, postgres::Target};

#[tokio::test]
async fn a_claim_on_an_event_is_given_back_if_an_earlier_one_of_the_payment_was_claimed_meanwhile() {
    let url = database_apart().await;
    let engine = Postgres::open(Target::new(&url.clone().into(), None).unwrap().with_schema("shop")).await;
    let store = engine.store();
    let (new, other) = (new_payment(1, at(0)), new_payment(2, at(SECOND)));
    let paid = paid(&new.session, at(2 * SECOND));
    let [first, later, others] = [&new, &paid, &other].map(|write| write.event.as_ref().unwrap().id.clone());
    commit(&store, vec![added(endpoint(1), 9), payment(new)]).await.unwrap();
    commit(&store, vec![payment(paid), payment(other)]).await.unwrap();

    let client = client_of(&url).await;
    // Another server's claim on the first event is under way, and it holds the row of an old claim on the later one. Whoever
    // claims the later event waits for that row and cannot see the other claim yet.
    let claims = format!(
        "INSERT INTO shop.lease (queue, work, epoch, server, until) VALUES ('fan-out', '{later}', 1, 'x', 0); BEGIN; \
         INSERT INTO shop.lease (queue, work, epoch, server, until) VALUES ('fan-out', '{first}', 2, 'x', {until}); \
         SELECT FROM shop.lease WHERE work = '{later}' FOR UPDATE",
        until = lease(2, 0).until.as_millis()
    );
    client.batch_execute(&claims).await.unwrap();
    // The first event itself cannot be claimed: its row is there and not to be seen.
    let claiming = tokio::spawn({
        let store = engine.store();
        async move { store.claim(Queue::FanOut, &lease(1, 0), 9).await.unwrap() }
    });
    let watching = client_of(&url).await;
    somebody_waits(&watching).await;
    client.batch_execute("COMMIT").await.unwrap();
    let claimed: Vec<_> = claiming.await.unwrap().into_iter().map(|claim| claim.work).collect();
    assert_eq!(claimed, [Work::FanOut(others)]);
    let held = watching.query("SELECT FROM shop.lease WHERE work = $1", &[&later.as_str()]).await.unwrap();
    assert!(held.is_empty(), "the claim on the later event is given back");
    drop(store);
    engine.end().await;
}
