//! Tests of the embedded store alone.

use std::{path::Path, sync::Arc};

use payments_core::{Environment, RawJson, Timestamp};

use super::{Closing, EmbeddedStore};
use crate::{
    Change, ClaimEnd, NewResponse, Write,
    ambient::OperatingSystem,
    domain::{ClaimToken, IdempotencyKey, KeyClaim, Scope},
};

fn at(hours: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + hours * 3_600_000).unwrap()
}

/// A new store, without workers.
fn opened(directory: &Path) -> (EmbeddedStore, Closing) {
    EmbeddedStore::open(directory, Arc::new(OperatingSystem), |_, _| ()).unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
    IdempotencyKey::new(&scope, "POST", "/webhooks", text)
}

fn keeping(text: &str, created_at: Timestamp) -> NewResponse {
    let body = RawJson::of(&serde_json::json!({"id": "wh_1"})).unwrap();
    NewResponse { key: key(text), fingerprint: String::new(), created_at, body, claim: ClaimEnd::NotClaimed }
}

#[tokio::test]
async fn a_start_voids_the_claims_on_idempotency_keys_and_keeps_the_responses() {
    let directory = tempfile::tempdir().unwrap();
    let claim = async |store: &EmbeddedStore, text: &str, nth| {
        let token = ClaimToken::new([nth; 16]);
        let claim = KeyClaim { token, fingerprint: String::new(), claimed_at: at(0), until: at(1) };
        store.commit(Change::of(Write::KeyClaimed(Box::new((key(text), claim))))).await
    };
    let (store, closing) = opened(directory.path());
    claim(&store, "claimed", 1).await.unwrap();
    store.commit(Change { idempotency: Some(keeping("used", at(0))), ..Change::default() }).await.unwrap();
    drop(store);
    closing.wait();
    let (store, closing) = opened(directory.path());
    claim(&store, "claimed", 2).await.unwrap();
    assert!(claim(&store, "used", 3).await.is_err());
    drop(store);
    closing.wait();
}
