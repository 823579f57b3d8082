//! The audit log, as a merchant reads it: who changed what.

use crate::{AuditId, ErrorCode, Invalid, Timestamp, aliased::aliased_resource, query::Query};

aliased_resource! {
    /// A change that a key, a person or a command of the operator made.
    #[derive(Debug)]
    pub struct AuditEntry {
        /// Identifier of the entry. Later entries have later ids.
        id: AuditId = "id",
        /// The request that was made, such as `PATCH /api/v1/webhooks/{id}`.
        action: String = "action",
        /// The record that the request names, if it names one.
        subject: Option<String> = "subject",
        /// Who did it.
        actor: AuditActor = "actor",
        /// The client's address. `None` for a command on the server's machine.
        address: Option<String> = "address",
        /// The fields that it changed, at most 30.
        changes: Vec<AuditChange> = "changes",
        /// When it was done.
        created_at: Timestamp = "createdAt",
    }
}

aliased_resource! {
    /// Who made a change.
    #[derive(Debug)]
    pub struct AuditActor {
        /// `api_key`, `platform_key`, `person` or `command`.
        kind: String = "type",
        /// The key's id, the person's e-mail address, or the name of the command's user.
        id: String = "id",
        /// The key's name, or the person's.
        name: Option<String> = "name",
    }
}

aliased_resource! {
    /// A field before and after a change. Of a secret it has the last four characters, of a customer's data nothing.
    #[derive(Debug)]
    pub struct AuditChange {
        /// The record, by its kind and id: `endpoint/wh_…`.
        record: String = "record",
        /// The field's place in the record: `endpoint.url`.
        field: String = "field",
        /// Its value before; `None` if there was none.
        before: Option<String> = "before",
        /// Its value after; `None` if there is none.
        after: Option<String> = "after",
    }
}

aliased_resource! {
    /// A part of the audit log, newest first.
    #[derive(Debug)]
    pub struct AuditPage {
        /// The entries.
        items: Vec<AuditEntry> = "items",
        /// Whether the log goes on.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `after`.
        next: Option<AuditId> = "next",
    }
}

/// The part of the audit log that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries after this one in the log, which are older.
    pub after: Option<AuditId>,
    limit: Option<u8>,
}

impl AuditQuery {
    /// The default number of items.
    pub const DEFAULT_LIMIT: u8 = 20;
    /// The maximum number of items.
    pub const MAX_LIMIT: u8 = 100;

    /// Parses the query parameters `after` and `limit` (1 to 100, default 20). `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let after = query.parsed("after", ErrorCode::FieldInvalid, "must be the id of an entry of the audit log");
        let limit = query.limit(Self::MAX_LIMIT);
        query.invalid.or(Self { after, limit })
    }

    /// The maximum number of items.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).into()
    }
}
