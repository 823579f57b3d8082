//! Changes: whole, conditional, durable.

use std::slice;
use std::sync::Arc;

use futures_util::future::join_all;
use payments_core::{Currency, Environment, KeyId, RANDOM_BYTES, Slot, Status, WorkspaceId};
use payments_store::{
    Change, ClaimEnd, Queue, Store, Write,
    domain::{
        AdminPermission, ApiKey, App, Brand, GatewayName, GatewayPause, Grant, KeyHash, LogPart, Notices,
        PersonSession, Place, PlatformKey, Role, Scope, StoredToken, Workspace,
    },
};

use crate::{audit, samples::*};

pub(super) fn api_key(nth: u8, version: u64) -> (KeyHash, ApiKey) {
    let record = ApiKey {
        version,
        id: KeyId::new(Slot::FIRST, at(0), [nth; RANDOM_BYTES]),
        workspace_id: workspace(0).id,
        scope: scope(),
        last4: format!("{version:04}"),
        app_id: None,
        only_its_app: false,
        name: None,
        permissions: None,
        expires_at: None,
        last_used_at: None,
        created_at: at(0),
        revoked_at: None,
        replaced_by: None,
    };
    (KeyHash::of(&format!("key {nth}")), record)
}

pub(super) fn app(version: u64) -> App {
    let app = serde_json::json!({"id": "app_1", "developerId": "dev_1", "name": "Shop", "description": null,
        "redirectUris": [], "webhookUrl": null, "status": "active", "isActive": true, "createdAt": at(0),
        "updatedAt": at(0)});
    let brand = Brand { logo_url: "https://cdn.example/logo.svg".parse().ok(), colour: "#0a7d4f".parse().ok() };
    App { version, brand, app: serde_json::from_value(app).unwrap() }
}

fn json(record: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(record).unwrap()
}

fn platform_key(version: u64) -> PlatformKey {
    PlatformKey {
        version,
        id: KeyId::new(Slot::FIRST, at(0), [9; RANDOM_BYTES]),
        hash: PlatformKey::hash_of("adm_1"),
        last4: "adm1".into(),
        name: "ops".into(),
        scopes: vec![AdminPermission::MoneyRead],
        created_at: at(0),
        expires_at: at(60),
        revoked_at: None,
    }
}

fn pause(version: u64) -> GatewayPause {
    GatewayPause { version, gateway: GatewayName::of("wallet"), until: at(60) }
}

fn notices(version: u64) -> Notices {
    let notice = serde_json::json!({"kind": "payout_waiting", "subject": "po_1", "since": at(0)});
    serde_json::from_value(serde_json::json!({"version": version, "notices": [{"notice": notice}]})).unwrap()
}

fn session(version: u64) -> PersonSession {
    PersonSession {
        version,
        id: KeyId::new(Slot::FIRST, at(0), [5; RANDOM_BYTES]),
        token_hash: "5e".repeat(32),
        subject: "7".into(),
        email: Some("mita@platform.example".into()),
        name: None,
        grants: vec![Grant { role: Role::Viewer, workspace: Some(workspace(0).id) }],
        created_at: at(0),
        expires_at: at(60),
        last_seen_at: at(0),
        revoked_at: None,
    }
}

pub(super) async fn a_session_is_removed_only_as_it_was_read(store: Arc<Store>) {
    let stored = async |hash: &str| store.person_session(hash).await.unwrap();
    let commit = async |write| store.commit(Change::of(write)).await;
    commit(Write::PersonSession(Box::new(session(0)))).await.unwrap();
    commit(Write::PersonSession(Box::new(session(1)))).await.unwrap();
    assert_eq!(stored(&session(0).token_hash).await, Some(session(1)));
    assert_eq!(store.person_sessions(9).await.unwrap(), [session(1)]);
    assert!(store.person_sessions(0).await.unwrap().is_empty() && stored("5e").await.is_none());
    commit(Write::PersonSessionRemoved(Box::new(session(0)))).await.unwrap_err();
    commit(Write::PersonSessionRemoved(Box::new(session(1)))).await.unwrap();
    assert_eq!(stored(&session(0).token_hash).await, None);
    commit(Write::PersonSessionRemoved(Box::new(session(1)))).await.unwrap_err();
}

