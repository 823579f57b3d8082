//! Rows of gateways' statements, the payments that wait for theirs, and what the check says of a row that counts twice.

use std::sync::Arc;

use payments_core::{Currency, RANDOM_BYTES, Slot, TransactionId};
use payments_store::{
    BookingWrite, PaymentWrite, Store, Write,
    domain::{GatewayName, RowKind, Session, SettledRow, StatementRow},
};

use crate::{
    Embedded, Engine, Postgres,
    samples::{STALE, at, cause_of, changed, commit, new_payment, outcome, paid, payment, try_moved, workspace},
};

const BKASH: GatewayName = GatewayName::of("bkash");

/// A payment of 100.00 that was paid at the gateway by the transaction `TX`, with its changes before.
pub(super) fn paid_at_gateway(nth: u8) -> Vec<PaymentWrite> {
    let created = new_payment(nth, at(i64::from(nth)));
    let sent = try_moved(&created.session, cause_of(4, nth, 0), at(100)).unwrap();
    let named = changed(&sent.session, |session| {
        session.attempt.iter_mut().for_each(|attempt| attempt.transaction = Some("TX".into()));
    });
    let paid = paid(&named.session, at(200 + i64::from(nth)));
    vec![created, sent, named, paid]
}

pub(super) fn row(id: &str, net: i64) -> SettledRow {
    let (currency, date) = (Currency::Bdt, "2026-03-01".parse().unwrap());
    let (id, references) = (id.to_owned(), vec!["TX".to_owned()]);
    let row = StatementRow { id, kind: RowKind::Payment, references, gross: net, fee: 0, net, currency, date };
    SettledRow::new(BKASH, row, at(1_000))
}

/// The next change of a payment, which has this row.
pub(super) fn settled(before: &Session, row: &SettledRow) -> PaymentWrite {
    let mut booking = None;
    let write = changed(before, |session| booking = session.settle(row));
    let random = [u8::try_from(write.session.version).unwrap() + 100; RANDOM_BYTES];
    let without_event = booking.map(|booking| BookingWrite {
        id: TransactionId::new(Slot::FIRST, at(1_000), random),
        created_at: at(1_000),
        booking,
    });
    PaymentWrite { without_event: without_event.into_iter().collect(), ..write }
}

fn record(row: &SettledRow) -> Write {
    Write::SettledRow(Box::new(row.clone()))
}

async fn rows(store: &Store, is_suspended: bool) -> Vec<String> {
    let (mut found, mut after) = (Vec::<SettledRow>::new(), None);
    loop {
        let part =
            store.settled_rows_after(after.as_ref().map(|id: &String| (BKASH, id.as_str())), is_suspended, 1).await;
        let Some(row) = part.unwrap().pop() else { return found.into_iter().map(|it| it.row.id).collect() };
        after = Some(row.row.id.clone());
        found.push(row);
    }
}

async fn waiting(store: &Store, before: i64) -> Vec<i64> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let from = after.as_ref().map(|(time, id)| (*time, id));
        let Some((time, session)) = store.unsettled(at(before), from, 1).await.unwrap().pop() else { return found };
        found.push(time.as_millis() - at(0).as_millis());
        after = Some((time, session.payment.id));
    }
}

pub(super) async fn a_settled_row_counts_once_and_its_payment_waits_no_longer(store: Arc<Store>) {
    let (first, second) = (paid_at_gateway(1), paid_at_gateway(2));
    let sessions = [&first, &second].map(|writes| writes[3].session.clone());
    let ids = sessions.clone().map(|it| it.payment.id);
    commit(&store, first.into_iter().chain(second).map(payment).collect()).await.unwrap();
    assert_eq!(store.payments_at_gateway(BKASH, &["other", "TX"]).await.unwrap(), [vec![], ids.to_vec()]);
    assert_eq!(store.payments_at_gateway(GatewayName::of("stripe"), &["TX"]).await.unwrap(), [vec![]]);
    assert_eq!((waiting(&store, 202).await, waiting(&store, 203).await), (vec![201], vec![201, 202]));

    let [of_first, foreign] = [row("a", 9_900).of(&sessions[0]), row("b", 500)];
    commit(&store, vec![record(&of_first), record(&foreign)]).await.unwrap();
    assert_eq!(outcome(commit(&store, vec![record(&of_first)]).await), STALE);
    let write = settled(&sessions[0], &of_first);
    let after = write.session.clone();
    commit(&store, vec![payment(write)]).await.unwrap();
    assert!(!after.lacks_row("a") && after.lacks_row("b"));
    assert_eq!(waiting(&store, 1_000).await, [202]);
    assert_eq!(
        (rows(&store, false).await, rows(&store, true).await),
        (vec!["a".into(), "b".into()], vec!["b".to_owned()])
    );
    let known = store.settled_rows(BKASH, ["b", "c", "a"].into_iter()).await.unwrap();
    assert_eq!(known, [Some(foreign.clone()), None, Some(of_first)]);
    assert_eq!(store.clearing(BKASH, Currency::Bdt).await.unwrap(), -20_000 + 9_900);

    // A person finds the payment of the other row.
    let resolved = SettledRow { version: 1, resolved_at: Some(at(2_000)), ..foreign }.of(&sessions[1]);
    commit(&store, vec![record(&resolved), payment(settled(&sessions[1], &resolved))]).await.unwrap();
    assert_eq!((rows(&store, true).await, waiting(&store, 1_000).await), (vec![], vec![]));
    assert_eq!(store.clearing(BKASH, Currency::Bdt).await.unwrap(), -20_000 + 9_900 + 500);
    assert_eq!(store.sessions(&ids).await.unwrap().len(), 2);
}

async fn a_row_that_counts_twice_is_found<E: Engine>() {
    let engine = E::new().await;
    commit(&engine.store(), vec![Write::Workspace(workspace(0))]).await.unwrap();
    let (first, second) = (paid_at_gateway(1), paid_at_gateway(2));
    let sessions = [&first, &second].map(|writes| writes[3].session.clone());
    commit(&engine.store(), first.into_iter().chain(second).map(payment).collect()).await.unwrap();
    let row = row("a", 9_900).of(&sessions[0]);
    let writes = sessions.iter().map(|session| {
        let mut write = settled(session, &row);
        let nth = session.payment.paid_at.map_or(0, |at| at.as_millis() % 100);
        write.without_event[0].id =
            TransactionId::new(Slot::FIRST, at(1_000), [u8::try_from(nth).unwrap(); RANDOM_BYTES]);
        payment(write)
    });
    commit(&engine.store(), writes.chain([record(&row)]).collect()).await.unwrap();
    let engine = engine.restarted().await;
    let found: Vec<_> = engine.findings().await.into_iter().map(|it| it.what).collect();
    assert_eq!(found, ["has the settled row a, whose record is missing or says otherwise"]);
    engine.end().await;
}

#[tokio::test]
async fn the_check_of_a_directory_finds_a_row_that_counts_twice() {
    a_row_that_counts_twice_is_found::<Embedded>().await;
}

#[tokio::test]
async fn the_check_of_a_database_finds_a_row_that_counts_twice() {
    a_row_that_counts_twice_is_found::<Postgres>().await;
}
