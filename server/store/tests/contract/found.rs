//! Parts of the list of payments, and lookup values.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use payments_core::{Environment, PaymentId, Status};
use payments_store::{
    PaymentSource, PaymentsFrom, Store,
    domain::{Lookup, Scope},
};

use crate::{
    Engine, Postgres,
    samples::{COMMITTED, DAY, SECOND, at, commit, new_payment, new_payment_with, outcome, paid, payment, scope},
    schema,
};

const USED: &str = "another payment has this value, which must be unique";

async fn part(store: &Arc<Store>, source: &PaymentSource, from: &PaymentsFrom, at_most: usize) -> Vec<PaymentId> {
    let found = store.payments_from(&scope(), source, from, at_most).await.unwrap();
    assert!(found.iter().all(|(id, json)| json.0.contains(&format!(r#""id":"{id}""#))));
    found.into_iter().map(|(id, _)| id).collect()
}

/// All parts of a list, each after the last payment of the one before.
async fn all_parts(store: &Arc<Store>, source: &PaymentSource, at_most: usize) -> Vec<PaymentId> {
    let mut found: Vec<PaymentId> = Vec::new();
    loop {
        let from = PaymentsFrom { after: found.last().cloned(), ..PaymentsFrom::default() };
        let part = part(store, source, &from, at_most).await;
        let is_last = part.len() < at_most;
        found.extend(part);
        if is_last {
            return found;
        }
    }
}

fn found_by(lookup: Option<Lookup>) -> PaymentSource {
    PaymentSource::Lookup(lookup.unwrap())
}

pub(super) async fn a_reader_of_the_list_of_payments_misses_none_and_reads_none_twice(store: Arc<Store>) {
    let (mut expected, mut completed) = (Vec::new(), Vec::new());
    for nth in 0..80 {
        let write = new_payment_with(nth, at(i64::from(nth) * SECOND), r#""customerPhone": "01712345678","#);
        let session = write.session.clone();
        expected.insert(0, session.payment.id.clone());
        commit(&store, vec![payment(write)]).await.unwrap();
        if nth % 3 == 0 {
            completed.insert(0, session.payment.id.clone());
            commit(&store, vec![payment(paid(&session, at(DAY)))]).await.unwrap();
        }
    }
    let status = PaymentSource::Status(Status::Completed);
    let phone = found_by(Lookup::phone("01712345678"));
    for at_most in [1, 7, 80, 81] {
        assert_eq!(all_parts(&store, &PaymentSource::All, at_most).await, expected);
        assert_eq!(all_parts(&store, &status, at_most).await, completed);
        assert_eq!(all_parts(&store, &phone, at_most).await, expected);
    }
    let arriving = async {
        for nth in 80..120 {
            commit(&store, vec![payment(new_payment(nth, at(i64::from(nth) * SECOND)))]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let ((), found) = tokio::join!(arriving, all_parts(&store, &PaymentSource::All, 2));
    let distinct: HashSet<_> = found.iter().collect();
    assert_eq!(distinct.len(), found.len());
    assert!(expected.iter().all(|id| distinct.contains(id)));
    assert!(found.ends_with(&expected));
    let other = Scope { environment: Environment::Test, ..scope() };
    for from in [PaymentsFrom::default(), PaymentsFrom { after: Some(expected[0].clone()), ..PaymentsFrom::default() }]
    {
        assert!(store.payments_from(&other, &PaymentSource::All, &from, 9).await.unwrap().is_empty());
    }
}

pub(super) async fn a_part_between_two_times_has_every_payment_created_between_them(store: Arc<Store>) {
    let mut made = Vec::new();
    for nth in 0..150_u8 {
        let field = if nth % 2 == 0 { r#""customerEmail": "a@shop.example","# } else { "" };
        let write = new_payment_with(nth, at(i64::from(nth) * DAY), field);
        made.push(write.session.payment.id.clone());
        commit(&store, vec![payment(write)]).await.unwrap();
    }
    let email = found_by(Lookup::email("a@shop.example"));
    // No time is given if it lies before or after all payments.
    for (first, end) in [(0, 150), (3, 4), (40, 41), (31, 97), (149, 150), (150, 150), (9, 9), (140, 150), (0, 10)] {
        let (created_after, created_before) =
            ((first > 0).then(|| at(first * DAY)), (end < 150).then(|| at(end * DAY)));
        let from = PaymentsFrom { created_after, created_before, after: None };
        let found = part(&store, &PaymentSource::All, &from, 200).await;
        let by_email = part(&store, &email, &from, 200).await;
        let within = usize::try_from(first).unwrap()..usize::try_from(end).unwrap();
        let expected: Vec<_> = made[within].iter().rev().collect();
        assert!(expected.iter().all(|id| found.contains(id)), "{first}..{end}");
        assert!(found.len() < expected.len() + 80, "{first}..{end}: {} are read", found.len());
        let even = expected.iter().filter(|id| made.iter().position(|other| other == **id).unwrap() % 2 == 0);
        assert!(even.into_iter().all(|id| by_email.contains(id)), "{first}..{end}");
    }
}

pub(super) async fn a_payment_is_found_by_the_normal_form_of_each_of_its_values_in_its_own_scope(store: Arc<Store>) {
    let fields = [
        r#""merchantTransactionId": "A-17", "customerEmail": " Asha@Shop.example", "customerPhone": "+880 1712-345678","#,
        r#""merchantTransactionId": "a-17", "customer": {"email": "asha@shop.EXAMPLE", "phone": "০১৭১২৩৪৫৬৭৮"},"#,
        r#""customerEmail": "", "customerPhone": "+1 (212) 555-0100","#,
        r#""merchantTransactionId": "a\u0000", "customerEmail": "b\u0000", "customerPhone": "\u0000","#,
        "",
    ];
    let mut ids = Vec::new();
    for (nth, fields) in (0_u8..).zip(fields) {
        let write = new_payment_with(nth, at(i64::from(nth) * SECOND), fields);
        ids.push(write.session.payment.id.clone());
        commit(&store, vec![payment(write)]).await.unwrap();
    }
    let nothing = Lookup::reference(ids[4].as_str());
    for (lookup, expected) in [
        (Lookup::reference("A-17"), vec![&ids[0]]),
        (Lookup::reference("a-17"), vec![&ids[1]]),
        (Lookup::email("ASHA@shop.example"), vec![&ids[1], &ids[0]]),
        (Lookup::phone("8801712345678"), vec![&ids[1], &ids[0]]),
        (Lookup::phone("+12125550100"), vec![&ids[2]]),
        (Lookup::reference("01712345678"), vec![]),
        (nothing, vec![]),
    ] {
        let source = found_by(lookup);
        let found = part(&store, &source, &PaymentsFrom::default(), 9).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{source:?}");
        let other = Scope { environment: Environment::Test, ..scope() };
        assert!(store.payments_from(&other, &source, &PaymentsFrom::default(), 9).await.unwrap().is_empty());
    }
}

pub(super) async fn one_of_several_new_payments_that_demand_a_unique_value_is_made(store: Arc<Store>) {
    let unique = |nth: u8, reference: &str| {
        let fields = format!(r#""merchantTransactionId": "{reference}","#);
        let mut write = new_payment_with(nth, at(i64::from(nth)), &fields);
        write.unique = Lookup::reference(reference);
        write
    };
    let mut racing = Vec::new();
    for nth in 0..20 {
        let (store, write) = (Arc::clone(&store), unique(nth, "A-17"));
        racing.push(tokio::spawn(async move { outcome(commit(&store, vec![payment(write)]).await) }));
    }
    let mut outcomes: Vec<_> = join_all(racing).await.into_iter().map(Result::unwrap).collect();
    outcomes.sort();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == COMMITTED).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == USED).count(), 19, "{outcomes:?}");
    // A payment that does not demand a unique value may repeat one. A later payment that demands it is refused.
    for expected in [COMMITTED, USED] {
        let mut write = unique(if expected == USED { 31 } else { 30 }, "B-1");
        write.unique = write.unique.filter(|_| expected == USED);
        assert_eq!(outcome(commit(&store, vec![payment(write)]).await), expected);
    }
    let mut repeated = unique(32, "A-17");
    repeated.unique = None;
    assert_eq!(outcome(commit(&store, vec![payment(repeated)]).await), COMMITTED);
    // This holds within one change too.
    let both = vec![payment(unique(33, "C-1")), payment(unique(34, "C-1"))];
    assert_eq!(outcome(commit(&store, both).await), USED);
    assert_eq!(outcome(commit(&store, vec![payment(unique(35, "C-1"))]).await), COMMITTED);
    assert_eq!(part(&store, &found_by(Lookup::reference("A-17")), &PaymentsFrom::default(), 9).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_several_servers_that_create_payments_of_an_order_at_the_same_time_succeeds() {
    let database = schema("unique_of_servers").await.0;
    let (one, other) = (Postgres::open(database.clone()).await, Postgres::open(database).await);
    for order in 0..30_u8 {
        let racing = [(1, &one), (2, &other), (3, &one), (4, &other)].map(|(nth, engine)| {
            let reference = format!("A-{order}");
            let fields = format!(r#""merchantTransactionId": "{reference}","#);
            let mut write = new_payment_with(nth, at(i64::from(order) * SECOND), &fields);
            write.unique = Lookup::reference(&reference);
            let store = engine.store();
            tokio::spawn(async move { outcome(commit(&store, vec![payment(write)]).await) })
        });
        let mut outcomes: Vec<_> = join_all(racing).await.into_iter().map(Result::unwrap).collect();
        outcomes.sort();
        assert_eq!(outcomes, [USED, USED, USED, COMMITTED]);
    }
    other.end().await;
    crate::check(one).await.end().await;
}