/// One record of each kind. All entries follow from them.
fn one_of_each() -> Vec<Write> {
    let (hash, record) = api_key(1, 0);
    vec![
        Write::Workspace(workspace(0)),
        Write::ApiKey(hash, Box::new(record)),
        Write::App(Box::new(app(0))),
        Write::GatewayToken("bkash".into(), StoredToken { token: Some(vec![1]), ..StoredToken::default() }),
        Write::GatewayPause(Box::new(pause(0))),
        Write::PlatformKey(Box::new(platform_key(0))),
        Write::Notices(Box::new(notices(0))),
        Write::PersonSession(Box::new(session(0))),
        added(endpoint(1), 9),
        payment(new_payment(1, at(0))),
        delivery(&ping(1, at(0), &endpoint(1))),
    ]
}

/// Commits one of each kind and reads it.
pub(super) async fn written(store: Arc<Store>) -> String {
    commit(&store, one_of_each()).await.unwrap();
    let touched = Write::PlatformKey(Box::new(platform_key(1)));
    store.commit(audit::audited(1, touched)).await.unwrap();
    store.commit(keeping("one", 1, at(0), ClaimEnd::NotClaimed)).await.unwrap();
    commit(&store, vec![payment(paid(&new_payment(1, at(0)).session, at(1)))]).await.unwrap();
    read(store).await
}

/// Everything that [`written`] wrote.
pub(super) async fn read(store: Arc<Store>) -> String {
    let (paid, lease) = (new_payment(1, at(0)).session.payment.id, lease(1, 0));
    let ping = ping(1, at(0), &endpoint(1)).delivery.id;
    let claims = store.claim(Queue::FanOut, &lease, 9).await.unwrap();
    for claim in &claims {
        store.release(slice::from_ref(claim)).await.unwrap();
    }
    let developer = scope().developer_id;
    let workspace = store.workspace(workspace(0).id.as_str()).await.unwrap().unwrap();
    assert_eq!(json(&workspace), json(&store.workspace_of(&developer).await.unwrap().unwrap()));
    let key_record = store.api_key(&api_key(1, 0).0).await.unwrap().unwrap();
    let app = store.app(&developer, &app(0).app.id).await.unwrap().unwrap();
    assert_eq!(json(&store.apps(&developer).await.unwrap()), serde_json::json!([json(&app)]));
    let token = store.gateway_token("bkash").await.unwrap().unwrap();
    let pause = store.gateway_pause(pause(0).gateway).await.unwrap().unwrap();
    let platform = (store.platform_keys().await.unwrap(), store.audit(None, None, 9).await.unwrap());
    let notices = store.notices().await.unwrap().unwrap();
    let session_of_person = store.person_session(&session(0).token_hash).await.unwrap().unwrap();
    let response = store.stored_response(&key("one")).await.unwrap().unwrap();
    let session = store.session(&paid).await.unwrap().unwrap();
    let outgoing = store.outgoing(&ping).await.unwrap().unwrap();
    format!(
        "{:?}",
        (
            (
                workspace,
                key_record,
                app,
                (token, pause, platform, notices, session_of_person),
                response,
                session,
                outgoing
            ),
            (store.totals(&scope(), Currency::Bdt).await.unwrap(), store.endpoints(&scope(), None, 9).await.unwrap()),
            (claims.into_iter().map(|claim| claim.work).collect::<Vec<_>>(), store.oldest_in_outbox().await.unwrap()),
        )
    )
}

