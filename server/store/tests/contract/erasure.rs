//! Erasures of a customer's data.

use std::{collections::HashSet, sync::Arc};

use payments_core::{Cause, DeliveryId, Envelope, EventKind, PaymentId, RANDOM_BYTES, RawJson, Slot};
use payments_store::{
    Change, ClaimEnd, NewResponse, PaymentSource, PaymentWrite, PaymentsFrom, Store, Write,
    bytes::{Bytes as _, Cell},
    domain::{ErasePolicy, Lookup, Outgoing, Session},
    layout::MemoryStore,
};
use proptest::prelude::*;

use crate::samples::*;

const ALL: ErasePolicy = ErasePolicy { metadata: true, lines: true };

/// The erasure of a payment's customer.
fn erased(before: &Session, policy: ErasePolicy) -> PaymentWrite {
    let session = before.erased(policy);
    let json = RawJson::of(&session.payment).unwrap();
    PaymentWrite { erases: Some(policy), ..PaymentWrite::new(session, json, None, None) }
}

async fn erase(store: &Arc<Store>, before: &Session, policy: ErasePolicy) -> Session {
    let write = erased(before, policy);
    let after = write.session.clone();
    commit(store, vec![payment(write)]).await.unwrap();
    after
}

async fn found(store: &Arc<Store>, lookup: Option<Lookup>) -> Vec<PaymentId> {
    let source = PaymentSource::Lookup(lookup.unwrap());
    let part = store.payments_from(&scope(), &source, &PaymentsFrom::default(), 999).await.unwrap();
    part.into_iter().map(|(id, _)| id).collect()
}

/// Creates a payment that then expires.
async fn expired(store: &Arc<Store>, nth: u8, fields: &str) -> Session {
    let new = new_payment_with(nth, at(i64::from(nth)), fields);
    let ended = try_moved(&new.session, Cause::SessionEnded, at(i64::from(nth) + SECOND)).unwrap();
    let session = ended.session.clone();
    commit(store, vec![payment(new)]).await.unwrap();
    commit(store, vec![payment(ended)]).await.unwrap();
    session
}

