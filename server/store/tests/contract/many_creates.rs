//! Creates payments from many tasks at the same time, on PostgreSQL. A release build measures the store without HTTP, with
//! `STORE_CREATES=500` for each task and a database's URL in `STORE_AT`.

use std::{env, time::Instant};

use futures_util::future::{join_all, try_join_all};
use payments_core::RawJson;
use payments_store::{Change, ClaimEnd, NewResponse, postgres::Target};
use test_support::cluster::shared_url;

use crate::{Engine, Postgres, check, samples::*};

const TASKS: u8 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn each_create_from_many_tasks_is_stored_once() {
    many_creates(Postgres::open(target("many_creates").await).await).await;
}

async fn target(schema: &str) -> Target {
    let url = match env::var("STORE_AT") {
        Ok(url) => url,
        Err(_) => shared_url().await,
    };
    Target::new(&url.into(), None).unwrap().with_schema(&format!("{schema}_{}", std::process::id()))
}

async fn many_creates(engine: impl Engine) {
    let each: i64 = env::var("STORE_CREATES").map_or(5, |text| text.parse().unwrap());
    let begun = Instant::now();
    let tasks = (0..TASKS).map(|task| {
        let store = engine.store();
        tokio::spawn(async move {
            for number in 0..each {
                let create = new_payment(task, at(number));
                let id = create.session.payment.id.as_str().to_owned();
                let body = RawJson::of(&create.session.payment).unwrap();
                let keep = NewResponse {
                    key: key(&id),
                    fingerprint: "v2:1".into(),
                    created_at: at(number),
                    body,
                    claim: ClaimEnd::NotClaimed,
                };
                let change = Change { idempotency: Some(keep), ..Change::of(payment(create)) };
                // Commit the first change twice, as if a shop that got no answer sent its request again.
                let again = (number == 0).then(|| store.commit(change.clone()));
                let commits = again.into_iter().chain([store.commit(change)]);
                let committed = join_all(commits).await.into_iter().filter(Result::is_ok).count();
                assert_eq!(committed, 1, "{id}");
            }
        })
    });
    try_join_all(tasks).await.unwrap();
    let everything = u64::from(TASKS) * each.unsigned_abs();
    eprintln!("{:.0} creates a second", everything as f64 / begun.elapsed().as_secs_f64());
    assert_eq!(payments(&engine.store(), 1, 1).await.total, everything);
    check(engine).await.end().await;
}