pub(super) async fn a_change_is_whole_or_not_there(store: Arc<Store>) {
    let mut writes = one_of_each();
    writes.push(Write::EndpointRemoved(Box::new(endpoint(2))));
    let change = Change { writes, ..keeping("one", 1, at(0), ClaimEnd::NotClaimed) };
    assert_eq!(outcome(store.commit(change).await), STALE);
    assert!(store.workspace(workspace(0).id.as_str()).await.unwrap().is_none());
    assert!(store.api_keys().await.unwrap().is_empty() && store.apps(&scope().developer_id).await.unwrap().is_empty());
    assert_eq!(store.gateway_token("bkash").await.unwrap(), None);
    assert!(store.endpoints(&scope(), None, 9).await.unwrap().is_empty());
    assert_eq!((payments(&store, 1, 9).await.total, store.oldest_in_outbox().await.unwrap()), (0, None));
    assert_eq!(store.deliveries(&scope(), None, page_of(1, 9)).await.unwrap().total, 0);
    assert_eq!(store.stored_response(&key("one")).await.unwrap(), None);
    for queue in [Queue::FanOut, Queue::Lanes, Queue::Expiry] {
        assert_eq!(store.claim(queue, &lease(1, DAY), 9).await.unwrap(), []);
    }
}

pub(super) async fn a_record_is_written_only_with_the_version_after_the_stored_one(store: Arc<Store>) {
    let of_version: [fn(u64) -> Write; 12] = [
        |version| Write::Workspace(workspace(version)),
        |version| {
            let (hash, record) = api_key(1, version);
            Write::ApiKey(hash, Box::new(record))
        },
        |version| Write::App(Box::new(app(version))),
        |version| Write::LogPart(Box::new(log_part(version))),
        |version| Write::GatewayPause(Box::new(pause(version))),
        |version| Write::PlatformKey(Box::new(platform_key(version))),
        |version| Write::Notices(Box::new(notices(version))),
        |version| Write::PersonSession(Box::new(session(version))),
        |version| Write::GatewayToken("bkash".into(), StoredToken { version, ..StoredToken::default() }),
        |version| {
            let mut endpoint = endpoint(1);
            endpoint.version = version;
            added(endpoint, 9)
        },
        |version| {
            let mut new = new_payment(1, at(0));
            if version == 0 {
                return payment(new);
            }
            new.session.version = version - 1;
            payment(changed(&new.session, |_| ()))
        },
        |version| {
            let mut ping = ping(1, at(0), &endpoint(1));
            match version.checked_sub(1) {
                None => delivery(&ping),
                Some(before) => {
                    ping.version = before;
                    end(&ping)
                }
            }
        },
    ];
    for (nth, write) in of_version.into_iter().enumerate() {
        for (version, expected) in [(1, STALE), (0, COMMITTED), (0, STALE), (2, STALE), (1, COMMITTED), (1, STALE)] {
            let outcome = outcome(commit(&store, vec![write(version)]).await);
            assert_eq!(outcome, expected, "the write of version {version} of record {nth}");
        }
    }
    for (version, expected) in [(1, STALE), (3, STALE), (0, STALE), (2, COMMITTED), (2, STALE)] {
        let mut changed = endpoint(1);
        (changed.version, changed.endpoint.is_active) = (version, false);
        let outcome = outcome(commit(&store, vec![Write::EndpointChanged(Box::new(changed))]).await);
        assert_eq!(outcome, expected, "the change of an endpoint to version {version}");
    }
    assert!(!store.endpoints(&scope(), None, 1).await.unwrap()[0].endpoint.is_active);
    for (version, expected) in [(0, STALE), (3, STALE), (1, STALE), (2, COMMITTED), (2, STALE)] {
        let mut endpoint = endpoint(1);
        endpoint.version = version;
        let removed = commit(&store, vec![Write::EndpointRemoved(Box::new(endpoint))]).await;
        assert_eq!(outcome(removed), expected, "the removal of version {version}");
    }
}

pub(super) async fn a_change_of_an_api_key_that_was_just_read_is_seen_at_once(store: Arc<Store>) {
    for version in 0..3 {
        let (hash, mut key) = api_key(1, version);
        key.revoked_at = (version == 2).then(|| at(0));
        commit(&store, vec![Write::ApiKey(hash.clone(), Box::new(key.clone()))]).await.unwrap();
        for _ in 0..2 {
            let found = store.api_key(&hash).await.unwrap().unwrap();
            assert_eq!((found.version, found.revoked_at), (key.version, key.revoked_at));
        }
    }
    assert!(store.api_key(&api_key(2, 0).0).await.unwrap().is_none());
}

