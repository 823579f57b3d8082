//! The audit log: an entry is in the commit of its change, and is dropped by its age.

use std::sync::Arc;

use payments_core::{AuditId, RANDOM_BYTES, Slot};
use payments_store::{Change, Prunable, Store, Write, domain::AuditRecord};

use crate::samples::*;

fn audit(nth: u8) -> AuditRecord {
    let entry = serde_json::json!({"id": AuditId::new(Slot::FIRST, at(nth.into()), [nth; RANDOM_BYTES]),
        "action": "POST /api/v1/webhooks", "subject": null, "actor": {"type": "command", "id": "uid 0", "name": null},
        "address": null, "changes": [], "createdAt": at(nth.into())});
    AuditRecord { developer_id: Some(scope().developer_id), entry: serde_json::from_value(entry).unwrap() }
}

/// A change of an endpoint, audited.
pub(super) fn audited(nth: u8, write: Write) -> Change {
    Change { audit: Some(Box::new(audit(nth))), ..Change::of(write) }
}

pub(super) async fn an_audited_change_leaves_its_fields_and_is_dropped_by_age(store: Arc<Store>) {
    let developer = scope().developer_id;
    let mut changed = endpoint(1);
    changed.version = 1;
    changed.endpoint.url = "https://other.example/".into();
    store.commit(audited(1, added(endpoint(1), 9))).await.unwrap();
    store.commit(audited(2, Write::EndpointChanged(Box::new(changed.clone())))).await.unwrap();
    // A change that is refused leaves no entry.
    assert_eq!(outcome(store.commit(audited(3, Write::EndpointChanged(Box::new(changed)))).await), STALE);
    for of in [Some(&developer), None] {
        let log = store.audit(of, None, 9).await.unwrap();
        let ids: Vec<_> = log.iter().map(|record| record.entry.id.clone()).collect();
        assert_eq!(ids, [2, 1].map(|nth| audit(nth).entry.id), "newest first");
        let url = log[0].entry.changes.iter().find(|it| it.field == "endpoint.url").unwrap();
        assert_eq!(url.after.as_deref(), Some("https://other.example/"));
        assert_eq!(store.audit(of, Some(&ids[0]), 9).await.unwrap().len(), 1);
    }
    assert!(store.audit(Some(&"dev_9".parse().unwrap()), None, 9).await.unwrap().is_empty());
    assert_eq!(store.prune(Prunable::Audit, at(2), 9).await.unwrap(), 1);
    let left = store.audit(Some(&developer), None, 9).await.unwrap();
    assert_eq!(left.iter().map(|it| it.entry.id.clone()).collect::<Vec<_>>(), [audit(2).entry.id]);
    assert_eq!(store.prune(Prunable::Audit, at(2), 9).await.unwrap(), 0);
}
