//! The changes of the platform's own accounts that an operator recorded.

use payments_core::{DeveloperId, Environment, LedgerAccount, Posting, Slot};

use super::{
    Store,
    booking::{balance_of, books_of},
    entry::{Entry, Record},
    keys,
    merchants::Versioned,
};
use crate::{
    Result,
    domain::{BooksChange, BooksEntry, Scope},
};

impl Record for BooksEntry {
    fn key(&self) -> Vec<u8> {
        key_of(self.developer_id.as_ref(), self.change, &self.reference)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let sum = |Posting { account, minor }| {
            let developer = self.developer_id.clone().filter(|_| account.is_of_a_developer());
            let (head, name) = match developer {
                Some(developer_id) => (keys::head_of_scope(&live(developer_id)), balance_of(self.currency, account)),
                None => (keys::gauges(), books_of(Environment::Live, self.currency, account, None)),
            };
            Entry::Sum { head, name, amount: minor.into() }
        };
        self.booking().postings().map(sum).collect()
    }
}

impl Versioned for BooksEntry {
    /// It is never changed.
    fn version(&self) -> u64 {
        0
    }
}

impl Store {
    /// An entry by what it names.
    pub async fn books_entry(
        &self,
        developer: Option<&DeveloperId>,
        change: BooksChange,
        reference: &str,
    ) -> Result<Option<BooksEntry>> {
        self.of(slot_of(developer)).json(key_of(developer, change, reference)).await
    }
}

/// Where the fees of an entry's developer are summed.
pub(super) fn fees_of(entry: &BooksEntry) -> Option<(Vec<u8>, String)> {
    let developer_id = entry.developer_id.clone()?;
    Some((keys::head_of_scope(&live(developer_id)), balance_of(entry.currency, LedgerAccount::PlatformFee)))
}

fn slot_of(developer: Option<&DeveloperId>) -> Slot {
    developer.map_or(Slot::FIRST, DeveloperId::slot)
}

fn key_of(developer: Option<&DeveloperId>, change: BooksChange, reference: &str) -> Vec<u8> {
    keys::books_entry(slot_of(developer), developer.map_or("-", DeveloperId::as_str), change, reference)
}

const fn live(developer_id: DeveloperId) -> Scope {
    Scope { developer_id, environment: Environment::Live }
}