pub(super) async fn a_part_of_the_log_of_requests_is_read_by_its_place_in_its_own_scope(store: Arc<Store>) {
    let open = log_part(0);
    let full = LogPart { place: Place::of(7), number: 7, ..open.clone() };
    commit(&store, [&open, &full].map(|part| Write::LogPart(Box::new(part.clone()))).into()).await.unwrap();
    assert_eq!(store.log_part(&scope(), Place::Open).await.unwrap(), Some(open));
    assert_eq!(store.log_part(&scope(), full.place).await.unwrap(), Some(full));
    assert_eq!(store.log_part(&scope(), Place::of(8)).await.unwrap(), None);
    let elsewhere = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.log_part(&elsewhere, Place::Open).await.unwrap(), None);
}

pub(super) async fn one_of_several_simultaneous_changes_of_one_version_succeeds(store: Arc<Store>) {
    let new = new_payment(1, at(0));
    let before = new.session.clone();
    commit(&store, vec![payment(new)]).await.unwrap();
    let moves = (1..=8).map(|nth| commit(&store, vec![payment(paid(&before, at(nth)))]));
    let mut outcomes: Vec<_> = join_all(moves).await.into_iter().map(outcome).collect();
    outcomes.sort();
    assert_eq!((outcomes.len(), &*outcomes[0]), (8, COMMITTED));
    assert!(outcomes[1..].iter().all(|outcome| outcome == STALE), "{outcomes:?}");
    assert_eq!(store.session(&before.payment.id).await.unwrap().unwrap().version, 1);
    assert_eq!(store.totals(&scope(), Currency::Bdt).await.unwrap().payments, 1);
}

pub(super) async fn a_scope_never_has_more_endpoints_than_it_may(store: Arc<Store>) {
    let full = "the webhook endpoint limit of 2 is reached";
    let adding = (1..=5).map(|nth| commit(&store, vec![added(endpoint(nth), 2)]));
    let mut outcomes: Vec<_> = join_all(adding).await.into_iter().map(outcome).collect();
    outcomes.sort();
    assert_eq!(outcomes, [COMMITTED, COMMITTED, full, full, full]);
    let mut elsewhere = endpoint(6);
    elsewhere.environment = Environment::Test;
    commit(&store, vec![added(elsewhere, 2)]).await.unwrap();
    let one = store.endpoints(&scope(), None, 1).await.unwrap().remove(0);
    commit(&store, vec![Write::EndpointRemoved(Box::new(one)), added(endpoint(7), 2)]).await.unwrap();
    assert_eq!(outcome(commit(&store, vec![added(endpoint(8), 2)]).await), full);
    assert_eq!(store.endpoints(&scope(), None, 9).await.unwrap().len(), 2);
}

pub(super) async fn the_first_condition_that_does_not_hold_is_reported(store: Arc<Store>) {
    store.commit(keeping("one", 1, at(0), ClaimEnd::NotClaimed)).await.unwrap();
    commit(&store, vec![added(endpoint(1), 1), delivery(&ping(1, at(0), &endpoint(1)))]).await.unwrap();
    let claim = store.claim(Queue::Lanes, &lease(1, 0), 1).await.unwrap().remove(0);
    store.release(slice::from_ref(&claim)).await.unwrap();
    let (stale, full) = (|| Write::Workspace(workspace(7)), || added(endpoint(2), 1));
    let used = || keeping("one", 2, at(1), ClaimEnd::NotClaimed);
    let all = Change { under: vec![claim], writes: vec![stale(), full()], ..used() };
    assert_eq!(outcome(store.commit(all).await), WORK_LOST);
    assert_eq!(outcome(store.commit(Change { writes: vec![stale(), full()], ..used() }).await), KEY_USED);
    assert_eq!(outcome(commit(&store, vec![stale(), full()]).await), STALE);
    assert_eq!(outcome(commit(&store, vec![full(), stale()]).await), "the webhook endpoint limit of 1 is reached");
}

