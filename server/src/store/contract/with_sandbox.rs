//! Two stores as one, each with the records of its scopes.

use std::{fmt::Debug, slice, sync::Arc};

use payments_core::{Currency, Day, DeliveryStatus, Environment, EventId, PaymentId, RANDOM_BYTES, Status};
use tempfile::TempDir;

use super::{Engine, Finding, samples::*};
use crate::{
    ambient::OperatingSystem,
    domain::{Endpoint, IdempotencyKey, LogPart, Outgoing, Scope, Workspace, fan_out},
    metrics::Metrics,
    store::{
        Change, ClaimEnd, DeliveriesFrom, EventsFrom, NewResponse, OutboxHead, PaymentSource, PaymentWrite,
        PaymentsFrom, Queue, Store, TransactionsFrom, Work, Write, disposable::Disposable, layout::MemoryStore,
        sandboxed::Sandboxed,
    },
};

/// The contract's records are none of the sandbox's, so they are in the lasting store.
pub(super) struct WithSandbox {
    lasting: Arc<MemoryStore>,
    sandbox: Arc<Disposable>,
    directory: TempDir,
}

impl WithSandbox {
    async fn of(developer: &str) -> Self {
        Self::open(Arc::default(), tempfile::tempdir().unwrap(), developer).await
    }

    async fn open(lasting: Arc<MemoryStore>, directory: TempDir, developer: &str) -> Self {
        let workspace = Workspace { developer_id: developer.parse().unwrap(), ..workspace(0) };
        let (path, gauges) = (directory.path().to_owned(), Metrics::new().sandbox);
        let sandbox = Disposable::open(path, u64::MAX, workspace, Arc::new(OperatingSystem), gauges).await.unwrap();
        Self { lasting, sandbox: Arc::new(sandbox), directory }
    }

    fn lasting(&self) -> Arc<dyn Store> {
        Arc::clone(&self.lasting) as Arc<dyn Store>
    }

    fn sandbox(&self) -> Arc<dyn Store> {
        self.sandbox.store()
    }
}

impl Engine for WithSandbox {
    async fn new() -> Self {
        Self::of("dev_2").await
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Sandboxed { lasting: self.lasting(), sandbox: Arc::clone(&self.sandbox) })
    }

    async fn restarted(self) -> Self {
        Arc::into_inner(self.sandbox).unwrap().close();
        Self::open(self.lasting, self.directory, "dev_2").await
    }

    async fn findings(&self) -> Vec<Finding> {
        assert_eq!(self.sandbox().payments_by_status().await.unwrap(), [], "they are the lasting store's");
        Vec::new()
    }

    async fn end(self) {
        Arc::into_inner(self.sandbox).unwrap().close();
    }
}

/// Records of one scope. The payment is paid, and its first event has a delivery and is still pending.
struct Records {
    scope: Scope,
    new: PaymentWrite,
    endpoint: Endpoint,
    ping: Outgoing,
    key: IdempotencyKey,
}

impl Records {
    /// The scope of `dev_1` in an environment. The `nth` ids are its own.
    fn of(environment: Environment, nth: u8) -> Self {
        let scope = Scope { environment, ..scope() };
        let endpoint = Endpoint { environment, ..endpoint(nth) };
        let new = new_payment_in(&scope, nth, at(i64::from(nth)), "");
        let ping = ping(nth, at(i64::from(nth)), &endpoint);
        let key = IdempotencyKey::new(&scope, "POST", "/api/v1/payments", "one");
        Self { scope, new, endpoint, ping, key }
    }

    fn payment(&self) -> &PaymentId {
        &self.new.session.payment.id
    }

    fn event(&self) -> &EventId {
        &self.new.event.as_ref().unwrap().id
    }

