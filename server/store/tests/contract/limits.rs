//! The limits of a workspace.

use std::sync::Arc;

use futures_util::future::join_all;
use payments_core::{Amount, Cause, Currency};
use payments_store::{
    CommitError, Conflict, Store, Write,
    domain::{LimitReached, Limits, Workspace},
};

use crate::samples::*;

async fn set(store: &Arc<Store>, version: u64, limits: Limits) {
    commit(store, vec![Write::Workspace(Workspace { limits, ..workspace(version) })]).await.unwrap();
}

/// Creates a payment of 100 taka at a time. Returns the limit that refuses it.
async fn create(store: &Arc<Store>, nth: u8, millis: i64) -> Option<LimitReached> {
    match commit(store, vec![payment(new_payment(nth, at(millis)))]).await {
        Err(CommitError::Conflict(Conflict::LimitReached(reached))) => Some(reached),
        committed => {
            committed.unwrap();
            None
        }
    }
}

fn of_day(taka: u32, left: u32) -> LimitReached {
    LimitReached::Day { at_most: Amount::from_major(taka), left: Amount::from_major(left), currency: Currency::Bdt }
}

pub(super) async fn simultaneous_payments_never_exceed_the_amount_of_a_day(store: Arc<Store>) {
    assert_eq!(create(&store, 1, 0).await, None, "a payment from before the limit does not count");
    let day_at_most = [(Currency::Bdt, Amount::from_major(550))].into();
    set(&store, 0, Limits { day_at_most, ..Limits::default() }).await;
    let refused = join_all((2..30).map(|nth| create(&store, nth, i64::from(nth)))).await;
    let refused: Vec<_> = refused.into_iter().flatten().collect();
    assert_eq!(refused.len(), 23);
    assert!(refused.iter().all(|it| *it == of_day(550, 50)), "{refused:?}");

    // A payment that fails makes room, and one that is paid late takes it again. The next day has its own amount.
    assert_eq!(create(&store, 40, 2 * DAY).await, None);
    let new = new_payment(40, at(2 * DAY)).session;
    let failed = try_moved(&new, Cause::SessionEnded, at(2 * DAY)).unwrap();
    let ended = failed.session.clone();
    commit(&store, vec![payment(failed)]).await.unwrap();
    for nth in 41..46 {
        assert_eq!(create(&store, nth, 2 * DAY).await, None, "{nth}");
    }
    commit(&store, vec![payment(paid(&ended, at(2 * DAY)))]).await.unwrap();
    assert_eq!(create(&store, 46, 2 * DAY).await, Some(of_day(550, 0)));
    set(&store, 1, Limits::default()).await;
    assert_eq!(create(&store, 46, 2 * DAY).await, None);
}

pub(super) async fn a_payment_above_the_maximum_and_one_too_many_within_a_minute_are_refused(store: Arc<Store>) {
    let payment_at_most = [(Currency::Bdt, Amount::from_major(99)), (Currency::Usd, Amount::from_major(1))];
    set(&store, 0, Limits { payment_at_most: payment_at_most.into(), ..Limits::default() }).await;
    let reached = LimitReached::Payment { at_most: Amount::from_major(99), currency: Currency::Bdt };
    assert_eq!(create(&store, 1, 0).await, Some(reached));
    // More payments than the head of a list holds.
    for at_most in [1, 40] {
        let version = if at_most == 1 { 1 } else { 2 };
        set(&store, version, Limits { payments_a_minute: Some(at_most), ..Limits::default() }).await;
        let begin = i64::from(at_most) * DAY;
        for nth in 0..at_most {
            let time = begin + i64::from(nth);
            assert_eq!(create(&store, u8::try_from(nth).unwrap(), time).await, None, "{nth} of {at_most}");
        }
        let later = |seconds| create(&store, 200, begin + seconds * SECOND);
        assert_eq!(later(1).await, Some(LimitReached::Minute { at_most, seconds: 59 }));
        assert_eq!(later(60).await, None);
    }
}

pub(super) async fn a_workspace_has_no_more_endpoints_than_its_limit_and_that_of_the_server(store: Arc<Store>) {
    set(&store, 0, Limits { endpoints: Some(2), ..Limits::default() }).await;
    let add = async |nth, at_most| outcome(commit(&store, vec![added(endpoint(nth), at_most)]).await);
    assert_eq!(add(1, 1).await, COMMITTED);
    assert_eq!(add(2, 1).await, "the webhook endpoint limit of 1 is reached");
    assert_eq!(add(2, 100).await, COMMITTED);
    assert_eq!(add(3, 100).await, "the webhook endpoint limit of 2 is reached");
    set(&store, 1, Limits::default()).await;
    assert_eq!(add(3, 100).await, COMMITTED);
}
