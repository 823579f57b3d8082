//! Reads the audit log.

use payments_core::{AuditId, DeveloperId};

use super::{
    Store,
    draft::Draft,
    entry::{Entry, Record, key_alone, owners_at},
    keys::{self, AUDIT},
    merchants::Versioned,
    reads::{Scan, parse},
};
use crate::{CommitError, Result, bytes::with_prefix, domain::AuditRecord};

impl Record for AuditRecord {
    fn key(&self) -> Vec<u8> {
        keys::audit(&self.entry.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let at = Entry::At { index: AUDIT, time: self.entry.created_at, owner: self.key() };
        let own = self.developer_id.as_ref().map(|of| key_alone(in_log_of(of, &self.entry.id)));
        std::iter::once(at).chain(own).collect()
    }
}

/// An entry is written once.
impl Versioned for AuditRecord {
    fn version(&self) -> u64 {
        0
    }
}

fn in_log_of(developer: &DeveloperId, id: &AuditId) -> Vec<u8> {
    [&keys::audit_of(developer)[..], id.as_str().as_bytes()].concat()
}

impl Draft<'_> {
    pub(super) fn drop_audit(&mut self, at: &[u8]) -> Result<(), CommitError> {
        match self.json::<AuditRecord>(at)? {
            Some(record) => self.delete(&record),
            None => Ok(()),
        }
    }
}

impl Store {
    /// At most `at_most` entries of the audit log, newest first, strictly before one: a developer's, or all.
    pub async fn audit(
        &self,
        developer: Option<&DeveloperId>,
        before: Option<&AuditId>,
        at_most: usize,
    ) -> Result<Vec<AuditRecord>> {
        let Some(developer) = developer else { return self.whole_audit(before, at_most).await };
        let reads = self.of(developer.slot());
        let mut range = with_prefix(&keys::audit_of(developer));
        if let Some(before) = before {
            range.end = in_log_of(developer, before);
        }
        let mut scan = Scan::new(reads, range).reversed().at_a_time(at_most);
        let mut ids = Vec::new();
        while ids.len() < at_most
            && let Some((key, _)) = scan.next().await?
        {
            ids.extend(keys::id_at_end::<AuditId>(&key));
        }
        reads.records(ids.iter().map(keys::audit).collect(), |key, value| parse(key, &value)).await
    }

    async fn whole_audit(&self, before: Option<&AuditId>, at_most: usize) -> Result<Vec<AuditRecord>> {
        let mut found: Vec<AuditRecord> = Vec::new();
        for reads in self.cells()? {
            let range = match before.and_then(AuditId::created_at) {
                Some(time) => AUDIT.before(time.plus_millis(1)),
                None => AUDIT.all(),
            };
            let mut scan = Scan::new(reads, range).reversed().at_a_time(at_most);
            let mut owners = Vec::new();
            while owners.len() < at_most
                && let Some((key, value)) = scan.next().await?
            {
                owners.extend(owners_at(AUDIT, &key, &value).into_iter().filter(|owner| {
                    before.is_none_or(|before| keys::id_at_end::<AuditId>(owner).is_some_and(|id| id < *before))
                }));
            }
            found.extend(reads.records(owners, |key, value| parse(key, &value)).await?);
        }
        found.sort_by(|a, b| b.entry.id.cmp(&a.entry.id));
        found.truncate(at_most);
        Ok(found)
    }
}
