//! Lists, pages and cursors.

use std::{collections::HashSet, sync::Arc};

use payments_core::{Amount, Cause, Environment, NewRefund, PaymentId, RANDOM_BYTES, RefundId, Slot, Status};
use payments_store::{
    OutboxHead, PaymentSource, PaymentsFrom, Queue, Store, Write,
    domain::{Scope, Session},
};

use crate::samples::*;

async fn ids_from_all_pages(store: &Arc<Store>, limit: u32) -> Vec<PaymentId> {
    let (mut ids, mut page) = (Vec::new(), 1);
    loop {
        let found = payments(store, page, limit).await;
        if found.items.is_empty() {
            return ids;
        }
        assert!(found.items.len() == limit as usize || ids.len() as u64 <= found.total, "only the last page is short");
        ids.extend(found.items);
        page += 1;
        tokio::task::yield_now().await;
    }
}

async fn create(store: &Arc<Store>, nth: u8, millis: i64) -> PaymentId {
    let new = new_payment(nth, at(millis));
    let id = new.session.payment.id.clone();
    commit(store, vec![payment(new)]).await.unwrap();
    id
}

pub(super) async fn payments_are_listed_newest_first_and_an_order_once_seen_never_changes(store: Arc<Store>) {
    let mut made = Vec::new();
    for nth in 1..=5 {
        made.insert(0, create(&store, nth, i64::from(nth) * SECOND).await);
    }
    assert_eq!(ids_from_all_pages(&store, 2).await, made);
    // Payments of one second, not in the order of their times.
    let mut seen = made;
    for (nth, millis) in [(6, 6_500), (7, 6_100), (8, 6_900), (9, 6_100)] {
        create(&store, nth, millis).await;
        let mut now = ids_from_all_pages(&store, 3).await;
        let all = now.clone();
        now.retain(|id| seen.contains(id));
        assert_eq!(now, seen);
        seen = all;
    }
    assert_eq!(seen.len(), 9);
    let page = payments(&store, 3, 4).await;
    assert_eq!((page.total, page.page, page.limit, page.items), (9, 3, 4, seen[8..].to_vec()));
}

