//! Payments counted in blocks: a page is the same whether it is found by blocks or not, whatever else goes on.

use std::{collections::VecDeque, sync::Arc};

use fastrand::Rng;
use payments_core::{Cause, PageRequest, PaymentId, Status};
use tokio::time::{Duration, timeout};
use tokio_postgres::Client;

use super::{Engine, Postgres, client_of, cluster_url, samples::*};
use crate::store::{
    Store,
    postgres::{PostgresStore, Target},
};

/// How many payments a block has in these tests.
const BLOCK: i64 = 7;

async fn ids(store: &PostgresStore, status: Option<&Status>, page: PageRequest, is_far: bool) -> (Vec<PaymentId>, u64) {
    let page = parsed(store.payment_page_by(&scope(), status, page, is_far).await.unwrap());
    (page.items.into_iter().map(|payment| payment.id).collect(), page.total)
}

async fn expect_equal_pages(store: &PostgresStore) {
    for status in [None, Some(Status::Pending), Some(Status::Completed), Some(Status::Expired), Some(Status::Refunded)]
    {
        for (limit, page) in
            [(1, 1), (1, 60), (3, 1), (3, 9), (10, 1), (10, 2), (10, 5), (10, 13), (10, 1_000), (50, 3)]
        {
            let at = page_of(page, limit);
            let found = ids(store, status.as_ref(), at, true).await;
            assert_eq!(found, ids(store, status.as_ref(), at, false).await, "page {page} of {limit}, {status:?}");
        }
    }
}

pub(super) async fn target(schema: &str) -> (Target, Client) {
    let url = cluster_url().await;
    let client = client_of(&url).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    (Target::new(&url.into(), None).unwrap().with_schema(schema), client)
}

/// Creates payments, some with a time long ago, and moves them at random.
async fn work(store: Arc<dyn Store>, seed: u8) {
    let mut rng = Rng::with_seed(seed.into());
    let mut mine = VecDeque::new();
    for nth in 0..120_i64 {
        let age = if rng.u8(..4) == 0 { rng.i64(0..=nth) } else { 0 };
        let new = new_payment(seed, at((nth - age) * 2 * SECOND + nth * 7 + i64::from(seed)));
        mine.push_back(new.session.clone());
        let mut writes = vec![payment(new)];
        for _ in 0..rng.usize(..3) {
            let which = rng.usize(..mine.len());
            let cause = [Cause::GatewayConfirmed, Cause::SessionEnded][rng.usize(..2)].clone();
            // One change of a payment in a commit.
            if let Some(moved) = try_moved(&mine[which], cause, at(DAY + nth)).filter(|_| which + 1 < mine.len()) {
                mine.remove(which);
                writes.push(payment(moved));
            }
        }
        commit(&store, writes).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_found_by_blocks_are_those_found_without_while_payments_arrive_and_move() {
    let (target, client) = target("blocks").await;
    let (one, other) = (Postgres::open(target.clone()).await, Postgres::open(target).await);
    let working = async { tokio::join!(work(one.store(), 1), work(other.store(), 2), work(one.store(), 3)) };
    let counting = async |store: &PostgresStore| {
        loop {
            store.count_blocks_of(BLOCK).await.unwrap();
        }
    };
    tokio::select! {
        _ = working => {}
        () = counting(&one.store) => {}
        () = counting(&other.store) => {}
    }
    expect_equal_pages(&one.store).await;
    one.store.count_blocks_of(BLOCK).await.unwrap();
    expect_equal_pages(&one.store).await;
    let counted = "SELECT count(*), sum(s.payments)::bigint FROM payment_block b JOIN payment_block_sum s \
                   USING (developer, environment, number) WHERE is_counted";
    let row = client.query_one(counted, &[]).await.unwrap();
    let (sums, payments): (i64, i64) = (row.get(0), row.get(1));
    assert!(sums > 40 && payments > 300, "{payments} of 360 payments are counted, in {sums} sums");
    super::check(one).await.end().await;
    other.end().await;
}

#[tokio::test]
async fn a_block_is_counted_when_all_who_may_not_have_seen_it_have_ended() {
    let (target, mut client) = target("unseen").await;
    let engine = Postgres::open(target).await;
    for nth in 0..40 {
        commit(&engine.store(), vec![payment(new_payment(nth, at(i64::from(nth) * SECOND)))]).await.unwrap();
    }
    // It changes a payment before the block is there, and commits after it is.
    let transaction = client.transaction().await.unwrap();
    let fail = "UPDATE payment SET status = 'failed' WHERE id = (SELECT min(id) FROM payment)";
    transaction.execute(fail, &[]).await.unwrap();
    let store = Arc::clone(&engine.store);
    let mut counting = tokio::spawn(async move { store.count_blocks_of(BLOCK).await });
    assert!(timeout(Duration::from_secs(1), &mut counting).await.is_err(), "the count does not wait");
    transaction.commit().await.unwrap();
    counting.await.unwrap().unwrap();
    expect_equal_sums(&client).await;
    // One that sees the block adds to its sums, before the count and after it.
    client.execute("UPDATE payment SET status = 'failed' WHERE id < (SELECT max(id) FROM payment)", &[]).await.unwrap();
    expect_equal_sums(&client).await;
    engine.end().await;
}

async fn expect_equal_sums(client: &Client) {
    let sql = "SELECT b.number, s.status, sum(s.payments)::bigint, (SELECT count(*) FROM payment p WHERE p.status = s.status \
               AND p.id <= b.up_to AND p.id > coalesce((SELECT max(l.up_to) FROM payment_block l WHERE l.number < b.number), '')) \
               FROM payment_block b JOIN payment_block_sum s USING (number) WHERE b.is_counted \
               GROUP BY 1, 2, b.up_to ORDER BY 1, 2";
    let rows = client.query(sql, &[]).await.unwrap();
    assert!(rows.len() >= 4, "{} sums", rows.len());
    for row in rows {
        assert_eq!(
            row.get::<_, i64>(2),
            row.get::<_, i64>(3),
            "block {} {}",
            row.get::<_, i64>(0),
            row.get::<_, &str>(1)
        );
    }
}