pub(super) async fn erased_payments_are_found_by_their_values_no_more_and_the_others_still_are(store: Arc<Store>) {
    let mut sessions = Vec::new();
    for nth in 0..100 {
        let email = if nth % 3 == 0 { r#""customerEmail": "rina@example.org","# } else { "" };
        sessions.push(expired(&store, nth, &format!(r#""customerPhone": "01712345678",{email}"#)).await);
    }
    let (phone, email) = (|| Lookup::phone("01712345678"), || Lookup::email("rina@example.org"));
    let (mut left, mut order): (Vec<usize>, Vec<usize>) = ((0..100).rev().collect(), (0..100).collect());
    // In an order that takes from the head, the middle and the beginning of the lists.
    order.sort_by_key(|nth| nth * 37 % 100);
    for (round, nth) in order.into_iter().enumerate() {
        erase(&store, &sessions[nth], ErasePolicy::default()).await;
        left.retain(|it| *it != nth);
        if round % 9 == 0 || left.len() < 4 {
            let id = |nth: &usize| sessions[*nth].payment.id.clone();
            assert_eq!(found(&store, phone()).await, left.iter().map(id).collect::<Vec<_>>());
            let with_email = left.iter().filter(|nth| *nth % 3 == 0);
            assert_eq!(found(&store, email()).await, with_email.map(id).collect::<Vec<_>>());
        }
    }
    let again = expired(&store, 200, r#""customerPhone": "01712345678","#).await;
    assert_eq!(found(&store, phone()).await, [again.payment.id]);
}

pub(super) async fn a_sweep_finds_ended_payments_with_a_customers_data_by_their_last_change(store: Arc<Store>) {
    let fields = r#""customerName": "Rina","#;
    let ended = [expired(&store, 1, fields).await, expired(&store, 2, fields).await];
    expired(&store, 3, "").await;
    commit(&store, vec![payment(new_payment_with(4, at(0), fields))]).await.unwrap();
    let erasable = async |millis, at_most| {
        let (mut found, mut after) = (Vec::new(), None);
        for slot in Slot::all() {
            loop {
                let (part, next) = store.erasable(slot, at(millis), after.as_deref(), at_most).await.unwrap();
                assert!(part.len() <= at_most);
                found.extend(part);
                after = next;
                if after.is_none() {
                    break;
                }
            }
        }
        found
    };
    let ids: Vec<_> = ended.iter().map(|it| it.payment.id.clone()).collect();
    assert_eq!(erasable(SECOND, 9).await, []);
    for at_most in [1, 2, 9] {
        assert_eq!(erasable(DAY, at_most).await, ids);
    }
    erase(&store, &ended[0], ErasePolicy::default()).await;
    assert_eq!(erasable(DAY, 9).await, ids[1..]);
    let stale = commit(&store, vec![payment(erased(&ended[0], ALL))]).await;
    assert_eq!(outcome(stale), STALE);
}

/// A delivery of a payment's event, which has ended.
fn delivered(nth: u8, session: &Session, event: &payments_store::EventWrite, body: &str) -> [Write; 2] {
    let id = DeliveryId::new(Slot::FIRST, at(0), [nth; RANDOM_BYTES]);
    let envelope =
        Envelope { id: &event.id, event: event.kind.clone(), created_at: event.created_at, data: &event.data };
    let envelope = RawJson::of(&envelope).unwrap();
    let endpoint = endpoint(1);
    let new = Outgoing::new(id, &scope(), &endpoint.endpoint.id, &EventKind::PaymentCreated, envelope, at(0));
    let new = Outgoing { subject: Some(session.payment.id.clone().into()), event: Some(event.id.clone()), ..new };
    let mut after = ended(new.clone());
    after.delivery.response_body = Some(body.to_owned());
    [delivery(&new), Write::DeliveryChanged(Box::new(after))]
}

/// Stores a payment's JSON as the response to a request, as its own body.
async fn respond(store: &Arc<Store>, text: &str, body: RawJson) {
    let keep = NewResponse {
        key: key(text),
        fingerprint: "v2:1".into(),
        created_at: at(0),
        body,
        claim: ClaimEnd::NotClaimed,
    };
    store.commit(Change { idempotency: Some(keep), ..Change::default() }).await.unwrap();
}

pub(super) async fn an_erasure_reaches_events_deliveries_and_stored_responses(store: Arc<Store>) {
    commit(&store, vec![added(endpoint(1), 9)]).await.unwrap();
    let fields = r#""customerName": "Rina Akter", "customerPhone": "01712345678","#;
    let new = new_payment_with(1, at(0), fields);
    let (session, event) = (new.session.clone(), new.event.clone().unwrap());
    let id = session.payment.id.clone();
    commit(&store, vec![payment(new)]).await.unwrap();
    commit(&store, delivered(1, &session, &event, "thanks, Rina Akter").into()).await.unwrap();
    let completed = paid(&session, at(SECOND));
    let session = completed.session.clone();
    respond(&store, "own", completed.json.clone()).await;
    respond(&store, "other", response(1)).await;
    commit(&store, vec![payment(completed)]).await.unwrap();

    let about = async || store.responses_about(&scope(), &HashSet::from([id.clone()])).await.unwrap();
    assert_eq!(about().await.len(), 1);
    for (key, ..) in about().await {
        store.erase_response(key, ErasePolicy::default()).await.unwrap();
    }
    assert_eq!(
        (store.redact_deliveries_of(&id).await.unwrap(), store.redact_deliveries_of(&id).await.unwrap()),
        (1, 0)
    );
    let after = erase(&store, &session, ErasePolicy::default()).await;

    let events = store.events_of(&scope(), std::slice::from_ref(&id)).await.unwrap().remove(0).1;
    assert_eq!(events.len(), 2);
    let texts = events.iter().map(|event| event.data.as_str().to_owned());
    let outgoing = store.deliveries_of(&scope(), &id, 9).await.unwrap();
    let texts = texts.chain([serde_json::to_string(&outgoing).unwrap(), about().await[0].2.as_str().to_owned()]);
    for text in texts {
        assert!(!text.contains("Rina") && !text.contains("1712345678"), "{text}");
    }
    // The last event still has the payment's own text, and the metadata is as the merchant wrote it.
    assert_eq!(events[1].data, RawJson::of(&after.payment).unwrap());
    assert!(events[0].data.as_str().contains("1.10"));
    // The payment goes on: it can be disputed, and its last event gets data of its own.
    let disputed = reported(&after, payments_core::DisputeStatus::NeedsResponse, 0);
    commit(&store, vec![payment(disputed)]).await.unwrap();
    let again = store.events_of(&scope(), std::slice::from_ref(&id)).await.unwrap().remove(0).1;
    assert_eq!(again[..2], events[..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn after_an_erasure_no_byte_of_the_erased_values_is_in_any_record_or_entry(
        names in prop::collection::vec("[A-Z][a-z]{5,12} [A-Z][a-z]{5,12}", 1..4),
        ends in prop::collection::vec(0_u8..3, 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = Arc::new(MemoryStore::default());
            let store = memory.store();
            commit(&store, vec![Write::Workspace(workspace(0)), added(endpoint(1), 9)]).await.unwrap();
            let mut values = Vec::new();
            let mut sessions = Vec::new();
            for (nth, end) in (0_u8..).zip(&ends) {
                let name = &names[usize::from(nth) % names.len()];
                let email = format!("{}@shop.example", name.replace(' ', "."));
                let phone = format!("0171{:07}", 1_234_000 + name.len());
                let fields = format!(r#""customerName": "{name}", "customerEmail": "{email}", "customerPhone": "{phone}",
                    "description": "for {name}", "lineItems": [{{"name": "{email}"}}],"#);
                let new = new_payment_with(nth, at(0), &fields);
                let (mut session, event) = (new.session.clone(), new.event.clone().unwrap());
                respond(&store, &format!("own {nth}"), new.json.clone()).await;
                commit(&store, vec![payment(new)]).await.unwrap();
                commit(&store, delivered(nth, &session, &event, &format!("hello {name}")).into()).await.unwrap();
                let mut moves = vec![match end { 0 => Cause::SessionEnded, _ => Cause::GatewayConfirmed }];
                moves.extend((*end == 2).then(|| cause_of(5, nth, 3)));
                for cause in moves {
                    let mut write = try_moved(&session, cause, at(SECOND)).unwrap();
                    let words = format!("no answer about {phone}");
                    write.session.record(at(SECOND), payments_core::TimelineKind::GatewayError, words);
                    session = write.session.clone();
                    commit(&store, vec![payment(write)]).await.unwrap();
                }
                values.extend([name.clone(), email.to_lowercase(), email, phone]);
                sessions.push(session);
            }
            let ids = sessions.iter().map(|it| it.payment.id.clone()).collect();
            for (key, ..) in store.responses_about(&scope(), &ids).await.unwrap() {
                store.erase_response(key, ALL).await.unwrap();
            }
            for session in &sessions {
                store.redact_deliveries_of(&session.payment.id).await.unwrap();
                erase(&store, session, ALL).await;
            }
            let all = memory.bytes.range(Cell(0), Vec::new()..vec![u8::MAX], false, usize::MAX).await.unwrap();
            for (key, value) in all.into_iter().map(Result::unwrap) {
                let at = key.escape_ascii().to_string();
                assert!(!at.contains("found/"), "a search entry is left: {at}");
                for text in &values {
                    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
                    assert!(!has(&key) && !has(&value), "{text} is in {at}: {}", value.escape_ascii());
                }
            }
            let findings = payments_store::Snapshot::check(&*memory, &mut |_| ()).unwrap().findings;
            assert!(findings.is_empty(), "{findings:?}");
        });
    }
}