    async fn write(&self, store: &Arc<dyn Store>) {
        let change = |write| store.commit(Change::of(write));
        change(added(self.endpoint.clone(), 9)).await.unwrap();
        let keep = NewResponse {
            key: self.key.clone(),
            fingerprint: "v2:1".into(),
            created_at: at(0),
            body: response(1),
            claim: ClaimEnd::NotClaimed,
        };
        let new = Change { idempotency: Some(keep), ..Change::of(payment(self.new.clone())) };
        store.commit(new).await.unwrap();
        change(payment(paid(&self.new.session, at(SECOND)))).await.unwrap();
        let (pending, endpoints) = store.pending_event(self.event(), 9).await.unwrap().unwrap();
        let made = fan_out(&pending, &endpoints, || [9; RANDOM_BYTES]).remove(0);
        change(delivery(&made)).await.unwrap();
        change(delivery(&self.ping)).await.unwrap();
        change(Write::LogPart(Box::new(LogPart { scope: self.scope.clone(), ..log_part(0) }))).await.unwrap();
    }

    /// What is read by the scope.
    async fn read_by_scope(&self, store: &Arc<dyn Store>) -> Vec<String> {
        fn text(read: impl Debug) -> String {
            format!("{read:?}")
        }
        let (scope, endpoint) = (&self.scope, &self.endpoint.endpoint.id);
        let (payment, day) = (self.payment(), Day::of(at(0)));
        let from = store.payments_from(scope, &PaymentSource::All, &PaymentsFrom::default(), 9).await.unwrap();
        let deliveries = DeliveriesFrom { since: at(0), after: None };
        vec![
            text(store.totals(scope, Currency::Bdt).await.unwrap()),
            text(store.days(scope, Currency::Bdt, day..=day).await.unwrap()),
            text(store.stored_response(&self.key).await.unwrap()),
            text(parsed(store.payments(scope, None, page_of(1, 9)).await.unwrap())),
            text(from.into_iter().map(|(id, json)| (id, json.0)).collect::<Vec<_>>()),
            text(store.endpoints(scope, None, 9).await.unwrap()),
            text(store.log_part(scope, log_part(0).place).await.unwrap()),
            text(store.events(scope, &EventsFrom::Beginning, 9).await.unwrap()),
            text(store.payment_of_event(scope, self.event()).await.unwrap()),
            text(store.events_of(scope, slice::from_ref(payment)).await.unwrap()),
            text(store.transactions(scope, &TransactionsFrom::Newest, 9).await.unwrap()),
            text(store.deliveries_from(scope, endpoint, &deliveries, 9).await.unwrap()),
            text(store.deliveries(scope, None, page_of(1, 9)).await.unwrap()),
            text(store.deliveries_of(scope, payment, 9).await.unwrap()),
            text(store.payment_json(scope, payment).await.unwrap().map(|json| json.0)),
        ]
    }

    /// What is read by an id.
    async fn read_by_id(&self, store: &Arc<dyn Store>) -> Vec<String> {
        vec![
            format!("{:?}", store.session(self.payment()).await.unwrap()),
            format!("{:?}", store.endpoint(&self.endpoint.endpoint.id).await.unwrap()),
            format!("{:?}", store.pending_event(self.event(), 9).await.unwrap()),
            format!("{:?}", store.outgoing(&self.ping.delivery.id).await.unwrap()),
        ]
    }
}

/// The live scope's records and the sandbox's, in their stores.
async fn both() -> (WithSandbox, Arc<dyn Store>, [Records; 2]) {
    let engine = WithSandbox::of("dev_1").await;
    let store = engine.store();
    let records = [Records::of(Environment::Live, 1), Records::of(Environment::Test, 2)];
    for records in &records {
        records.write(&store).await;
    }
    (engine, store, records)
}