pub(super) async fn a_reader_of_pages_misses_no_payment_that_was_there_at_the_start(store: Arc<Store>) {
    let mut first = HashSet::new();
    for nth in 0..30 {
        first.insert(create(&store, nth, nth.into()).await);
    }
    let arriving = async {
        for nth in 30..100 {
            create(&store, nth, nth.into()).await;
        }
    };
    let paging = async {
        for limit in [1, 3, 7, 20] {
            let found: HashSet<_> = ids_from_all_pages(&store, limit).await.into_iter().collect();
            assert!(found.is_superset(&first));
        }
    };
    let counting = async {
        for _ in 0..50 {
            let page = payments(&store, 1, 100).await;
            assert_eq!(page.items.len() as u64, page.total, "a page is of what its total counts");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(arriving, paging, counting);
}

pub(super) async fn a_payment_is_in_the_list_of_its_status_and_in_no_other(store: Arc<Store>) {
    let of = async |status| {
        let page = payment_page(&store, Some(&status), page_of(1, 9)).await;
        assert_eq!(page.total, page.items.len() as u64);
        assert!(page.items.iter().all(|payment| payment.status == status));
        page.items.into_iter().map(|payment| payment.id).collect::<Vec<_>>()
    };
    let mut ids = Vec::new();
    for nth in 1..=4 {
        ids.push(create(&store, nth, i64::from(nth) * SECOND).await);
    }
    assert_eq!(of(Status::Pending).await, [&ids[3], &ids[2], &ids[1], &ids[0]].map(Clone::clone));
    for nth in [3, 1] {
        let before = store.session(&ids[nth]).await.unwrap().unwrap();
        commit(&store, vec![payment(paid(&before, at(9 * SECOND)))]).await.unwrap();
    }
    assert_eq!(of(Status::Pending).await, [&ids[2], &ids[0]].map(Clone::clone));
    assert_eq!(of(Status::Completed).await, [&ids[3], &ids[1]].map(Clone::clone), "in the order of all payments");
    assert_eq!(of(Status::Failed).await, []);
    let second = payment_page(&store, Some(&Status::Completed), page_of(2, 1)).await;
    assert_eq!((second.total, &second.items[0].id), (2, &ids[1]));
}

pub(super) async fn a_payment_is_served_as_its_last_change_left_it_and_only_in_its_own_scope(store: Arc<Store>) {
    let first = new_payment(1, at(0));
    let (id, scope) = (first.session.payment.id.clone(), scope());
    let others = [
        Scope { developer_id: "dev_2".parse().unwrap(), ..scope.clone() },
        Scope { environment: Environment::Test, ..scope.clone() },
    ];
    assert!(store.payment_json(&scope, &id).await.unwrap().is_none());
    let reviewed = reviewed(&first.session, true);
    let paid = paid(&reviewed.session, at(1));
    for write in [first, reviewed, paid] {
        let expected = serde_json::to_string(&write.session.payment).unwrap();
        commit(&store, vec![payment(write)]).await.unwrap();
        assert_eq!(store.payment_json(&scope, &id).await.unwrap().unwrap().0, expected);
        let page = store.payments(&scope, None, page_of(1, 9)).await.unwrap();
        assert_eq!(page.items.into_iter().map(|json| json.0).collect::<Vec<_>>(), [expected]);
        for other in &others {
            assert!(store.payment_json(other, &id).await.unwrap().is_none());
            assert_eq!(store.payments(other, None, page_of(1, 9)).await.unwrap().items.len(), 0);
        }
    }
}

pub(super) async fn payments_are_listed_for_manual_review_until_a_person_has_decided(store: Arc<Store>) {
    let waiting = async || {
        let (settlements, reviews) = (store.manual_settlements().await.unwrap(), store.manual_reviews().await.unwrap());
        (settlements.len(), reviews.len())
    };
    let first = new_payment(1, at(0));
    let review = reviewed(&first.session, true);
    let resolved = reviewed(&review.session, false);
    let paid = paid(&resolved.session, at(1));
    let refund_id = |nth: u8| RefundId::new(Slot::FIRST, at(2), [nth; RANDOM_BYTES]);
    let part = Cause::PartRefunded { refund: NewRefund::by_hand(refund_id(1)), amount: Amount::from_minor(1) };
    let part = try_moved(&paid.session, part, at(2)).unwrap();
    let rest = Cause::Refunded(NewRefund::by_hand(refund_id(2)));
    let refunded = try_moved(&part.session, rest, at(2)).unwrap();
    let settled = |before: &Session, nth: u8| {
        let decision = payments_core::settle_refund(&before.payment, &refund_id(nth), at(3)).unwrap();
        without_event(before, decision)
    };
    let one_left = settled(&refunded.session, 1);
    let none_left = settled(&one_left.session, 2);
    let steps = [
        (first, (0, 0)),
        (review, (0, 1)),
        (resolved, (0, 0)),
        (paid, (0, 0)),
        (part, (1, 0)),
        (refunded, (1, 0)),
        (one_left, (1, 0)),
        (none_left, (0, 0)),
    ];
    for (write, expected) in steps {
        commit(&store, vec![payment(write)]).await.unwrap();
        assert_eq!(waiting().await, expected);
    }
}

pub(super) async fn a_cursor_of_endpoints_finds_all_later_ids_whenever_they_were_added(store: Arc<Store>) {
    let next = async |after: Option<u8>| {
        let after = after.map(|nth| endpoint(nth).endpoint.id);
        let found = store.endpoints(&scope(), after.as_ref(), 2).await.unwrap();
        found.into_iter().map(|endpoint| endpoint.endpoint.id).collect::<Vec<_>>()
    };
    let ids = |nths: &[u8]| nths.iter().map(|nth| endpoint(*nth).endpoint.id).collect::<Vec<_>>();
    for nth in [7, 1, 5, 3] {
        commit(&store, vec![added(endpoint(nth), 9)]).await.unwrap();
    }
    assert_eq!(next(None).await, ids(&[1, 3]));
    commit(&store, vec![added(endpoint(4), 9), Write::EndpointRemoved(Box::new(endpoint(3)))]).await.unwrap();
    assert_eq!(next(Some(3)).await, ids(&[4, 5]), "the endpoint of the cursor may be gone");
    assert_eq!(next(Some(5)).await, ids(&[7]));
    assert_eq!(next(Some(7)).await, []);
}

pub(super) async fn an_outbox_begins_with_the_oldest_delivery_however_late_it_was_committed(store: Arc<Store>) {
    let to = endpoint(1);
    let head = async |at_most| store.outbox(&to.endpoint.id, at_most).await.unwrap();
    let ids = |nths: &[u8]| nths.iter().map(|nth| ping(*nth, at(0), &to).delivery.id).collect::<Vec<_>>();
    assert_eq!(head(3).await, OutboxHead { ids: vec![], is_all: true });
    for nth in [5, 3] {
        commit(&store, vec![delivery(&ping(nth, at(0), &to))]).await.unwrap();
    }
    assert_eq!(head(3).await, OutboxHead { ids: ids(&[3, 5]), is_all: true });
    commit(&store, vec![delivery(&ping(1, at(0), &to)), delivery(&ping(9, at(-SECOND), &endpoint(2)))]).await.unwrap();
    assert_eq!(head(9).await.ids, ids(&[1, 3, 5]));
    assert_eq!(head(2).await, OutboxHead { ids: ids(&[1, 3]), is_all: false });
    assert_eq!(store.oldest_in_outbox().await.unwrap(), Some(at(-SECOND)));
    commit(&store, vec![end(&ping(3, at(0), &to)), end(&ping(9, at(-SECOND), &endpoint(2)))]).await.unwrap();
    assert_eq!(head(9).await.ids, ids(&[1, 5]));
    assert_eq!(store.oldest_in_outbox().await.unwrap(), Some(at(0)));
    let all = store.deliveries(&scope(), None, page_of(1, 9)).await.unwrap();
    let of_one = store.deliveries(&scope(), Some(&to.endpoint.id), page_of(1, 9)).await.unwrap();
    assert_eq!((all.total, all.items.len(), of_one.total, of_one.items.len()), (4, 4, 3, 3));
}

pub(super) async fn a_clock_that_steps_back_changes_no_list_and_no_outbox(store: Arc<Store>) {
    commit(&store, vec![added(endpoint(1), 9)]).await.unwrap();
    let later = create(&store, 1, DAY).await;
    commit(&store, vec![delivery(&ping(1, at(DAY), &endpoint(1)))]).await.unwrap();
    let earlier = create(&store, 2, 0).await;
    commit(&store, vec![delivery(&ping(2, at(0), &endpoint(1)))]).await.unwrap();
    let found: HashSet<_> = ids_from_all_pages(&store, 1).await.into_iter().collect();
    assert_eq!(found, HashSet::from([later, earlier]));
    assert_eq!(store.outbox(&endpoint(1).endpoint.id, 9).await.unwrap().ids.len(), 2);
    // A claim by the clock that stepped back finds all work that does not wait for a time.
    assert_eq!(store.claim(Queue::FanOut, &lease(1, 0), 9).await.unwrap().len(), 2);
    assert_eq!(store.claim(Queue::Lanes, &lease(1, 0), 9).await.unwrap().len(), 1);
}

pub(super) async fn every_page_of_a_long_list_continues_the_page_before(store: Arc<Store>) {
    const PAYMENTS: i64 = 1_100;
    let new: Vec<_> = (0..PAYMENTS).map(|nth| new_payment(1, at(nth))).collect();
    for some in new.chunks(100) {
        commit(&store, some.iter().cloned().map(payment).collect()).await.unwrap();
    }
    // Three hundred in a row are paid, and every third of the others.
    let is_paid = |nth: usize| nth.is_multiple_of(3) || (300..600).contains(&nth);
    let of_paid: Vec<_> = new.iter().enumerate().filter(|(nth, _)| is_paid(*nth)).collect();
    for some in of_paid.chunks(100) {
        let writes = some.iter().map(|(_, new)| payment(paid(&new.session, at(PAYMENTS))));
        commit(&store, writes.collect()).await.unwrap();
    }
    let ids = |wanted: &dyn Fn(usize) -> bool| {
        let newest_first = new.iter().enumerate().rev().filter(|(nth, _)| wanted(*nth));
        newest_first.map(|(_, new)| new.session.payment.id.clone()).collect::<Vec<_>>()
    };
    let lists: [(Option<Status>, Vec<PaymentId>); 3] = [
        (None, ids(&|_| true)),
        (Some(Status::Completed), ids(&is_paid)),
        (Some(Status::Pending), ids(&|nth| !is_paid(nth))),
    ];
    for (status, expected) in lists {
        for limit in [100, 7] {
            for (number, part) in (1..).zip(expected.chunks(limit)) {
                if limit == 100 || number % 10 == 1 {
                    let request = page_of(number, u32::try_from(limit).unwrap());
                    let page = payment_page(&store, status.as_ref(), request).await;
                    let found: Vec<_> = page.items.into_iter().map(|payment| payment.id).collect();
                    assert_eq!((found, page.total), (part.to_vec(), expected.len() as u64), "{status:?} {number}");
                }
            }
        }
        let source = status.map_or(PaymentSource::All, PaymentSource::Status);
        for nth in (0..expected.len()).step_by(90) {
            let from = PaymentsFrom { after: Some(expected[nth].clone()), ..PaymentsFrom::default() };
            let found = store.payments_from(&scope(), &source, &from, 40).await.unwrap();
            let found: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
            assert_eq!(found, expected[nth + 1..expected.len().min(nth + 41)], "{source:?} after {nth}");
        }
    }
}