pub(super) async fn simultaneous_changes_add_up(store: Arc<Store>) {
    let pay = async |nth: u8| {
        let new = new_payment(nth, at(nth.into()));
        let before = new.session.clone();
        commit(&store, vec![payment(new)]).await.unwrap();
        commit(&store, vec![payment(paid(&before, at(SECOND)))]).await.unwrap();
    };
    join_all((1..=20).map(pay)).await;
    let totals = store.totals(&scope(), Currency::Bdt).await.unwrap();
    assert_eq!((totals.payments, totals.volume_minor, totals.balance_minor), (20, 20 * 10_000, 20 * 9_750));
    assert_eq!(store.totals(&scope(), Currency::Usd).await.unwrap().payments, 0);
    let elsewhere = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.totals(&elsewhere, Currency::Bdt).await.unwrap().payments, 0);
    let by_status = store.gauges().await.unwrap().payments;
    let completed = by_status.iter().filter(|(_, status, _)| *status == Status::Completed);
    assert_eq!(completed.map(|(.., count)| count).sum::<u64>(), 20, "{by_status:?}");
}

pub(super) async fn records_are_read_as_they_were_written(store: Arc<Store>) {
    let keys = [3, 1, 2].map(|nth| api_key(nth, 0));
    let second = Workspace {
        id: WorkspaceId::new(Slot::FIRST, at(1), [0; RANDOM_BYTES]),
        developer_id: "dev_2".parse().unwrap(),
        ..workspace(0)
    };
    commit(&store, vec![Write::Workspace(second.clone())]).await.unwrap();
    commit(&store, vec![Write::Workspace(workspace(0))]).await.unwrap();
    assert_eq!(json(&store.workspaces().await.unwrap()), json(&[workspace(0), second.clone()]), "oldest first");
    commit(&store, keys.into_iter().map(|(hash, key)| Write::ApiKey(hash, Box::new(key))).collect()).await.unwrap();
    let ids: Vec<_> = store.api_keys().await.unwrap().into_iter().map(|(_, key)| key.id).collect();
    assert_eq!(ids, [1, 2, 3].map(|nth| api_key(nth, 0).1.id), "oldest first");
    let (hash, key) = api_key(4, 0);
    let elsewhere = Scope { developer_id: second.developer_id.clone(), ..scope() };
    let others = ApiKey { workspace_id: second.id.clone(), scope: elsewhere, ..key };
    commit(&store, vec![Write::ApiKey(hash.clone(), Box::new(others.clone()))]).await.unwrap();
    let of = async |workspace: &Workspace| {
        let found = store.api_keys_of(&workspace.id).await.unwrap();
        json(&found.into_iter().map(|(hash, key)| (hash.digest, key)).collect::<Vec<_>>())
    };
    let own = [1, 2, 3].map(|nth| api_key(nth, 0)).map(|(hash, key)| (hash.digest, key));
    assert_eq!(of(&workspace(0)).await, json(&own), "one workspace's, oldest first");
    assert_eq!(of(&second).await, json(&[(hash.digest, others)]));
    let new = new_payment(1, at(0));
    let (first, event) = (new.session.clone(), new.event.as_ref().unwrap().id.clone());
    commit(&store, vec![added(endpoint(1), 9), payment(new)]).await.unwrap();
    let (pending, endpoints) = store.pending_event(&event, 9).await.unwrap().unwrap();
    let sent = payments_store::domain::fan_out(&pending, &endpoints, || [1; RANDOM_BYTES]).remove(0);
    // The data of an event does not change when its payment does.
    let second = paid(&first, at(5));
    let session = second.session.clone();
    let fanned_out = Write::FannedOut { scope: scope(), event, after: None };
    commit(&store, vec![payment(second), fanned_out, delivery(&sent)]).await.unwrap();
    let stored = store.outgoing(&sent.delivery.id).await.unwrap().unwrap();
    assert_eq!(json(&stored), json(&sent));
    assert_eq!(json(&store.session(&session.payment.id).await.unwrap().unwrap()), json(&session));
    assert_eq!(json(&store.endpoint(&endpoint(1).endpoint.id).await.unwrap().unwrap()), json(&endpoint(1)));
    commit(&store, vec![end(&sent)]).await.unwrap();
    assert_eq!(json(&store.outgoing(&sent.delivery.id).await.unwrap().unwrap()), json(&ended(sent)));
}
