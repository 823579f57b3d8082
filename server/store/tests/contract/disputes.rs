//! Disputes: the list of the open ones, their bookings, and what the check says of one that is booked twice.

use std::sync::Arc;

use payments_core::{BookingKind, DisputeStatus, RANDOM_BYTES, Slot, TransactionId};
use payments_store::{BookingWrite, PaymentWrite, Store, TransactionsFrom};

use crate::{
    Embedded, Engine, Postgres,
    samples::{at, commit, dispute_id, new_payment, paid, payment, reported, scope, workspace},
};

/// The last states of a payment of 100.00 that is paid and then disputed: 40.00 are withdrawn, and the dispute is lost.
fn history() -> [PaymentWrite; 5] {
    let created = new_payment(1, at(0));
    let paid = paid(&created.session, at(1));
    let opened = reported(&paid.session, DisputeStatus::NeedsResponse, 0);
    let withdrawn = reported(&opened.session, DisputeStatus::NeedsResponse, 4_000);
    let lost = reported(&withdrawn.session, DisputeStatus::Lost, 4_000);
    [created, paid, opened, withdrawn, lost]
}

pub(super) async fn a_disputed_payment_is_listed_until_the_dispute_is_decided_and_is_found_by_it(store: Arc<Store>) {
    let id = dispute_id();
    for (write, (listed, is_found)) in
        history().into_iter().zip([(0, false), (0, false), (1, true), (1, true), (0, true)])
    {
        let session = write.session.clone();
        commit(&store, vec![payment(write)]).await.unwrap();
        assert_eq!(store.open_disputes().await.unwrap().len(), listed);
        let found = store.session_of_dispute(&id).await.unwrap();
        assert_eq!(found.map(|it| it.payment), is_found.then_some(session.payment));
    }
    let entries = store.transactions(&scope(), &TransactionsFrom::Newest, 0..u64::MAX, 9).await.unwrap().unwrap();
    let first = entries.first().unwrap();
    assert_eq!((entries.len(), first.money.kind, first.balance_minor), (2, BookingKind::DisputeWithdrawn, 5_750));
}

async fn a_withdrawal_that_is_booked_twice_is_found<E: Engine>() {
    let engine = E::new().await;
    commit(&engine.store(), vec![payments_store::Write::Workspace(workspace(0))]).await.unwrap();
    for mut write in history() {
        if let [BookingWrite { created_at, booking, .. }] = write.without_event[..] {
            let id = TransactionId::new(Slot::FIRST, created_at, [9; RANDOM_BYTES]);
            write.without_event.push(BookingWrite { id, created_at, booking });
        }
        commit(&engine.store(), vec![payment(write)]).await.unwrap();
    }
    let engine = engine.restarted().await;
    let found: Vec<_> = engine.findings().await.into_iter().map(|it| it.what).collect();
    assert_eq!(found, ["is paid, and its bookings are not those of that"]);
    engine.end().await;
}

#[tokio::test]
async fn the_check_of_a_directory_finds_a_withdrawal_that_is_booked_twice() {
    a_withdrawal_that_is_booked_twice_is_found::<Embedded>().await;
}

#[tokio::test]
async fn the_check_of_a_database_finds_a_withdrawal_that_is_booked_twice() {
    a_withdrawal_that_is_booked_twice_is_found::<Postgres>().await;
}
