//! The progress of a migration into a store. The store holds it beside the records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A migration into the store that holds this record. Each batch of moved records also writes the next version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    pub version: u64,
    /// Identifies the source: a digest of its merchants and their endpoints.
    pub id: String,
    /// Where the source was, for messages.
    pub from: String,
    /// The key of the last value that was moved, in hex.
    pub after: Option<String>,
    pub records: u64,
    /// The contents of both stores when the migration finished.
    pub moved: Option<Contents>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    pub records: BTreeMap<String, u64>,
    pub sha256: String,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this store holds only a part of {origin}, {records} records, because its migration is not finished; run \
     payments-server migrate again with the same --from and --to"
)]
pub struct Unfinished {
    /// The location of the source, which has all records.
    origin: String,
    /// How many records this store has.
    records: u64,
}

impl Migration {
    /// Refuses a store into which a migration is not finished.
    pub fn refuse_unfinished(found: Option<Self>) -> Result<(), Unfinished> {
        match found {
            Some(Self { from, records, moved: None, .. }) => Err(Unfinished { origin: from, records }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_refused_until_the_migration_into_it_is_finished() {
        let begun =
            Migration { version: 3, id: "1".into(), from: "/data".into(), after: None, records: 512, moved: None };
        let refused = Migration::refuse_unfinished(Some(begun.clone())).unwrap_err().to_string();
        assert!(refused.starts_with("this store holds only a part of /data, 512 records"), "{refused}");
        assert!(Migration::refuse_unfinished(Some(Migration { moved: Some(Contents::default()), ..begun })).is_ok());
        assert!(Migration::refuse_unfinished(None).is_ok());
    }
}
