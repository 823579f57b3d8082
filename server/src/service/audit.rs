//! Reads the audit log, for operators and for merchants.

use payments_core::{AuditEntry, AuditId, AuditPage, AuditQuery, Timestamp, UnknownFields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminReply, Caller, Directory, Result, Service};
use crate::domain::{AuditRecord, owner_of};

/// How many entries an answer has at most.
const PAGE: usize = 200;
/// How many entries are read for one answer: few of them may pass its filters.
const READ: usize = 2_000;

/// Which entries of the audit log to list. All filters must hold.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditFilter {
    /// The merchant whose records were changed, by id or name.
    pub workspace: Option<String>,
    /// The id of the actor: a key's, or a person's e-mail address.
    pub actor: Option<String>,
    /// A part of the request: its method, or some of its path.
    pub request: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only entries before this one.
    pub before: Option<AuditId>,
}

impl AuditFilter {
    fn passes(&self, entry: &AuditEntry) -> bool {
        self.actor.as_ref().is_none_or(|id| entry.actor.id == *id)
            && self.request.as_ref().is_none_or(|part| entry.action.contains(part))
            && self.until.is_none_or(|until| entry.created_at < until)
    }

    fn ends_at(&self, record: &AuditRecord) -> bool {
        self.since.is_some_and(|since| record.entry.created_at < since)
    }
}

impl Directory {
    /// Lists entries, newest first.
    pub(super) async fn audit(&self, filter: AuditFilter) -> Result<AdminReply> {
        let developer = match &filter.workspace {
            Some(name) => Some(self.named_workspace(name).await?.developer_id),
            None => None,
        };
        let (mut audit, mut before) = (Vec::new(), filter.before.clone());
        for _ in 0..READ / PAGE {
            let part = self.store.audit(developer.as_ref(), before.as_ref(), PAGE).await?;
            let is_last = part.len() < PAGE || part.last().is_some_and(|record| filter.ends_at(record));
            for record in part.into_iter().take_while(|record| !filter.ends_at(record)) {
                before = Some(record.entry.id.clone());
                if filter.passes(&record.entry) {
                    audit.push(record.entry);
                    if audit.len() == PAGE {
                        return Ok(AdminReply::Audit { audit, next: before });
                    }
                }
            }
            if is_last {
                return Ok(AdminReply::Audit { audit, next: None });
            }
        }
        Ok(AdminReply::Audit { audit, next: before })
    }
}

impl Service {
    /// A part of the log of the changes of a merchant's records, newest first.
    pub async fn own_audit(&self, caller: &Caller, query: &AuditQuery) -> Result<AuditPage> {
        let developer = owner_of(&caller.scope.developer_id);
        let store = &self.directory.store;
        let mut found = store.audit(Some(&developer), query.after.as_ref(), query.limit() + 1).await?;
        let has_more = found.len() > query.limit();
        found.truncate(query.limit());
        let items: Vec<_> = found.into_iter().map(|record| record.entry).collect();
        let next = items.last().map(|entry| entry.id.clone()).or_else(|| query.after.clone());
        Ok(AuditPage { items, has_more, next, unknown: UnknownFields::new() })
    }
}