#[tokio::test]
async fn the_sandboxs_records_are_in_its_store_and_all_others_in_the_lasting_one() {
    let (engine, store, [live, test]) = both().await;
    for (records, own, other) in
        [(&live, engine.lasting(), engine.sandbox()), (&test, engine.sandbox(), engine.lasting())]
    {
        let read = records.read_by_scope(&store).await;
        assert_eq!(read, records.read_by_scope(&own).await);
        let elsewhere = records.read_by_scope(&other).await;
        for (nth, (here, there)) in read.iter().zip(elsewhere).enumerate() {
            assert_ne!(*here, there, "{nth}");
        }
        let read = records.read_by_id(&store).await;
        assert_eq!(read, records.read_by_id(&own).await);
        assert!(!read.contains(&"None".to_owned()), "{read:?}");
        assert_eq!(records.read_by_id(&other).await, ["None"; 4]);
    }
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn claims_on_a_key_are_in_the_store_of_its_scope() {
    let (engine, store, [_, test]) = both().await;
    let key = IdempotencyKey { digest: key("two").digest, ..test.key.clone() };
    let Write::KeyClaimed(mut claimed) = claiming("two", 1, at(0), at(DAY)) else { unreachable!() };
    claimed.0 = key.clone();
    let change = async |store: &Arc<dyn Store>, write: &Write| outcome(store.commit(Change::of(write.clone())).await);
    let claim = Write::KeyClaimed(claimed);
    assert_eq!(change(&store, &claim).await, COMMITTED);
    assert_eq!(change(&engine.sandbox(), &claim).await, KEY_CLAIMED);
    assert_eq!(change(&store, &Write::KeyReleased(key, token(1))).await, COMMITTED);
    assert_eq!(change(&engine.sandbox(), &claim).await, COMMITTED, "it was released");
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn work_of_both_stores_is_claimed_renewed_and_released() {
    let (engine, store, records) = both().await;
    let [live, test] = records.each_ref().map(|records| Work::Lane(records.endpoint.endpoint.id.clone()));
    let claim = async |millis, at_most| {
        let claims = store.claim(Queue::Lanes, &lease(1, millis), at_most).await.unwrap();
        (claims.iter().map(|claim| claim.work.clone()).collect::<Vec<_>>(), claims)
    };
    assert_eq!(claim(0, 1).await.0, slice::from_ref(&live), "no more than asked");
    let (works, claims) = claim(20_000, 2).await;
    assert_eq!(works, [live.clone(), test.clone()]);
    for claim in &claims {
        assert!(store.renew(claim, &lease(1, 25_000)).await.unwrap());
    }
    assert_eq!(claim(34_999, 9).await.0, []);
    store.release(&claims).await.unwrap();
    for claim in &claims {
        assert!(!store.renew(claim, &lease(1, 25_000)).await.unwrap());
    }
    for (records, work) in records.iter().zip([live, test]) {
        let claim = store.claim_lane(&records.endpoint.endpoint.id, &lease(1, 40_000)).await.unwrap().unwrap();
        assert_eq!(claim.work, work);
    }
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn no_gateway_is_asked_about_a_payment_of_the_sandbox() {
    let (engine, store, [live, test]) = both().await;
    for records in [&live, &test] {
        let session = store.session(records.payment()).await.unwrap().unwrap();
        let asking = changed(&session, |session| session.check_at = Some(at(0)));
        commit(&store, vec![payment(asking)]).await.unwrap();
    }
    let claims = store.claim(Queue::GatewayChecks, &lease(1, DAY), 9).await.unwrap();
    assert_eq!(
        claims.into_iter().map(|claim| claim.work).collect::<Vec<_>>(),
        [Work::GatewayCheck(live.payment().clone())]
    );
    let of_sandbox = engine.sandbox().claim(Queue::GatewayChecks, &lease(1, DAY), 9).await.unwrap();
    assert_eq!(of_sandbox.len(), 1, "its own store would hand it out");
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn counts_and_outboxes_are_those_of_both_stores() {
    let (engine, store, [live, test]) = both().await;
    let mut rows = store.payments_by_status().await.unwrap();
    rows.retain(|(.., payments)| *payments > 0);
    assert_eq!(rows, [(Environment::Live, Status::Completed, 1), (Environment::Test, Status::Completed, 1)]);
    assert_eq!(store.oldest_in_outbox().await.unwrap(), Some(at(1)));
    commit(&store, vec![wait(&live.ping, at(DAY))]).await.unwrap();
    assert_eq!(store.waiting_deliveries().await.unwrap(), 1);
    commit(&store, vec![wait(&test.ping, at(DAY))]).await.unwrap();
    assert_eq!(store.waiting_deliveries().await.unwrap(), 2);
    // A delivery from before the sandbox had a store of its own is older than those in the sandbox's store.
    let hook = &test.endpoint;
    let (old, new) = (ping(3, at(0), hook), ping(4, at(20), hook));
    commit(&engine.lasting(), vec![delivery(&old)]).await.unwrap();
    commit(&engine.sandbox(), vec![delivery(&new)]).await.unwrap();
    let OutboxHead { ids, is_all } = store.outbox(&hook.endpoint.id, 9).await.unwrap();
    assert_eq!((ids.len(), is_all), (3, true));
    assert_eq!((&ids[0], &ids[2]), (&old.delivery.id, &new.delivery.id));
    assert!(!store.outbox(&hook.endpoint.id, 1).await.unwrap().is_all, "the sandbox's store has another one");
    commit(&engine.sandbox(), vec![end(&new)]).await.unwrap();
    commit(&engine.lasting(), vec![delivery(&ping(5, at(5), hook))]).await.unwrap();
    assert!(!store.outbox(&hook.endpoint.id, 1).await.unwrap().is_all, "the lasting store has another one");
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn the_sandboxs_records_from_before_it_had_a_store_are_changed_where_they_are() {
    let engine = WithSandbox::of("dev_1").await;
    let (store, lasting) = (engine.store(), engine.lasting());
    let old = Records::of(Environment::Test, 1);
    old.write(&lasting).await;
    let change = async |write: Write| outcome(store.commit(Change::of(write)).await);

    let session = lasting.session(old.payment()).await.unwrap().unwrap();
    let touched = changed(&session, |session| session.check_at = Some(at(0)));
    assert_eq!(change(payment(touched)).await, COMMITTED);
    assert_eq!(lasting.session(old.payment()).await.unwrap().unwrap().version, session.version + 1);

    let ended = ended(old.ping.clone());
    assert_eq!(change(Write::DeliveryChanged(Box::new(ended.clone()))).await, COMMITTED);
    let again = ended.again(ping(2, at(5), &old.endpoint).delivery.id, at(5)).unwrap();
    let resent = Outgoing { version: 2, resent_as: Some(again.delivery.id.clone()), ..ended };
    assert_eq!(change(delivery(&again)).await, COMMITTED);
    assert_eq!(change(Write::DeliveryResent(Box::new(resent))).await, COMMITTED);
    let found = lasting.outgoing(&old.ping.delivery.id).await.unwrap().unwrap();
    assert_eq!((found.delivery.status, found.resent_as), (DeliveryStatus::Success, Some(again.delivery.id.clone())));
    assert!(lasting.outgoing(&again.delivery.id).await.unwrap().is_some(), "it is beside the one it repeats");

    let (scope, event) = (old.scope.clone(), old.event().clone());
    assert_eq!(change(Write::FannedOut { scope, event: event.clone(), after: None }).await, COMMITTED);
    assert!(lasting.pending_event(&event, 9).await.unwrap().is_none());

    let touched = Endpoint { version: 1, ..old.endpoint.clone() };
    assert_eq!(change(Write::EndpointChanged(Box::new(touched.clone()))).await, COMMITTED);
    assert_eq!(change(Write::EndpointRemoved(Box::new(touched))).await, COMMITTED);
    assert!(lasting.endpoint(&old.endpoint.endpoint.id).await.unwrap().is_none());

    // What it writes anew is in its own store.
    let new = Records::of(Environment::Test, 2);
    assert_eq!(change(added(new.endpoint.clone(), 9)).await, COMMITTED);
    assert_eq!(change(delivery(&new.ping)).await, COMMITTED);
    assert!(engine.sandbox().outgoing(&new.ping.delivery.id).await.unwrap().is_some());
    drop((store, lasting));
    engine.end().await;
}
